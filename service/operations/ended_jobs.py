"""Shows jobs that have ended: planned, ran, and why."""

from typing import Any

from predictors.jobs import milliseconds
from service.auth import Caller
from service.contract.answers import IntervalAnswer
from service.contract.queue_answers import EarlierRunAnswer, EndedJobAnswer, EndedRunAnswer
from service.errors import UnknownJobError
from service.store import EndedRun, ScoredPrediction, Store

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
    run, job = ended.run, ended.run.submission
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
        **prediction_fields(ended.prediction, job.requested_walltime),
    )


def prediction_fields(prediction: ScoredPrediction | None, request: float) -> dict[str, Any]:
    """Return the fields of an answer that a prediction has; all are None without one."""
    if prediction is None:
        return dict.fromkeys(("predicted_walltime", "likely", "method", "interval"))
    median = prediction.median
    return {
        "predicted_walltime": milliseconds(prediction.predicted_walltime, request),
        "likely": None if median is None else milliseconds(median, request),
        "method": prediction.method,
        "interval": range_answer(prediction, request),
    }


def range_answer(prediction: ScoredPrediction, request: float) -> IntervalAnswer | None:
    """Return the interval of a prediction, with the planned runtime and the median inside."""
    interval, planned = prediction.interval, prediction.predicted_walltime
    numbers = (planned,) if prediction.median is None else (planned, prediction.median)
    if interval is None:
        return None
    return IntervalAnswer(
        lower=milliseconds(min(interval.lower, *numbers), request),
        upper=milliseconds(max(interval.upper, *numbers), request),
        coverage=interval.coverage,
    )
