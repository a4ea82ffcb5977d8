"""Simulates several policies with several estimates, and compares them in tables."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from simulator.reports.tables import text_table
from simulator.reports.words import duration
from simulator.scheduling.estimates import Estimates
from simulator.scheduling.measures import Measures, measure
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import Schedule, simulate
from simulator.scheduling.workload import Workload, prepare
from simulator.traces.shake import FEWEST_REPETITIONS, Spread, shaken
from simulator.traces.trace import Trace

COMPARED = ("wait", "bounded_slowdown", "weighted_wait", "utilisation")
"""The measures whose noise shaking shows."""

OUTLIVED = {"corrected": "outlived"}
"""A job that outlives an estimate gets a corrected one; tables and JSON say outlived."""

Progress = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One policy with one source of estimates.

    Attributes:
        schedule: schedule of the unshaken workload.
        measures: measures of ``schedule``.
        shaken: measures of the shaken workload, one for each repetition.
    """

    schedule: Schedule
    measures: Measures
    shaken: Sequence[Measures] = ()

    @property
    def label(self) -> str:
        """Policy and estimates."""
        return f"{self.schedule.semantics.policy}, {self.schedule.estimates}"

    def spread(self, name: str) -> Spread:
        """The spread of the measure ``name`` over the repetitions."""
        return Spread.of([getattr(measures, name) for measures in self.shaken])

    def as_record(self) -> dict[str, Any]:
        """The outcome as a JSON object."""
        record: dict[str, Any] = {
            "policy": self.schedule.semantics.policy,
            "estimates": self.schedule.estimates,
            **{OUTLIVED.get(name, name): each for name, each in asdict(self.measures).items()},
            "seconds": self.schedule.seconds,
            "semantics": self.schedule.card(),
        }
        if self.shaken:
            record["shaken"] = {name: asdict(self.spread(name)) for name in COMPARED}
        return record


@dataclass(frozen=True, slots=True)
class Shaking:
    """The seconds by which submissions are moved at most, and the number of repetitions."""

    seconds: int
    repeat: int

    def workloads(self, trace: Trace, workload: Workload) -> Iterator[Workload]:
        """The shaken workloads, one for each repetition; the same in every comparison."""
        size = workload.processors_of_machine * (workload.cores_per_node or 1)
        for seed in range(self.repeat):
            yield prepare(
                shaken(trace, self.seconds, seed),
                processors=size,
                cores_per_node=workload.cores_per_node,
                overrun=workload.overrun,
            )


