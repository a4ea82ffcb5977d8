"""Xu et al. 2019: EASY and EASY-SJBF with requested and with predicted times."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from simulator.replay.method_spec import MethodSpec
from simulator.replay.trace_replay import InProcess, replay
from simulator.reports.comparison import Outcome, outcome
from simulator.reports.exhibit import Exhibit, Panel, Series
from simulator.reports.tables import text_table
from simulator.scheduling.estimates import REQUESTED, Estimates
from simulator.scheduling.measures import Measures
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.workload import prepare, with_requests
from simulator.studies.simulations import Results, Simulation
from simulator.studies.study import ExhibitInput, Played, Study, Takes
from simulator.studies.xu.published import tuned_predictions
from simulator.traces.cleaning import REPLAY_RULES, clean
from simulator.traces.completions import completions

AS_PYSS_SUFFIX = ", as pyss"

HEADS = ("log, policy", "estimates", "AVEwait", "gain", "AVEbsld", "gain", "outlived", "use")

LEGEND = """\
Gains in percent over the requests under the same policy; use is the machine's utilisation. The
paper's tables 5 and 6 did not survive in our copy; its text says that predicted times reduce
average wait and bounded slowdown on all four logs under both policies, the slowdown more than the
wait, on SDSC04 by more than 60%, and that EASY-SJBF is below EASY. Of its logs SDSC02 is missing
here. knn-tuned is predicted as the paper does (walltimed experiment xu), from the log's own ends;
the other methods learn from the ends that the simulation makes. Events are in the order of pyss,
which the paper used.

First block, as we would do it: a prediction stands beside the request, a job that outlives it goes
on, and its estimate is doubled.

Second block, as pyss plays it: the prediction is written into the log in the place of the request.
pyss takes the longer of run time and estimate for the estimate and the shorter for the run time
(_job_input_to_job in its base/prototype.py), so a job that is predicted too short ends at its
prediction, and the rest of its work vanishes. That this is what the paper measured is our
inference: it says no more than that predictions were used as estimates in pyss. Beside a gain look
at the use: what it lost against the requests is work that was not done.
"""


def tables(played: Played) -> str:
    """A table of each block: as we would do it, and as pyss plays it."""
    results = results_of(played)
    blocks: tuple[list[Sequence[str]], list[Sequence[str]]] = ([], [])
    for group in results.groups():
        found = results.of(group)
        for estimates, each in found.items():
            cells = _cells(each.measures, found[REQUESTED].measures)
            blocks[group.endswith(AS_PYSS_SUFFIX)].append((group, estimates, *cells))
    return "\n".join(text_table(HEADS, block) for block in blocks)


def _cells(found: Measures, base: Measures) -> tuple[str, ...]:
    """Cells of a line, with gains over requests in percent."""
    wait_gain = 100 * (1 - found.wait / max(base.wait, 1e-9))
    slowdown_gain = 100 * (1 - found.bounded_slowdown / base.bounded_slowdown)
    return (
        f"{found.wait:,.0f}",
        f"{wait_gain:+.1f}",
        f"{found.bounded_slowdown:,.2f}",
        f"{slowdown_gain:+.1f}",
        f"{100 * found.corrected:.1f}%",
        f"{100 * found.utilisation:.1f}%",
    )


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
    tables=tables,
    notes=lambda _: LEGEND,
    records=lambda played: {"title": TITLE, "simulations": results_of(played).records()},
    exhibits={"table 5": table_5, "table 6": table_6},
)
