"""Shows jobs that have ended: requested, planned, ran, and earlier runs like them."""

from predictors.jobs import Basis, Prediction, in_agreement
from service.auth import Caller
from service.contract.queue_answers import EarlierRunAnswer, EndedJobAnswer, EndedRunAnswer
from service.errors import UnknownJobError
from service.store import EndedRun, Store

UNRECORDED = Basis(jobs=0, reason="unrecorded")
"""Basis of a recorded prediction: the store does not keep it, and no answer shows it."""

EARLIER_RUNS = 10
"""Number of earlier runs of the same name that are shown."""


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