def outcome(
    workload: Workload,
    semantics: Semantics,
    estimates: Callable[[], Estimates],
    *,
    shaken_workloads: Iterator[Workload] | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Simulate ``workload`` and each shaken workload, each time without any history."""
    schedule = simulate(workload, semantics, estimates(), progress=progress)
    repeated = [
        measure(simulate(moved, semantics, estimates(), progress=progress))
        for moved in shaken_workloads or ()
    ]
    return Outcome(schedule, measure(schedule), repeated)


def table(outcomes: Sequence[Outcome]) -> str:
    """A line for every combination."""
    heads = (
        "policy", "estimates", "wait", "median", "slowdown", "bounded", "weighted", "backfilled",
        "used", "outlived", "jobs/s",
    )  # fmt: skip
    return text_table(heads, [_line(each) for each in outcomes])


def narrow_table(outcomes: Sequence[Outcome]) -> str:
    """A line for every combination in 80 columns, with times as people say them."""
    heads = ("policy", "estimates", "wait", "median", "bounded", "backfilled", "used", "outlived")
    lines = [
        (
            each.schedule.semantics.policy,
            each.schedule.estimates[:NARROW_NAME],
            duration(each.measures.wait),
            duration(each.measures.median_wait),
            f"{each.measures.bounded_slowdown:,.2f}",
            f"{each.measures.backfilled:.1%}",
            f"{each.measures.utilisation:.1%}",
            f"{each.measures.corrected:.1%}",
        )
        for each in outcomes
    ]
    return text_table(heads, lines)


NARROW_NAME = 18
"""Longest name of an estimate in 80 columns."""

NARROW_LEGEND = """\
wait, median: mean and median wait; bounded: bounded slowdown (10 s);
backfilled: jobs that passed a waiting one; used: processor time of the
makespan; outlived: jobs that outlived an estimate. All columns, in seconds:
--wide.
"""


def _line(each: Outcome) -> tuple[str, ...]:
    measures = each.measures
    return (
        each.schedule.semantics.policy,
        each.schedule.estimates,
        f"{measures.wait:,.0f}",
        f"{measures.median_wait:,.0f}",
        f"{measures.slowdown:,.1f}",
        f"{measures.bounded_slowdown:,.2f}",
        f"{measures.weighted_wait:,.0f}",
        f"{measures.backfilled:.1%}",
        f"{measures.utilisation:.1%}",
        f"{measures.corrected:.1%}",
        f"{measures.jobs / each.schedule.seconds:,.0f}",
    )


LEGEND = """\
wait, median: seconds; slowdown and bounded slowdown (10 s); weighted: wait weighted by priority
at the start (Tang Eq 4); backfilled: jobs that passed a waiting one; used: processor time of the
makespan; outlived: jobs that outlived an estimate.
"""

PREDICTABILITY_LEGEND = """\
error: of the wait predicted at arrival, mean and median, in seconds; deviation: of the turnaround
predicted then, in percent; in gap: jobs planned at arrival before the planned start of another
waiting job; T_node: seconds for which a job's nodes were known before its start.
"""


def predictability_table(outcomes: Sequence[Outcome]) -> str:
    """What users were told at arrival, under the policies that tell; empty if none does."""
    heads = (
        "policy",
        "estimates",
        "error",
        "median",
        "deviation",
        "in gap",
        "T_node",
        "T_node > 0",
    )
    lines = [
        (
            each.schedule.semantics.policy,
            each.schedule.estimates,
            _number(each.measures.wait_error, "{:,.0f}"),
            _number(each.measures.median_wait_error, "{:,.0f}"),
            _number(each.measures.turnaround_deviation, "{:,.0f} %"),
            _number(each.measures.planned_into_gap, "{:.1%}"),
            _number(each.measures.node_notice, "{:,.0f}"),
            _number(each.measures.node_notice_share, "{:.1%}"),
        )
        for each in outcomes
        if each.measures.wait_error is not None
    ]
    return text_table(heads, lines) if lines else ""


def narrow_predictability_table(outcomes: Sequence[Outcome]) -> str:
    """The same in 80 columns, with times as people say them."""
    heads = ("policy", "estimates", "error", "median", "deviation", "in gap", "known", "share")
    lines = [
        (
            each.schedule.semantics.policy,
            each.schedule.estimates[:NARROW_NAME],
            _duration(each.measures.wait_error),
            _duration(each.measures.median_wait_error),
            _number(each.measures.turnaround_deviation, "{:,.0f} %"),
            _number(each.measures.planned_into_gap, "{:.1%}"),
            _duration(each.measures.node_notice),
            _number(each.measures.node_notice_share, "{:.1%}"),
        )
        for each in outcomes
        if each.measures.wait_error is not None
    ]
    return text_table(heads, lines) if lines else ""


NARROW_PREDICTABILITY_LEGEND = """\
error: of the wait predicted at arrival, mean and median; deviation: of the
turnaround predicted then; in gap: jobs planned at arrival before the planned
start of another waiting job; known: how long before its start a job's nodes
were known, and for which share of the jobs.
"""


def _duration(seconds: float | None) -> str:
    return "-" if seconds is None else duration(seconds)


SHORT = {"bounded_slowdown": "bounded", "weighted_wait": "weighted", "utilisation": "used"}
"""Names of measures as in the head of the narrow table."""


def narrow_noise_table(outcomes: Sequence[Outcome]) -> str:
    """A line for each measure of every combination in 80 columns."""
    heads = ("policy", "estimates", "measure", "mean", "least", "most", "differs")
    return text_table(
        heads,
        [_narrow_noise_line(each, outcomes[0], name) for each in outcomes for name in COMPARED],
    )


def _is_clear(each: Outcome, first: Outcome, name: str) -> bool:
    """Whether a measure differs from that of the first combination by more than noise."""
    return not each.spread(name).overlaps(first.spread(name))


def _shows_noise(first: Outcome) -> bool:
    """Whether there are enough repetitions to say what is noise."""
    return len(first.shaken) >= FEWEST_REPETITIONS


def _narrow_noise_line(each: Outcome, first: Outcome, name: str) -> tuple[str, ...]:
    spread = each.spread(name)
    differs = "yes" if _is_clear(each, first, name) else "no"
    return (
        each.schedule.semantics.policy,
        each.schedule.estimates[:NARROW_NAME],
        SHORT.get(name, name),
        *(_said(name, value) for value in (spread.mean, spread.least, spread.greatest)),
        "-" if each is first or not _shows_noise(first) else differs,
    )


def _said(name: str, value: float) -> str:
    """A measure as people say it."""
    if name == "utilisation":
        return f"{value:.1%}"
    return duration(value) if name == "wait" else f"{value:,.{0 if value >= 1000 else 2}f}"


NARROW_NOISE_LEGEND = """\
Mean, least and most of the repetitions; differs: the least is above the most of
the first combination, or the most below its least, which is more than noise; -
of fewer than 3 repetitions, which do not show what is noise.
"""


def noise_table(outcomes: Sequence[Outcome]) -> str:
    """Mean and range over the shaken workloads, and the differences that are more than noise."""
    heads = ("policy", "estimates", *(f"{name} [range]" for name in COMPARED), "against the first")
    return text_table(heads, [_noise_line(each, outcomes[0]) for each in outcomes])


def _noise_line(each: Outcome, first: Outcome) -> tuple[str, ...]:
    spreads = [each.spread(name) for name in COMPARED]
    clear = [name.replace("_", " ") for name in COMPARED if _is_clear(each, first, name)]
    verdict = f"differs in {', '.join(clear)}" if clear else "all within the noise"
    if not _shows_noise(first):
        verdict = "too few repetitions"
    return (
        each.schedule.semantics.policy,
        each.schedule.estimates,
        *(f"{s.mean:,.4g} [{s.least:,.4g}, {s.greatest:,.4g}]" for s in spreads),
        "-" if each is first else verdict,
    )


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def tables(outcomes: Sequence[Outcome], *, wide: bool = True) -> str:
    """All tables that are not empty, with their legends; narrow ones fit 80 columns."""
    return "\n".join(_all_columns(outcomes) if wide else _narrow(outcomes))


def _all_columns(outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield from (table(outcomes), LEGEND)
    if predictability := predictability_table(outcomes):
        yield from (predictability, PREDICTABILITY_LEGEND)
    if outcomes[0].shaken:
        yield noise_table(outcomes)


def _narrow(outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield from (narrow_table(outcomes), NARROW_LEGEND)
    if predictability := narrow_predictability_table(outcomes):
        yield from (predictability, NARROW_PREDICTABILITY_LEGEND)
    if outcomes[0].shaken:
        yield from (narrow_noise_table(outcomes), NARROW_NOISE_LEGEND)
