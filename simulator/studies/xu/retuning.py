"""Plays a log to a knn whose parameters are tuned anew as jobs end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from predictors.jobs import Completion
from predictors.methods.knn import KnnParameters
from predictors.tuning.adopting import Held, settle
from predictors.tuning.batch import Batch, batch_of
from predictors.tuning.exhaustive import Survey, exhaustive, survey
from predictors.tuning.plan import TuningPlan
from predictors.tuning.round import SEARCHES, Divided, Parameters
from predictors.tuning.search import Found

Seconds = NDArray[np.float64]
Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Retuned:
    """A log that was played.

    Attributes:
        predicted: of every job in the order of the log, in seconds.
        parameters: in force after each round.
        adopted: how many rounds changed them.
    """

    predicted: Seconds
    parameters: Sequence[KnnParameters]
    adopted: int


def submitted_after(runs: Sequence[Completion], ended: int) -> int:
    """How many jobs are submitted when a number of runs has ended, or later."""
    first = sorted(run.end_time for run in runs)[ended - 1]
    return sum((run.submission.submit_time or 0.0) >= first for run in runs)


class Retuning:
    """A log, and what knn says of its jobs under parameters that stay or that are tuned.

    Rounds are those of the service: one is due after every t2 jobs that have ended, the first
    after as few as tuning needs; it looks at the newest jobs in order of their end; what it adopts
    is in force for jobs submitted from then on.

    Args:
        runs: the log, in any order.
        unsearched: how features are scaled and compared; by default as untuned knn does.
    """

    def __init__(self, runs: Sequence[Completion], unsearched: KnnParameters | None = None) -> None:
        ends = np.array([run.end_time for run in runs])
        self._order = np.argsort(ends, kind="stable")
        ordered = [runs[job] for job in self._order]
        self._ends = ends[self._order]
        self._submits = np.array([run.submission.submit_time for run in ordered])
        self._batch = batch_of(ordered, ordered, unsearched=unsearched)
        self._surveys: dict[tuple[int, int, tuple[str, ...]], Survey] = {}

    def rounds(self, plan: TuningPlan) -> range:
        """After how many ended jobs there is a round."""
        return range(plan.fewest_jobs, len(self._ends), plan.test)

    def scored(self, plan: TuningPlan) -> NDArray[np.bool_]:
        """The jobs that were submitted after the first round, in the order of the log."""
        return self._in_log_order(self._submits >= self._ends[plan.fewest_jobs - 1])

    def fixed(self, parameters: KnnParameters) -> Seconds:
        """Predictions by parameters that stay, in the order of the log."""
        return self._in_log_order(self._batch.predictions(parameters))

    def retuned(
        self,
        plan: TuningPlan,
        *,
        last_round: int | None = None,
        progress: Callable[[], object] | None = None,
    ) -> Retuned:
        """Predictions by parameters that are tuned.

        Args:
            plan: of every round.
            last_round: no round after so many ended jobs; None goes on to the end of the log.
            progress: called after each round.
        """
        in_force = self._batch.unsearched
        predicted = self._batch.predictions(in_force)
        history: list[KnnParameters] = []
        adopted = 0
        for ended in self.rounds(plan):
            if last_round is not None and ended > last_round:
                break
            jobs = self._divided(plan, ended)
            search = partial(self._searched, plan, ended)
            subject = Parameters(partial(_same, jobs), plan, search)
            change, held = settle(subject, Held(now=in_force), *subject.jobs(in_force))
            if change.action == "adopted":
                adopted += 1
                in_force = held.now
                later = np.flatnonzero(self._submits >= self._ends[ended - 1])
                predicted[later] = self._batch.select(later).predictions(in_force)
            history.append(in_force)
            if progress:
                progress()
        return Retuned(self._in_log_order(predicted), history, adopted)

    def as_published(
        self, plan: TuningPlan, *, progress: Callable[[], object] | None = None
    ) -> Retuned:
        """Predictions as Xu et al. 2019 make them (section 2.3): whatever a round finds is used.

        After h + t1 jobs have ended and then after every t2, the parameters are searched on the
        newest t1 jobs and are in force, without having to beat any others, until the next round.
        Jobs before the first round have the predictions of parameters that stay.

        Args:
            plan: of every round.
            progress: called after each round.
        """
        predicted = self._batch.predictions(self._batch.unsearched)
        history: list[KnnParameters] = []
        rounds = self.published_rounds(plan)
        for ended in rounds:
            training = self._batch.select(slice(ended - plan.training, ended))
            history.append(SEARCHES[plan.search](training, plan).parameters)
            later = self._submitted_from(ended)
            if ended + plan.test in rounds:
                later &= ~self._submitted_from(ended + plan.test)
            chosen = np.flatnonzero(later)
            predicted[chosen] = self._batch.select(chosen).predictions(history[-1])
            if progress:
                progress()
        return Retuned(self._in_log_order(predicted), history, len(history))

    def published_rounds(self, plan: TuningPlan) -> range:
        """After how many ended jobs there is a round of ``as_published``."""
        return range(plan.history + plan.training, len(self._ends), plan.test)

    def published_scored(self, plan: TuningPlan) -> NDArray[np.bool_]:
        """The jobs that were submitted after the first of these, in the order of the log."""
        return self._in_log_order(self._submitted_from(plan.history + plan.training))

    def _submitted_from(self, ended: int) -> NDArray[np.bool_]:
        """The jobs submitted after a number of ends, in order of their end."""
        later: NDArray[np.bool_] = self._submits >= self._ends[ended - 1]
        return later

    def _searched(self, plan: TuningPlan, ended: int, training: Batch) -> Found:
        """The search of one round; its survey is remembered for other penalties."""
        if plan.search != "exhaustive":
            return SEARCHES[plan.search](training, plan)

        def surveyor(batch: Batch, template: tuple[str, ...]) -> Survey:
            known = self._surveys.get((ended, len(batch), template))
            if known is None:
                known = survey(batch, template)
                self._surveys[ended, len(batch), template] = known
            return known

        return exhaustive(training, plan, surveyor=surveyor)

    def _divided(self, plan: TuningPlan, ended: int) -> Divided:
        """Training and test jobs of the round after ``ended`` jobs."""
        seen = min(ended, plan.jobs)
        training_from, test_from = plan.divide(seen)
        first = ended - seen
        return Divided(
            self._batch.select(slice(first + training_from, first + test_from)),
            self._batch.select(slice(first + test_from, ended)),
        )

    def _in_log_order(self, values: NDArray[Number]) -> NDArray[Number]:
        placed = np.empty_like(values)
        placed[self._order] = values
        return placed


def _same(jobs: Divided, _: KnnParameters) -> Divided:
    return jobs
