"""Simulates several policies with several estimates, and compares them in tables."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from simulator.reports.tables import Column, seconds_columns, table_of
from simulator.scheduling.estimates import Estimates
from simulator.scheduling.measures import Measures, measure
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import Schedule, simulate
from simulator.scheduling.workload import Workload, prepare
from simulator.traces.shake import FEWEST_REPETITIONS, Spread, shaken
from simulator.traces.trace import Trace
from terminal.words import duration

COMPARED = ("wait", "bounded_slowdown", "weighted_wait", "utilisation")
"""The measures whose noise shaking shows."""

OUTLIVED = {"corrected": "outlived"}
"""A job that outlives an estimate gets a corrected one; tables and JSON say outlived."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One policy with one source of estimates.

    Attributes:
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

    def workload(self, trace: Trace, workload: Workload, repetition: int) -> Workload:
        """Return the shaken workload of a repetition; the same in every comparison."""
        return prepare(
            shaken(trace, self.seconds, repetition),
            processors=workload.processors_of_machine * (workload.cores_per_node or 1),
            cores_per_node=workload.cores_per_node,
            overrun=workload.overrun,
        )


class Combination(NamedTuple):
    """The rules of a policy with a source of estimates, by its name."""

    semantics: Semantics
    estimates: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Input of the simulations that are compared; each begins without any history.

    Attributes:
        trace: the log before it is prepared, which is shaken.
        workload: the log as the scheduler receives it.
        shaking: moves of submissions; None for none.
        source: returns a source of estimates by its name.
        progress: called with the number of jobs that were just submitted, in this process only.
        keeps: whether schedules hold the answers of methods.
    """

    trace: Trace
    workload: Workload
    shaking: Shaking | None = None
    source: Callable[[str], Estimates] = Estimates.named
    progress: Callable[[int], object] | None = None
    keeps: bool = False

    def tasks(self, combinations: Sequence[Combination]) -> "list[Task]":
        """Return the simulations of each combination: the log as it is, then its repetitions."""
        repetitions = range(self.shaking.repeat if self.shaking else 0)
        return [Task(each, moved) for each in combinations for moved in (None, *repetitions)]

    def outcomes(self, results: Iterable[Schedule | Measures]) -> list[Outcome]:
        """Group the results of the tasks, in their order, by combination."""
        found: list[tuple[Schedule, list[Measures]]] = []
        for each in results:
            if isinstance(each, Schedule):
                found.append((replace(each, workload=self.workload), []))
            else:
                found[-1][1].append(each)
        return [Outcome(schedule, measure(schedule), repeated) for schedule, repeated in found]


class Task(NamedTuple):
    """A simulation: a combination, and the repetition of the shaken log; None for the log."""

    combination: Combination
    repetition: int | None

    @property
    def label(self) -> str:
        """Policy and estimates."""
        return f"{self.combination.semantics.policy}, {self.combination.estimates}"


def simulated(comparison: Comparison, task: Task) -> Schedule | Measures:
    """Return the schedule of the log as it is, or the measures of a repetition."""
    semantics, name = task.combination
    workload, shaking = comparison.workload, comparison.shaking
    if shaking and task.repetition is not None:
        workload = shaking.workload(comparison.trace, workload, task.repetition)
    keeps = comparison.keeps and task.repetition is None
    source = replace(comparison.source(name), keeps=keeps)
    schedule = simulate(workload, semantics, source, progress=comparison.progress)
    return schedule if task.repetition is None else measure(schedule)


def outcome(
    workload: Workload, semantics: Semantics, estimates: Callable[[], Estimates]
) -> Outcome:
    """Simulate ``workload`` once."""
    schedule = simulate(workload, semantics, estimates())
    return Outcome(schedule, measure(schedule))


class _Noise(NamedTuple):
    """A measure of a combination in the table of noise, beside the first combination."""

    outcome: Outcome
    first: Outcome
    measure: str

    @property
    def spread(self) -> Spread:
        return self.outcome.spread(self.measure)

    def number(self, value: float) -> str:
        """A value of the measure as people say it."""
        if self.measure == "utilisation":
            return f"{value:.1%}"
        if self.measure == "wait":
            return duration(value, beside=self.spread.mean)
        return f"{value:,.{0 if value >= 1000 else 2}f}"

    @property
    def differs(self) -> str:
        """Whether the difference from the first combination is more than noise."""
        if self.outcome is self.first or len(self.first.shaken) < FEWEST_REPETITIONS:
            return "-"
        return "no" if self.spread.overlaps(self.first.spread(self.measure)) else "yes"


def _text(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


COMBINATION: Sequence[Column[Outcome]] = (
    Column("policy", lambda each: each.schedule.semantics.policy),
    Column("estimates", lambda each: each.schedule.estimates, wraps=True),
)

SCHEDULES: Sequence[Column[Outcome]] = (
    *COMBINATION,
    *seconds_columns("wait", lambda each: each.measures.wait, "mean wait"),
    *seconds_columns("median", lambda each: each.measures.median_wait, "median wait"),
    Column("slowdown", lambda each: f"{each.measures.slowdown:,.1f}", view="wide"),
    Column(
        "bounded", lambda each: f"{each.measures.bounded_slowdown:,.2f}", "bounded slowdown (10 s)"
    ),
    Column(
        "weighted",
        lambda each: f"{each.measures.weighted_wait:,.0f}",
        "wait weighted by priority at the start (Tang Eq 4)",
        "wide",
    ),
    Column(
        "backfilled",
        lambda each: f"{each.measures.backfilled:.1%}",
        "jobs that passed a waiting one",
    ),
    Column(
        "used",
        lambda each: f"{each.measures.utilisation:.1%}",
        "processor time of the makespan",
    ),
    Column(
        "outlived",
        lambda each: f"{each.measures.corrected:.1%}",
        "jobs that outlived an estimate",
    ),
    Column(
        "jobs/s", lambda each: f"{each.measures.jobs / each.schedule.seconds:,.0f}", view="wide"
    ),
)

PREDICTABILITY: Sequence[Column[Outcome]] = (
    *COMBINATION,
    *seconds_columns(
        "error",
        lambda each: each.measures.wait_error,
        "mean error of the wait predicted at arrival",
    ),
    *seconds_columns("median", lambda each: each.measures.median_wait_error, "its median"),
    Column(
        "deviation",
        lambda each: _text(each.measures.turnaround_deviation, "{:,.0f} %"),
        "of the turnaround predicted then",
    ),
    Column(
        "in gap",
        lambda each: _text(each.measures.planned_into_gap, "{:.1%}"),
        "jobs planned at arrival before the planned start of another waiting job",
    ),
    *seconds_columns(
        "T_node",
        lambda each: each.measures.node_notice,
        "time for which a job's nodes were known before its start",
    ),
    Column("T_node > 0", lambda each: _text(each.measures.node_notice_share, "{:.1%}")),
)
"""Predictions at arrival, under the policies that make them."""

NOISE: Sequence[Column[_Noise]] = (
    Column("policy", lambda row: row.outcome.schedule.semantics.policy),
    Column("estimates", lambda row: row.outcome.schedule.estimates, wraps=True),
    Column("measure", lambda row: row.measure.replace("_", " ")),
    Column("mean", lambda row: row.number(row.spread.mean), "of the repetitions, as the next two"),
    Column("least", lambda row: row.number(row.spread.least)),
    Column("most", lambda row: row.number(row.spread.greatest)),
    Column(
        "differs",
        lambda row: row.differs,
        "the least is above the most of the first combination, or the most below its least, which "
        f"is more than noise; - with fewer than {FEWEST_REPETITIONS} repetitions",
    ),
)


def tables(outcomes: Sequence[Outcome], *, wide: bool = True) -> str:
    """All tables that are not empty, with their legends; see ``table_of``."""
    parts = [table_of(SCHEDULES, outcomes, wide=wide)]
    if predicted := [each for each in outcomes if each.measures.wait_error is not None]:
        parts.append(table_of(PREDICTABILITY, predicted, wide=wide))
    if outcomes[0].shaken:
        rows = [_Noise(each, outcomes[0], name) for each in outcomes for name in COMPARED]
        parts.append(table_of(NOISE, rows, wide=wide))
    return "\n".join(parts)
