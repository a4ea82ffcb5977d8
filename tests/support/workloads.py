"""Small machines with few jobs, written down as people draw them."""

import io
from dataclasses import replace

import numpy as np
from reference_scheduler import Job
from synth import SyntheticLog, synthesise

from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import simulate
from simulator.scheduling.workload import prepare
from simulator.traces.swf import read_swf, write_swf


def log_of(jobs, processors):
    """An SWF log; a job is (submit, processors, run time, request), perhaps user, group, queue."""
    lines = []
    for number, (submit, size, run, request, *others) in enumerate(jobs, start=1):
        user, group, queue = (*others, *(1, -1, -1)[len(others) :])
        lines.append(
            f"{number} {submit} -1 {run} {size} -1 -1 {size} {request} -1 1 {user} {group} -1 "
            f"{queue} -1 -1 -1"
        )
    header = f"; MaxProcs: {processors}"
    return read_swf(io.BytesIO("\n".join([header, *lines]).encode()))


def synthetic(file, **parameters):
    """Write a log of users, applications and jobs; return the file."""
    write_swf(synthesise(SyntheticLog(**parameters)), file)
    return file


def stretched_logs(directory, names, *, jobs, times, first_seed=0, begins=None):
    """Write a generated log for each name, with times between submissions; return the directory.

    ``begins`` gives the Unix seconds at which the log of a name begins.
    """
    for seed, name in enumerate(sorted(names), first_seed):
        trace = synthesise(SyntheticLog(jobs=jobs, seed=seed))
        comments = trace.comments
        if begins:
            others = [line for line in comments if "UnixStartTime" not in line]
            comments = (f"; UnixStartTime: {begins(name)}", *others)
        write_swf(replace(trace, submit=trace.submit * times, comments=comments), directory / name)
    return directory


def workload_of(jobs, processors, **options):
    return prepare(log_of(jobs, processors), **options)


class Given:
    """Estimates that the test knows beforehand."""

    def __init__(self, estimates):
        self.name = "given"
        self.player = None
        self.keeps = False
        self.cluster = "default"
        self.lengths = None
        self._estimates = estimates

    def beforehand(self, workload):
        return workload.request if self._estimates is None else np.array(self._estimates)


def schedule_of(jobs, processors, *, estimates=None, overrun="kill", cores=None, **rules):
    """The schedule under some rules, by requests unless there are estimates."""
    workload = workload_of(jobs, processors, overrun=overrun, cores_per_node=cores)
    return simulate(workload, Semantics(**rules), Given(estimates))


def starts_of(jobs, processors, **options):
    return schedule_of(jobs, processors, **options).start.tolist()


def jobs_of(workload, estimates, priorities=None):
    """The same jobs for the reference scheduler."""
    columns = [workload.submit, workload.processors, workload.runtime, workload.request, estimates]
    columns.append(priorities or [0.0] * len(workload))
    return [Job(*row) for row in zip(*(np.asarray(c).tolist() for c in columns), strict=True)]
