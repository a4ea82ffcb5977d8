"""Plays a log to a knn whose parameters are tuned anew as jobs end."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from predictors.jobs import Completion
from predictors.measures import Seconds
from predictors.methods.knn import KnnParameters
from predictors.tuning.batch import batch_of
from predictors.tuning.knn_tunable import SEARCHES
from predictors.tuning.plan import TuningPlan

Number = TypeVar("Number", bound=np.generic)


def submitted_after(runs: Sequence[Completion], ended: int) -> int:
    """Number of jobs that are submitted after a number of runs has ended."""
    first = sorted(run.end_time for run in runs)[ended - 1]
    return sum((run.submission.submit_time or 0.0) >= first for run in runs)


class Retuning:
    """Predicts the jobs of a log by knn with parameters that stay, or that are searched anew.

    A round looks at the newest jobs in order of their end; its parameters are in force for jobs
    that are submitted from then on.

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

    def fixed(self, parameters: KnnParameters) -> Seconds:
        """Predictions by parameters that stay, in the order of the log."""
        return self._in_log_order(self._batch.predictions(parameters))

    def as_published(self, plan: TuningPlan) -> Seconds:
        """Predictions as Xu et al. 2019 make them (section 2.3): every round is used.

        After h + t1 jobs have ended and then after every t2, the parameters are searched on the
        newest t1 jobs. They are in force until the next round, whether or not they are better than
        those before. Jobs before the first round have the predictions of parameters that stay.

        Args:
            plan: of every round.

        Returns:
            Seconds, in the order of the log.
        """
        predicted = self._batch.predictions(self._batch.unsearched)
        rounds = self.rounds(plan)
        for ended in rounds:
            training = self._batch.select(slice(ended - plan.training, ended))
            parameters = SEARCHES[plan.search](training, plan).parameters
            later = self._submitted_from(ended)
            if ended + plan.test in rounds:
                later &= ~self._submitted_from(ended + plan.test)
            chosen = np.flatnonzero(later)
            predicted[chosen] = self._batch.select(chosen).predictions(parameters)
        return self._in_log_order(predicted)

    def rounds(self, plan: TuningPlan) -> range:
        """Numbers of ended jobs after which there is a round."""
        return range(plan.history + plan.training, len(self._ends), plan.test)

    def scored(self, plan: TuningPlan) -> NDArray[np.bool_]:
        """The jobs that were submitted after the first round, in the order of the log."""
        return self._in_log_order(self._submitted_from(plan.history + plan.training))

    def _submitted_from(self, ended: int) -> NDArray[np.bool_]:
        """The jobs submitted after a number of ends, in order of their end."""
        later: NDArray[np.bool_] = self._submits >= self._ends[ended - 1]
        return later

    def _in_log_order(self, values: NDArray[Number]) -> NDArray[Number]:
        placed = np.empty_like(values)
        placed[self._order] = values
        return placed
