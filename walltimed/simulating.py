"""Simulations: the scheduler of a log with better estimates."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from simulator.cli.simulate import jobs_of, semantics_of, site_of_twin
from simulator.scheduling.estimates import EXACT, FILE, REQUESTED, Estimates
from simulator.scheduling.measures import Measures, measure
from simulator.scheduling.schedule_file import schedule_tables
from simulator.scheduling.simulate import Schedule
from simulator.scheduling.simulate import simulate as run
from simulator.traces.completions import RecordedLog
from terminal.data_table import DataTable
from terminal.progress import progress_bar
from walltimed.logs import Log, log_of
from walltimed.methods import MakeMethod, spec_of
from walltimed.tabular import Tabular, check_counts

Directory = str | PathLike[str]


@dataclass(frozen=True, slots=True, repr=False)
class Simulation(Tabular):
    """A simulated schedule: a row for each job.

    Attributes:
        recorded: the jobs as they were simulated, in the order of their submission.
        schedule: starts and ends.
        measures: means over all jobs.
    """

    recorded: RecordedLog
    schedule: Schedule
    measures: Measures

    def __len__(self) -> int:
        return len(self.schedule.workload)

    def __repr__(self) -> str:
        measures = self.measures
        rules = self.schedule.semantics
        return (
            f"<walltimed.Simulation {rules.policy}, {self.schedule.estimates}: {len(self):,} jobs, "
            f"mean wait {measures.wait:,.0f} s, mean bounded slowdown "
            f"{measures.bounded_slowdown:,.1f}>"
        )

    def rules(self) -> dict[str, str]:
        """Return the rules of the scheduler, and the treatment of the input, in words."""
        return self.schedule.card()

    def tables(self) -> Iterator[DataTable]:
        """Yield the rows in parts."""
        return schedule_tables(self.recorded, [self.schedule])


def simulate(
    log: Log | str | PathLike[str],
    policy: str = "easy",
    estimates: str | MakeMethod = REQUESTED,
    *,
    order: str | None = None,
    ratio: str | None = None,
    adjust: str = "regular",
    processors: int | None = None,
    cores_per_node: int | None = None,
    overrun: str = "kill",
    slurm_config: Directory | None = None,
    pbs_config: Directory | None = None,
    limit: int | None = None,
    progress: bool = False,
) -> Simulation:
    """Simulate a scheduler on a log, from an empty machine and without any history.

    Args:
        log: a log, or the name of its file.
        policy: such as ``easy``, ``conservative``, ``slurm`` or ``pbs``.
        estimates: ``exact``, ``requested``, a method such as ``auto``, ``file:PREDICTIONS``, or a
            class with ``predict`` and ``observe``.
        order: order of the queue; None: fcfs.
        ratio: numbers of the order ``response-ratio``, as ``--ratio`` of the command.
        adjust: where estimates act, as ``--adjust`` of the command.
        processors: size of the machine; None: by the log.
        cores_per_node: jobs take whole nodes with this many cores.
        overrun: treatment of jobs that overran their request: kill, keep or swap.
        slurm_config: directory with what scontrol printed, for the policy ``slurm``.
        pbs_config: directory with the configuration of PBS, for the policy ``pbs``.
        limit: number of jobs; None takes all.
        progress: whether a bar is shown on standard error.

    Raises:
        ValueError: a name is not known, or no job of the log can be simulated.
        TypeError: an object is no method.
        Error: an option contradicts another, or a file cannot be used.
    """
    check_counts(limit=limit, processors=processors, cores_per_node=cores_per_node)
    if not isinstance(policy, str) or "," in policy:
        raise ValueError(f"policy is one name, such as easy, not {policy!r}.")
    read = log_of(log)
    site = site_of_twin(_path(slurm_config), _path(pbs_config), [policy], cores_per_node)
    rules: dict[str, Any] = {"order": order, "ratio": ratio, **site.rules}
    [semantics] = semantics_of([policy], adjust, rules)
    _, workload = jobs_of(
        read.recorded,
        read.name,
        limit=limit,
        processors=processors or site.processors,
        cores_per_node=cores_per_node,
        requests=None,
        overrun=overrun,
    )
    source = replace(_estimates(estimates), keeps=True)
    with progress_bar("jobs", quiet=not progress) as bar:
        task = bar.add_task(f"{policy}, {source.name}", total=len(workload))
        schedule = run(workload, semantics, source, progress=partial(bar.advance, task))
    recorded = replace(read.recorded, trace=workload.trace)
    return Simulation(recorded, schedule, measure(schedule))


def _estimates(source: str | MakeMethod) -> Estimates:
    """Return a source of estimates; a class of a user learns from the simulated completions."""
    if isinstance(source, str) and (source in {EXACT, REQUESTED} or source.startswith(FILE)):
        return Estimates.named(source)
    return Estimates.of_method(spec_of(source))


def _path(directory: Directory | None) -> Path | None:
    return None if directory is None else Path(fspath(directory))
