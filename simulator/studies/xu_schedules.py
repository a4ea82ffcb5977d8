"""Xu et al. 2019: EASY and EASY-SJBF with requested and with predicted times."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from simulator.replay.method_spec import MethodSpec
from simulator.replay.trace_replay import InProcess, replay
from simulator.reports.comparison import Outcome, outcome
from simulator.reports.exhibit import Exhibit, Panel, Series
from simulator.scheduling.estimates import REQUESTED, Estimates
from simulator.scheduling.measures import Measures
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.workload import prepare, with_requests
from simulator.studies.simulations import Results, Simulation
from simulator.studies.study import ExhibitInput, Played, Study, Takes
from simulator.studies.xu.published import tuned_predictions
from simulator.studies.xu.schedule_lines import AS_PYSS_SUFFIX, Line, sentences, tables_of
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
"""What is written into the log in the place of its requests."""

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


def parts(paths: Sequence[Path], limit: int | None) -> list[LogSimulation]:
    """Three logs x two policies x the sources of estimates of both blocks."""
    return [
        LogSimulation(
            Simulation(
                trace=str(paths[0] / log),
                semantics=Semantics(policy=policy, events="sequential"),
                estimates=estimates,
                limit=limit,
                year=year,
                group=f"{name}, {policy}" + (AS_PYSS_SUFFIX if as_pyss else ""),
            ),
            as_pyss,
        )
        for name, log, year in LOGS
        for as_pyss, sources in ((False, ESTIMATES), (True, AS_PYSS))
        for policy in POLICIES
        for estimates in sources
    ]


def play(part: LogSimulation) -> Outcome:
    """Simulate it.

    Raises:
        NoJobError: its log has no job.
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
    """Predictions in seconds by the log's number of the job, each from what had ended before it."""
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


def lines_of(played: Played) -> list[Line]:
    """The lines of both blocks."""
    results = results_of(played)
    return [
        _line(group, estimates, each.measures, results.of(group)[REQUESTED].measures)
        for group in results.groups()
        for estimates, each in results.of(group).items()
    ]


def _line(group: str, estimates: str, found: Measures, base: Measures) -> Line:
    return Line(
        group=group,
        estimates=estimates,
        wait=found.wait,
        wait_gain=round(100 * (1 - found.wait / max(base.wait, 1e-9)), 1),
        slowdown=round(found.bounded_slowdown, 2),
        slowdown_gain=round(100 * (1 - found.bounded_slowdown / base.bounded_slowdown), 1),
        outlived=100 * found.corrected,
        use=round(100 * found.utilisation, 1),
    )


def results_of(played: Played) -> Results:
    """The outcomes by run."""
    return Results([(part.run, each) for part, each in played])


def table_5(sources: ExhibitInput) -> Exhibit:
    """Average wait."""
    return _table(sources, "Average wait (Xu et al., Table 5)", "AVEwait, s", lambda m: m.wait)


def table_6(sources: ExhibitInput) -> Exhibit:
    """Average bounded slowdown."""
    title = "Average bounded slowdown (Xu et al., Table 6)"
    return _table(sources, title, "AVEbsld", lambda m: m.bounded_slowdown)


def _table(
    sources: ExhibitInput, title: str, value: str, measure: Callable[[Measures], float]
) -> Exhibit:
    """A panel for each block, a line for each log and policy."""
    results = results_of(sources.play(play, parts(sources.paths, sources.limit)))
    panels = []
    for heading, names, as_pyss in (
        ("A prediction stands beside the request", ESTIMATES, False),
        ("As pyss plays a log whose requests are predictions", AS_PYSS, True),
    ):
        groups = [group for group in results.groups() if group.endswith(AS_PYSS_SUFFIX) == as_pyss]
        series = [
            Series(name, [measure(results.of(group)[name].measures) for group in groups])
            for name in names
        ]
        panels.append(
            Panel(
                title=heading,
                places=[group.removesuffix(AS_PYSS_SUFFIX) for group in groups],
                series=series,
                along="log, policy",
                value=value,
            )
        )
    return Exhibit(title, panels, LOST)


LOST = "Our copy of the paper has no numbers of this table; its text has the gains.\n"

TITLE = "EASY and EASY-SJBF with requested and predicted times (Xu et al. 2019)"

STUDY = Study(
    title=TITLE,
    takes=Takes.DIRECTORY,
    logs=tuple(dict.fromkeys(log for _, log, _ in LOGS)),
    runs=parts,
    play=play,
    tables=lambda played: tables_of(lines_of(played)),
    notes=lambda played: sentences(lines_of(played)),
    records=lambda played: {"title": TITLE, "simulations": results_of(played).records()},
    exhibits={"table 5": table_5, "table 6": table_6},
)
