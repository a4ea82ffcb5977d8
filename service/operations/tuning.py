"""Requests tuning rounds, and reports their results."""

import asyncio
from typing import Any

import msgspec

from predictors.tuning import plan as plan_of_round
from service.contract.answers import (
    ChangeAnswer,
    TrialAnswer,
    TuningAnswer,
    TuningsAnswer,
    VerdictAnswer,
)
from service.contract.bodies import TuningRequest
from service.errors import TooShortHistoryError, UnknownTuningError
from service.store import Tuning
from service.worker.worker import Worker


class TuningRounds:
    """The tuning rounds of all clusters."""

    def __init__(self, worker: Worker) -> None:
        self._tunings = worker.store.tunings
        self._keeper = worker.tuning
        self._clock = worker.clock

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

    async def start(self, body: TuningRequest) -> TuningAnswer:
        """Request a round, which runs in another process.

        Raises:
            TooShortHistoryError: there are too few completions.
            StoreUnavailableError: the request cannot be stored now.
        """
        plan, now = self._keeper.plan, self._clock()
        try:
            tuning = await asyncio.to_thread(self._tunings.ask, body.cluster, plan, "request", now)
        except plan_of_round.TooShortHistoryError as error:
            raise TooShortHistoryError(str(error)) from error
        self._keeper.wake()
        return answer_of(tuning)


def answer_of(tuning: Tuning) -> TuningAnswer:
    """Return the answer about a round."""
    progress, outcome = tuning.progress or {}, tuning.outcome or {}
    costs = outcome.get("costs") or progress.get("costs", [])
    after = trial_of(outcome.get("after"))
    return TuningAnswer(
        tuning_id=tuning.tuning_id,
        cluster=tuning.cluster,
        state=tuning.state.value,
        origin=tuning.origin,
        plan=msgspec.to_builtins(tuning.plan),
        requested_at=tuning.asked_at,
        started_at=tuning.started_at,
        finished_at=tuning.finished_at,
        step=len(costs),
        steps=len(costs) if outcome else progress.get("steps", 0),
        costs=costs,
        best=after.parameters if after else progress.get("parameters"),
        before=trial_of(outcome.get("before")),
        after=after,
        adopted=outcome.get("adopted"),
        changes=[change_of(change) for change in outcome.get("changes", ())],
        error=tuning.error,
    )


def change_of(change: dict[str, Any]) -> ChangeAnswer:
    """Return the answer about a round's change of one subject."""
    return ChangeAnswer(
        subject=change["subject"],
        action=change["action"],
        before=change["before"],
        after=change["after"],
        verdict=change["verdict"] and verdict_of(change["verdict"]),
        review=change["review"] and verdict_of(change["review"]),
    )


def verdict_of(verdict: dict[str, Any]) -> VerdictAnswer:
    """Return the answer about a gain and its standard error."""
    return VerdictAnswer(
        jobs=verdict["cases"],
        gain=verdict["gain"],
        error=verdict["error"],
    )


def trial_of(trial: dict[str, Any] | None) -> TrialAnswer | None:
    """Return parameters and their errors as one flat record; None without a trial."""
    if trial is None:
        return None
    training, test = trial["training"], trial["test"]
    return TrialAnswer(
        parameters=trial["parameters"],
        training_error=training["mean_absolute_error"],
        training_underestimation_rate=training["underestimated"],
        test_error=test["mean_absolute_error"],
        test_underestimation_rate=test["underestimated"],
    )
