"""Does tuning pay? Tuned knn against untuned knn and other methods, on one log.

Reference:
    Xu L., Xiong M. and Xiao Y., "On-line Prediction of Job Execution Time Using Schedule
    Historical Data", Application Research of Computers 37(3), 2019, section 3.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from predictors.jobs import Completion
from predictors.measures import Seconds
from predictors.methods.knn import KnnParameters
from predictors.methods.last_two import LastTwo
from predictors.methods.max_usage import MaxUsage
from predictors.methods.percentile import Percentile
from predictors.tuning.plan import TuningPlan
from simulator.replay.loop import InProcess, replay
from simulator.replay.tradeoff import Curve, Point, curve_of, point_of
from simulator.reports.tables import text_table
from simulator.studies.study import Played, Study, StudyError, Takes, runs_of, write_text
from simulator.studies.xu.published import (
    PAPER,
    PUBLISHED,
    PublishedComparison,
    compare_as_published,
    published_tables,
)
from simulator.studies.xu.retuning import Retuning

PENALTIES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
PERCENTILES = (50, 70, 80, 85, 90, 95, 100)
ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0)
BETAS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)

TUNED = "knn, tuned"
UNTUNED = "knn, untuned"
REFERENCES = ("max-usage", "last-two", "percentile=85")
"""At their shares of underestimated jobs, and at that of untuned knn, errors are compared."""

WITHIN_SECONDS = (60, 300, 1000, 3600, 10_000, 86_400)
STEPS = 10
"""Points of the error over the number of predicted jobs (the paper's Fig. 3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningComparison:
    """What one log showed.

    Attributes:
        jobs: how many were scored, those submitted after the first round.
        rounds: how many there were for each penalty.
        adopted: how many of these changed the parameters, by penalty.
        settings: single methods.
        curves: methods at several settings.
        within: share of absolute errors within so many seconds, by method (Fig. 2).
        errors_at: the least absolute error, and that which every per cent of the jobs does not
            exceed, by method (Fig. 2).
        running: mean absolute error after each tenth of the jobs, by method (Fig. 3).
    """

    jobs: int
    rounds: int
    adopted: Mapping[float, int]
    settings: Sequence[Point]
    curves: Sequence[Curve]
    within: Mapping[str, Sequence[float]]
    errors_at: Mapping[str, Sequence[float]]
    running: Mapping[str, Sequence[float]]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def compare(
    runs: Sequence[Completion],
    plan: TuningPlan,
    *,
    penalties: Sequence[float] = PENALTIES,
    progress: Callable[[], object] | None = None,
) -> TuningComparison:
    """Compare the methods on one log.

    Args:
        runs: the log.
        plan: of the rounds; its penalty is the one of ``within`` and ``running``.
        penalties: the points of the tuned curve.
        progress: called after each round of each penalty, and of tuning once.
    """
    retuning = Retuning(runs, plan.unsearched(KnnParameters()))
    scored = retuning.scored(plan)
    actual = np.array([run.runtime for run in runs])[scored]
    others = {name: found[scored] for name, found in other_methods(runs).items()}
    tuned = {
        penalty: retuning.retuned(replace(plan, penalty=penalty), progress=progress)
        for penalty in (*penalties, plan.penalty)
    }

    def fixed(**given: Any) -> Seconds:
        return retuning.fixed(KnnParameters(**given))[scored]

    once = retuning.retuned(plan, last_round=plan.jobs, progress=progress)
    shown = {
        TUNED: tuned[plan.penalty].predicted[scored],
        "knn, tuned once": once.predicted[scored],
        UNTUNED: fixed(),
        **{name: others[name] for name in ("requested", *REFERENCES)},
    }
    curves = [
        curve(TUNED, "penalty", {p: tuned[p].predicted[scored] for p in penalties}, actual),
        curve(UNTUNED, "beta", {beta: fixed(beta=beta) for beta in BETAS}, actual),
        curve(
            "knn, untuned, by alpha",
            "alpha",
            {alpha: fixed(alpha=alpha) for alpha in ALPHAS},
            actual,
        ),
        curve(
            "percentile",
            "percentile",
            {p: others[f"percentile={p}"] for p in PERCENTILES},
            actual,
        ),
    ]
    return TuningComparison(
        jobs=len(actual),
        rounds=len(retuning.rounds(plan)),
        adopted={penalty: tuned[penalty].adopted for penalty in penalties},
        settings=[point_of(name, predicted, actual) for name, predicted in shown.items()],
        curves=curves,
        within={name: shares_within(predicted, actual) for name, predicted in shown.items()},
        errors_at={name: error_quantiles(found, actual) for name, found in shown.items()},
        running={name: running_error(predicted, actual) for name, predicted in shown.items()},
    )


def other_methods(runs: Sequence[Completion]) -> dict[str, Seconds]:
    """Predictions of the other methods by name, in the order of the log."""
    players: dict[str, Any] = {"max-usage": MaxUsage(), "last-two": LastTwo()}
    for percentile in PERCENTILES:
        players[f"percentile={percentile}"] = Percentile(
            key="user", percentile=percentile, lower_bound=0.0, min_jobs=1
        )
    played = replay(runs, InProcess(players))
    return {"requested": played.requested} | {
        name: answers.predicted for name, answers in played.answers.items()
    }


def curve(name: str, knob: str, predicted: Mapping[float, Seconds], actual: Seconds) -> Curve:
    """A method at several positions of one knob."""
    points = [point_of(f"{knob}={at:g}", found, actual) for at, found in predicted.items()]
    return curve_of(name, points)


def shares_within(predicted: Seconds, actual: Seconds) -> list[float]:
    """Share of the absolute errors within each of WITHIN_SECONDS."""
    errors = np.abs(predicted - actual)
    return [float((errors <= seconds).mean()) for seconds in WITHIN_SECONDS]


def error_quantiles(predicted: Seconds, actual: Seconds) -> list[float]:
    """The absolute errors at 0%, 1%, ... 100% of the jobs."""
    return [float(each) for each in np.quantile(np.abs(predicted - actual), np.arange(101) / 100)]


def running_error(predicted: Seconds, actual: Seconds) -> list[float]:
    """Mean absolute error of the first tenth of the jobs, of the first two, and so on."""
    errors = np.abs(predicted - actual)
    stops = np.linspace(0, len(errors), STEPS + 1).astype(int)[1:]
    return [float(errors[:stop].mean()) for stop in stops]


def tables(found: TuningComparison) -> str:
    """The comparison as tables of text."""
    heading = (
        f"{found.jobs:,} jobs scored; {found.rounds} rounds per penalty, adopted: "
        + ", ".join(f"{count} at {penalty:g}" for penalty, count in found.adopted.items())
    )
    return "\n".join([heading, "", equal_shares(found), all_points(found), errors_within(found)])


def equal_shares(found: TuningComparison) -> str:
    """Error of every curve where it underestimates as many jobs as a reference does."""
    settings = {point.setting: point for point in found.settings}
    heads = ["underestimated as by", "share", "its error", *(one.name for one in found.curves)]
    rows = []
    for name in (UNTUNED, *REFERENCES):
        reference = settings[name]
        cells = [seconds(one.error_at(reference.underestimation_rate)) for one in found.curves]
        rows.append([name, share(reference.underestimation_rate), seconds(reference.error), *cells])
    return text_table(heads, rows)


def all_points(found: TuningComparison) -> str:
    """Every method at every setting."""
    rows = [[p.setting, share(p.underestimation_rate), seconds(p.error)] for p in found.settings]
    for one in found.curves:
        rows += [
            [f"{one.name}: {p.setting}", share(p.underestimation_rate), seconds(p.error)]
            for p in one.points
        ]
    return text_table(["method", "underestimated", "mean absolute error"], rows)


def errors_within(found: TuningComparison) -> str:
    """The paper's Figures 2 and 3 in numbers."""
    within = text_table(
        ["share of errors within", *(f"{limit:,} s" for limit in WITHIN_SECONDS)],
        [[name, *map(share, values)] for name, values in found.within.items()],
    )
    tenths = [f"{100 * step // STEPS}%" for step in range(1, STEPS + 1)]
    running = text_table(
        ["error over the first", *tenths],
        [[name, *map(seconds, values)] for name, values in found.running.items()],
    )
    return f"{within}\n{running}"


def seconds(value: float) -> str:
    """A duration, or that there is none."""
    return "-" if np.isnan(value) else f"{value:,.0f}"


def share(value: float) -> str:
    """A share in percent."""
    return f"{value:.1%}"


class Part(NamedTuple):
    """One log.

    Attributes:
        trace: path of the log.
        limit: jobs after cleaning, or all.
        year: only jobs submitted in this calendar year (UTC), or all.
        plan: of the rounds.
        as_published: every round is used, as in the paper; else a comparison at equal shares.
    """

    trace: str
    limit: int | None
    year: int | None
    plan: TuningPlan
    as_published: bool = False


def parts(
    paths: Sequence[Path],
    limit: int | None,
    *,
    year: int | None = None,
    as_published: bool = False,
    **plan: Any,
) -> list[Part]:
    """A part for each log.

    Args:
        paths: of the logs.
        limit: jobs of each after cleaning, or all.
        year: only jobs submitted in this calendar year (UTC), or all.
        as_published: as the paper does, with its batches.
        plan: fields of TuningPlan; those that are None have their defaults.

    Raises:
        StudyError: the plan makes no sense.
    """
    given = {name: value for name, value in plan.items() if value is not None}
    try:
        chosen = replace(PUBLISHED if as_published else TuningPlan(), **given)
        return [Part(str(path), limit, year, chosen, as_published) for path in paths]
    except ValueError as error:
        raise StudyError(str(error)) from error


def play(part: Part) -> TuningComparison | PublishedComparison:
    """Compare the methods on a log.

    Raises:
        StudyError: the log is too short for one round.
    """
    runs = [run for run in runs_of(part.trace, part.limit) if _in_year(run, part.year)]
    published = part.plan.history + part.plan.training
    if len(runs) <= (published if part.as_published else part.plan.fewest_jobs):
        raise StudyError(f"{part.trace}: only {len(runs)} jobs.")
    if part.as_published:
        return compare_as_published(runs, part.plan)
    return compare(runs, part.plan)


def _in_year(run: Completion, year: int | None) -> bool:
    submitted = datetime.fromtimestamp(run.submission.submit_time, UTC)
    return year is None or submitted.year == year


def report(played: Played) -> str:
    """The tables of every log."""
    texts = [f"{_name(part)}\n{_tables(part, found)}" for part, found in played]
    return "\n".join([*texts, *([PAPER] if any(part.as_published for part, _ in played) else [])])


def _name(part: Part) -> str:
    return part.trace if part.year is None else f"{part.trace}, {part.year}"


def _tables(part: Part, found: TuningComparison | PublishedComparison) -> str:
    if isinstance(found, PublishedComparison):
        return published_tables(found, part.plan)
    return tables(found)


def records(played: Played) -> dict[str, Any]:
    """The comparisons by log."""
    return {_name(part): found.as_dict() for part, found in played}


def write(directory: Path, title: str, text: str, played: Played) -> None:
    """Write the tables, and the curves of every log as SVG."""
    from simulator.studies.xu.pictures import write_pictures  # noqa: PLC0415 - needs matplotlib

    write_text(directory, title, text, played)
    for part, found in played:
        if isinstance(found, PublishedComparison):
            continue
        write_pictures(found, directory, Path(part.trace).name.split(".")[0])


STUDY = Study(
    title="Tuned knn beside untuned knn and other methods (Xu et al. 2019, section 3)",
    takes=Takes.TRACES,
    runs=parts,
    play=play,
    report=report,
    records=records,
    write=write,
)
