"""Reports the results of tuning rounds."""

import asyncio
from typing import cast

import msgspec

from predictors.tuning.adoption import RoundChange, Verdict
from predictors.tuning.knn_tunable import Trial
from service.contract.answers import (
    ChangeAnswer,
    Subject,
    TrialAnswer,
    TuningAnswer,
    TuningsAnswer,
    VerdictAnswer,
)
from service.errors import UnknownTuningError
from service.store import Tuning
from service.worker.worker import Worker


class TuningRounds:
    """The tuning rounds of all clusters."""

    def __init__(self, worker: Worker) -> None:
        self._tunings = worker.store.tunings

    async def of_cluster(self, cluster: str) -> TuningsAnswer:
        """Return the latest rounds of a cluster."""
        found = await asyncio.to_thread(self._tunings.of_cluster, cluster)
        return TuningsAnswer(tunings=list(map(answer_of, found)))

    async def one(self, tuning_id: str) -> TuningAnswer:
        """Return a round.

        Raises:
            UnknownTuningError: there is no round of this id.
        """
        found = await asyncio.to_thread(self._tunings.find, tuning_id)
        if found is None:
            raise UnknownTuningError(f"There is no round of tuning {tuning_id}.")
        return answer_of(found)


def answer_of(tuning: Tuning) -> TuningAnswer:
    """Return the answer about a round."""
    outcome = tuning.outcome
    knn = outcome.knn if outcome else None
    return TuningAnswer(
        tuning_id=tuning.tuning_id,
        cluster=tuning.cluster,
        state=tuning.state.value,
        origin=tuning.origin,
        plan=msgspec.to_builtins(tuning.plan),
        started_at=tuning.started_at,
        finished_at=tuning.finished_at,
        costs=list(knn.costs) if knn else [],
        before=trial_of(knn.before) if knn else None,
        after=trial_of(knn.after) if knn else None,
        adopted=knn.adopted if knn else None,
        changes=[change_of(change) for change in outcome.changes] if outcome else [],
        error=tuning.error,
    )


def change_of(change: RoundChange) -> ChangeAnswer:
    """Return the answer about a round's change of one subject."""
    return ChangeAnswer(
        subject=cast("Subject", change.subject),
        action=change.action,
        before=change.before,
        after=change.after,
        verdict=None if change.verdict is None else verdict_of(change.verdict),
        review=None if change.review is None else verdict_of(change.review),
    )


def verdict_of(verdict: Verdict) -> VerdictAnswer:
    """Return the answer about a gain and its standard error."""
    return VerdictAnswer(jobs=verdict.cases, gain=verdict.gain, error=verdict.error)


def trial_of(trial: Trial) -> TrialAnswer:
    """Return parameters and their errors as one flat record."""
    return TrialAnswer(
        parameters=msgspec.to_builtins(trial.parameters),
        training_error=trial.training.mean_absolute_error,
        training_underestimation_rate=trial.training.underestimation_rate,
        test_error=trial.test.mean_absolute_error,
        test_underestimation_rate=trial.test.underestimation_rate,
    )
