"""Xu et al. 2019: EASY and EASY-SJBF with requested and with predicted times."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from papers.pivot import ExhibitPlan, Pivot
from papers.simulations import Simulation
from papers.study import Inputs, Study, Takes
from papers.xu.retuning import tuned_predictions
from simulator.replay.method_spec import MethodSpec
from simulator.replay.trace_replay import InProcess, replay
from simulator.reports.comparison import Outcome, outcome
from simulator.scheduling.estimates import REQUESTED, Estimates
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.workload import prepare, with_requests
from simulator.traces.cleaning import REPLAY_RULES, clean
from simulator.traces.completions import completions

LOGS = (
    ("SDSC04", "SDSC-DS-2004-2.1-cln.swf.gz", None),
    ("HPC2N04", "HPC2N-2002-2.2-cln.swf.gz", 2004),
    ("HPC2N05", "HPC2N-2002-2.2-cln.swf.gz", 2005),
)
"""Of the paper's four SDSC02 is not here."""

POLICIES = ("easy", "easy-sjbf")
TUNED = "knn-tuned"
"""knn by genetic search, as the paper publishes it."""

ESTIMATES = ("requested", TUNED, "knn", "max-usage", "last-two", "exact")
AS_PYSS = ("requested", TUNED, "knn", "last-two")
"""Estimates that are written into the log in the place of its requests."""

LOGS_KEPT = 4
"""A process keeps the predictions that it made last: they take longer than a simulation."""


class LogSimulation(NamedTuple):
    """A simulation whose estimates may stand in the log.

    Attributes:
        run: its log, rules and source of estimates.
        as_pyss: the estimates stand in the log, and change places with shorter run times.
    """

    run: Simulation
    as_pyss: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleMeasures:
    """Measures of one simulation.

    Attributes:
        log: its name in the paper.
        policy: of the scheduler.
        estimates: of the scheduler.
        as_pyss: as in ``LogSimulation``.
        wait: mean, in seconds.
        bounded_slowdown: mean.
        outlived: share of the jobs that outlived an estimate.
        utilisation: of the machine; below that of requests, work was not done.
    """

    log: str
    policy: str
    estimates: str
    as_pyss: bool
    wait: float
    bounded_slowdown: float
    outlived: float
    utilisation: float


def parts_of(inputs: Inputs) -> list[LogSimulation]:
    """Return three logs x two policies x the sources of estimates of both blocks."""
    return [
        LogSimulation(
            Simulation(
                trace=str(inputs.logs / file),
                log=log,
                semantics=Semantics(policy=policy, events="sequential"),
                estimates=estimates,
                limit=inputs.limit,
                year=year,
            ),
            as_pyss,
        )
        for log, file, year in LOGS
        for as_pyss, sources in ((False, ESTIMATES), (True, AS_PYSS))
        for policy in POLICIES
        for estimates in sources
    ]


def measured(part: LogSimulation) -> ScheduleMeasures:
    """Simulate a log, and measure the schedule."""
    found = play(part).measures
    return ScheduleMeasures(
        log=part.run.log,
        policy=part.run.semantics.policy,
        estimates=part.run.estimates,
        as_pyss=part.as_pyss,
        wait=found.wait,
        bounded_slowdown=found.bounded_slowdown,
        outlived=found.corrected,
        utilisation=found.utilisation,
    )


def play(part: LogSimulation) -> Outcome:
    """Simulate a log.

    Raises:
        NoJobError: the log has no job.
    """
    run = part.run
    workload = run.workload()
    if part.as_pyss:
        log = run.jobs()
        if run.estimates != REQUESTED:
            log = with_requests(log, predictions(run.trace, run.year, run.limit, run.estimates))
        swapped = prepare(log, overrun="swap")
        return outcome(swapped, run.semantics, lambda: Estimates(run.estimates, predictions={}))
    if run.estimates != TUNED:
        return run.play()
    predicted = predictions(run.trace, run.year, run.limit, TUNED)
    return outcome(workload, run.semantics, lambda: Estimates(TUNED, predictions=predicted))


@lru_cache(LOGS_KEPT)
def predictions(
    trace: str, year: int | None, limit: int | None, source: str
) -> Mapping[int, float]:
    """Return predictions in seconds by job number, each from what had ended before it."""
    chosen = Simulation(
        trace=trace, semantics=Semantics(), estimates=source, year=year, limit=limit
    )
    jobs, _ = clean(chosen.jobs(), REPLAY_RULES)
    runs = list(completions(jobs))
    if source == TUNED:
        predicted = tuned_predictions(runs)
    else:
        player = InProcess({source: MethodSpec.parse(source).predictor()})
        predicted = replay(runs, player).answers[source].predicted
    return dict(zip(jobs.job.tolist(), predicted.tolist(), strict=True))


def schedules(inputs: Inputs) -> list[ScheduleMeasures]:
    """Return the measures of all simulations."""
    return inputs.play(measured, parts_of(inputs))


LOST = "Our copy of the paper has no numbers of this table; its text has the gains.\n"


def _table(title: str, value: str, unit: str) -> ExhibitPlan:
    """Return Table 5 or 6: a panel for each block, a line for each log and policy."""
    pivot = Pivot(
        table=schedules,
        where={"as_pyss": (False, True)},
        panel=lambda each: (
            "As pyss plays a log whose requests are predictions"
            if each.as_pyss
            else "A prediction stands beside the request"
        ),
        rows="{log}, {policy}",
        columns="{estimates}",
        value=value,
        along="log, policy",
        unit=unit,
    )
    return ExhibitPlan(title, [pivot], LOST)


STUDY = Study(
    name="xu-schedules",
    explanation="""Compare EASY and EASY-SJBF with requested and with predicted times.

    Xu et al. 2019, Tables 5 and 6, on SDSC-DS and HPC2N. Events are in the order of pyss, which the
    paper used. First as we would do it: a prediction stands beside the request, a job that outlives
    it goes on, and its estimate is doubled. Then as pyss plays it: the prediction is written into
    the log in the place of the request. pyss takes the longer of run time and estimate for the
    estimate and the shorter for the run time, so a job that is predicted too short ends at its
    prediction, and the rest of its work vanishes. That the paper measured this is our inference.

    For example:

        python -m papers xu-schedules traces --table all --output xu
    """,
    takes=Takes.DIRECTORY,
    logs=tuple(dict.fromkeys(file for _, file, _ in LOGS)),
    exhibits={
        "table 5": _table("Average wait (Xu et al., Table 5)", "wait", "AVEwait, s"),
        "table 6": _table(
            "Average bounded slowdown (Xu et al., Table 6)", "bounded_slowdown", "AVEbsld"
        ),
    },
)
