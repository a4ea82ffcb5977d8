"""Shows what the history holds: clusters, jobs that have ended, and rounds of tuning."""

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Literal, cast

import msgspec
from msgspec import Struct

from predictors.jobs import Basis, Prediction, in_agreement
from predictors.tuning.adoption import RoundChange, Verdict
from predictors.tuning.knn_tunable import Trial
from service.auth import Caller
from service.contract.answers import (
    ChangeAnswer,
    Subject,
    TrialAnswer,
    TuningAnswer,
    TuningsAnswer,
    VerdictAnswer,
)
from service.contract.queue_answers import EarlierRunAnswer, EndedJobAnswer, EndedRunAnswer
from service.errors import UnknownJobError, UnknownTuningError
from service.store import EndedRun, Store, StoreError, Tuning
from service.worker.worker import Worker
from terminal.words import in_words

UNRECORDED = Basis(jobs=0, reason="unrecorded")
"""Basis of a recorded prediction: the store does not keep it, and no answer shows it."""

EARLIER_RUNS = 10
"""Number of earlier runs of the same name that are shown."""

SUBJECTS = {
    "knn": "parameters of knn",
    "forest": "trees of forest",
    "price": "price of an underestimate",
    "auto": "who answers for auto",
}

VerdictColour = Literal["good", "careful", "bad", ""]
"""The colour of a verdict."""

KINDS: dict[str, VerdictColour] = {
    "adopted": "good",
    "learned": "good",
    "kept": "",
    "dropped": "careful",
    "renewed": "",
}


class ChangeRow(Struct, frozen=True, kw_only=True):
    """Outcome of a round for one thing that is learned of the cluster."""

    subject: str
    action: str
    kind: VerdictColour
    before: str
    after: str
    gain: str


def read_ended_job(store: Store, cluster: str, job_id: str, caller: Caller) -> EndedJobAnswer:
    """Read the runs of a job, newest first, and earlier runs like its last one; this blocks.

    Raises:
        UnknownJobError: no run of this id has ended, or the caller may not see it.
    """
    found = store.ended_jobs.runs_of(cluster, job_id)
    runs = [each for each in found if caller.can_see(each.run.submission.user)]
    if not runs:
        raise UnknownJobError(f"No job {job_id} of this cluster is in the queue or has ended.")
    earlier = store.ended_jobs.earlier_runs(runs[0].run, EARLIER_RUNS)
    return EndedJobAnswer(
        cluster=cluster,
        job_id=job_id,
        runs=[run_answer(each) for each in runs],
        earlier=[
            EarlierRunAnswer(
                job_id=run.submission.job_id,
                requested_walltime=run.submission.requested_walltime,
                runtime=run.runtime,
                end_time=run.end_time,
            )
            for run in earlier
        ],
    )


def run_answer(ended: EndedRun) -> EndedRunAnswer:
    """Return a run and its prediction as the API answers them."""
    run, job, shown = ended.run, ended.run.submission, shown_prediction(ended)
    return EndedRunAnswer(
        user=job.user,
        project=job.project,
        queue=job.queue,
        application=job.application,
        requested_walltime=job.requested_walltime,
        requested_processors=job.requested_processors,
        submit_time=job.submit_time,
        start_time=run.start_time,
        end_time=run.end_time,
        wait=run.start_time - job.submit_time,
        runtime=run.runtime,
        status=run.status,
        predicted_walltime=shown.predicted_walltime if shown else None,
        likely=shown.median if shown else None,
        method=shown.method if shown else None,
        interval=shown.interval if shown else None,
    )


def shown_prediction(ended: EndedRun) -> Prediction | None:
    """Return the prediction that was recorded for a run, as it was shown; None without one."""
    recorded = ended.prediction
    if recorded is None:
        return None
    return in_agreement(
        Prediction(
            predicted_walltime=recorded.predicted_walltime,
            requested_walltime=ended.run.submission.requested_walltime,
            method=recorded.method,
            basis=UNRECORDED,
            interval=recorded.interval,
            median=recorded.median,
        )
    )


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


def change_row(change: ChangeAnswer) -> ChangeRow:
    """Return a change in words; one that was dropped is judged on the runs since its adoption."""
    judged = change.review if change.action == "dropped" else change.verdict
    return ChangeRow(
        subject=SUBJECTS.get(change.subject, change.subject),
        action=change.action,
        kind=KINDS[change.action],
        before=in_words(change.before),
        after=in_words(change.after),
        gain=gain_text(judged),
    )


def gain_text(verdict: VerdictAnswer | None) -> str:
    """Return the gain in cost on runs that a change was not made on, with twice its noise."""
    if verdict is None:
        return "-"
    noise = "" if verdict.error is None else f" ± {2 * verdict.error:.1%}"
    return f"{verdict.gain:+.1%}{noise} on {verdict.jobs:,} runs"


class KnownClusters:
    """Finds the names of clusters with runs, predictions or a queue.

    Args:
        worker: whose history and queues are meant.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    @property
    def queued(self) -> list[str]:
        """Return the clusters that have a queue."""
        return [queue.snapshot.cluster for queue in self._worker.queues.all]

    async def names(self) -> list[str]:
        """Return all names, sorted; those of predictions without runs only if the store answers."""
        known = {*self._worker.live.names(), *self.queued}
        with suppress(StoreError):
            known |= {*await asyncio.to_thread(self._stored)}
        return sorted(known)

    def _stored(self) -> list[str]:
        runs = self._worker.store.past_runs
        return [*runs.clusters(), *runs.predicted_clusters()]


def usual_cluster(names: Sequence[str], queued: Collection[str]) -> str | None:
    """Return the only cluster, else the only one with a queue; None without any or with several."""
    for found in (names, queued):
        if len(found) == 1:
            return next(iter(found))
    return None
