"""Does tuning pay? Tuned knn beside untuned knn and others, where they underestimate as often."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray
from tradeoff import Curve, Point, curve_of, point_of

from predictors.jobs import Completion
from predictors.measures import Seconds
from predictors.methods.knn import KnnParameters
from predictors.methods.last_two import LastTwo
from predictors.methods.max_usage import MaxUsage
from predictors.methods.percentile import Percentile
from predictors.tuning.adoption import Adopted, adopt_or_revert
from predictors.tuning.batch import Batch
from predictors.tuning.knn_tunable import SEARCHES, KnnTunable, TuningJobs
from predictors.tuning.plan import TuningPlan
from predictors.tuning.search import SearchResult, Survey, exhaustive, survey
from simulator.cli.experiment import run_script
from simulator.cli.study_table import TRACES, Experiment, option
from simulator.replay.trace_replay import InProcess, replay
from simulator.reports.tables import text_table
from simulator.studies.study import LogPart, Played, Study, Takes
from simulator.studies.xu import published
from simulator.studies.xu.published import STEPS, TUNED, Retuning, jobs_of, running_error

PENALTIES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
PERCENTILES = (50, 70, 80, 85, 90, 95, 100)
ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0)
BETAS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)

UNTUNED = "knn, untuned"
REFERENCES = ("max-usage", "last-two", "percentile=85")
"""At their shares of underestimated jobs, and at that of untuned knn, errors are compared."""

WITHIN_SECONDS = (60, 300, 1000, 3600, 10_000, 86_400)

BETTER = TuningPlan(errors=0)
"""A round adopts whatever is better on the test jobs, however little."""


@dataclass(frozen=True, slots=True)
class Retuned:
    """A log that was played.

    Attributes:
        predicted: of every job in the order of the log, in seconds.
        adopted: number of rounds that changed the parameters.
    """

    predicted: Seconds
    adopted: int


class ServiceRounds(Retuning):
    """Plays a log to a knn whose parameters are tuned by the rounds of the service.

    A round is due after every t2 jobs that have ended, the first after as few as tuning needs. It
    adopts only parameters that beat those in force on its test jobs.
    """

    def __init__(self, runs: Sequence[Completion], unsearched: KnnParameters) -> None:
        super().__init__(runs, unsearched)
        self._surveys: dict[tuple[int, int, tuple[str, ...]], Survey] = {}

    def rounds(self, plan: TuningPlan) -> range:
        """Numbers of ended jobs after which there is a round."""
        return range(plan.fewest_jobs, len(self._ends), plan.test)

    def scored(self, plan: TuningPlan) -> NDArray[np.bool_]:
        """The jobs that were submitted after the first round, in the order of the log."""
        return self._in_log_order(self._submitted_from(plan.fewest_jobs))

    def retuned(
        self,
        plan: TuningPlan,
        *,
        last_round: int | None = None,
    ) -> Retuned:
        """Predictions by parameters that are tuned.

        Args:
            plan: of every round.
            last_round: no round after so many ended jobs; None goes on to the end of the log.
        """
        in_force = self._batch.unsearched
        predicted = self._batch.predictions(in_force)
        adopted = 0
        for ended in self.rounds(plan):
            if last_round is not None and ended > last_round:
                break
            jobs = self._divided(plan, ended)
            search = partial(self._searched, plan, ended)
            subject = KnnTunable(partial(_same, jobs), plan, search)
            change, held = adopt_or_revert(subject, Adopted(now=in_force), *subject.jobs(in_force))
            if change.action == "adopted":
                adopted += 1
                in_force = held.now
                later = np.flatnonzero(self._submitted_from(ended))
                predicted[later] = self._batch.select(later).predictions(in_force)
        return Retuned(self._in_log_order(predicted), adopted)

    def _searched(self, plan: TuningPlan, ended: int, training: Batch) -> SearchResult:
        """The search of one round; its survey is remembered for other penalties."""
        if plan.search != "exhaustive":
            return SEARCHES[plan.search](training, plan)

        def surveyor(batch: Batch, template: tuple[str, ...]) -> Survey:
            existing = self._surveys.get((ended, len(batch), template))
            if existing is None:
                existing = survey(batch, template)
                self._surveys[ended, len(batch), template] = existing
            return existing

        return exhaustive(training, plan, surveyor=surveyor)

    def _divided(self, plan: TuningPlan, ended: int) -> TuningJobs:
        """Training and test jobs of the round after ``ended`` jobs."""
        seen = min(ended, plan.jobs)
        training_from, test_from = plan.divide(seen)
        first = ended - seen
        return TuningJobs(
            self._batch.select(slice(first + training_from, first + test_from)),
            self._batch.select(slice(first + test_from, ended)),
        )


def _same(jobs: TuningJobs, _: KnnParameters) -> TuningJobs:
    return jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningComparison:
    """Results of one log.

    Attributes:
        jobs: how many were scored, those submitted after the first round.
        rounds: how many there were for each penalty.
        adopted: how many of these changed the parameters, by penalty.
        settings: single methods.
        curves: methods at several settings.
        within: share of absolute errors within so many seconds, by method (Fig. 2).
        running: mean absolute error after each tenth of the jobs, by method (Fig. 3).
    """

    jobs: int
    rounds: int
    adopted: Mapping[float, int]
    settings: Sequence[Point]
    curves: Sequence[Curve]
    within: Mapping[str, Sequence[float]]
    running: Mapping[str, Sequence[float]]


def compare(
    runs: Sequence[Completion],
    plan: TuningPlan,
    *,
    penalties: Sequence[float] = PENALTIES,
) -> TuningComparison:
    """Compare the methods on one log.

    Args:
        runs: the log.
        plan: of the rounds; its penalty is the one of ``within`` and ``running``.
        penalties: the points of the tuned curve.
    """
    retuning = ServiceRounds(runs, plan.unsearched(KnnParameters()))
    scored = retuning.scored(plan)
    actual = np.array([run.runtime for run in runs])[scored]
    others = {name: found[scored] for name, found in other_methods(runs).items()}
    tuned = {
        penalty: retuning.retuned(replace(plan, penalty=penalty))
        for penalty in (*penalties, plan.penalty)
    }

    def fixed(**given: Any) -> Seconds:
        return retuning.fixed(KnnParameters(**given))[scored]

    once = retuning.retuned(plan, last_round=plan.jobs)
    compared = {
        TUNED: tuned[plan.penalty].predicted[scored],
        "knn, tuned once": once.predicted[scored],
        UNTUNED: fixed(),
        **{name: others[name] for name in ("requested", *REFERENCES)},
    }
    return TuningComparison(
        jobs=len(actual),
        rounds=len(retuning.rounds(plan)),
        adopted={penalty: tuned[penalty].adopted for penalty in penalties},
        settings=[point_of(name, predicted, actual) for name, predicted in compared.items()],
        curves=[
            curve(TUNED, "penalty", {p: tuned[p].predicted[scored] for p in penalties}, actual),
            *reference_curves(fixed, others, actual),
        ],
        within={name: shares_within(predicted, actual) for name, predicted in compared.items()},
        running={name: running_error(predicted, actual) for name, predicted in compared.items()},
    )


def reference_curves(
    fixed: Callable[..., Seconds], others: Mapping[str, Seconds], actual: Seconds
) -> list[Curve]:
    """Return the curves of the methods that no round tunes.

    Args:
        fixed: predicts with a knn of these parameters.
        others: predictions of the other methods.
        actual: runtimes, in seconds.
    """
    by_alpha = {alpha: fixed(alpha=alpha) for alpha in ALPHAS}
    by_percentile = {each: others[f"percentile={each}"] for each in PERCENTILES}
    return [
        curve(UNTUNED, "beta", {beta: fixed(beta=beta) for beta in BETAS}, actual),
        curve("knn, untuned, by alpha", "alpha", by_alpha, actual),
        curve("percentile", "percentile", by_percentile, actual),
    ]


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


def log_tables(found: TuningComparison) -> str:
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


def play(part: LogPart) -> TuningComparison:
    """Compare the methods on a log."""
    return compare(jobs_of(part), part.options.plan)


def tables(played: Played) -> str:
    """The tables of every log."""
    return "\n".join(f"{part.trace}\n{log_tables(found)}" for part, found in played)


STUDY = Study(
    title="Tuned knn beside untuned knn and other methods, where they underestimate equally often",
    takes=Takes.TRACES,
    runs=partial(published.parts, first=BETTER),
    play=play,
    tables=tables,
)

EXPERIMENT = Experiment(
    "tuning",
    """Compare tuned knn with untuned knn, requests, last-two, max-usage and percentile.

    After every t2 jobs that have ended, parameters are searched on the t1 jobs before the
    last t2, and adopted if they beat those in force on these. Methods are compared where they
    underestimate equally often, as the penalty on underestimates moves the tuned one along
    its trade-off.

    For example:

        python research/tuning.py SDSC-SP2-1998-4.2-cln.swf.gz
    """,
    TRACES,
    {
        "year": option(int | None, help="Only jobs submitted in this year."),
        **{
            name: option(kind | None, help="Of the plan of tuning.")
            for name, kind in {
                "history": int,
                "training": int,
                "test": int,
                "penalty": float,
                "fitness": str,
                "search": str,
                "generations": int,
                "population": int,
                "distance": str,
            }.items()
        },
    },
)

if __name__ == "__main__":
    run_script(EXPERIMENT, STUDY)
