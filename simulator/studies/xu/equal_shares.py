"""Tuned knn against untuned knn and other methods, where they underestimate equally often.

Reference:
    Xu L., Xiong M. and Xiao Y., "On-line Prediction of Job Execution Time Using Schedule
    Historical Data", Application Research of Computers 37(3), 2019, section 3.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from msgspec.structs import replace

from predictors.jobs import Completion
from predictors.measures import Seconds
from predictors.methods.knn import KnnParameters
from predictors.methods.last_two import LastTwo
from predictors.methods.max_usage import MaxUsage
from predictors.methods.percentile import Percentile
from predictors.tuning.plan import TuningPlan
from simulator.replay.trace_replay import InProcess, replay
from simulator.replay.tradeoff import Curve, Point, curve_of, point_of
from simulator.reports.tables import text_table
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
