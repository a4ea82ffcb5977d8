"""Short words for submissions, runs of jobs, and predictions for them."""

from copy import copy

from predictors.jobs import Completion, Interval, Status, Submission
from service.store import RecordedPrediction, ReportedCompletion, open_store

HOUR = 3600.0


def submission(
    at: float = 1e6, *, request: float = HOUR, user: str | None = "ada", **known
) -> Submission:
    """Return a job that is submitted at ``at``; ada asks for an hour unless others are given."""
    return Submission(requested_walltime=request, submit_time=at, user=user, **known)


def ended(end: float, runtime: float, *, waited: float = 0.0, **known) -> Completion:
    """Return a run that ended at ``end``; ``known`` is as for ``submission``."""
    start = end - runtime
    job = submission(start - waited, **known)
    return Completion(submission=job, start_time=start, end_time=end, runtime=runtime)


def taught(predictor, runs):
    """Let a predictor observe runs; return it."""
    for run in runs:
        predictor.observe(run)
    return predictor


def a_run(job: str, *, start: float = 1_000.0, runtime: float = 600.0, **known) -> Completion:
    """A run of ``job`` that was submitted a minute before it started."""
    known.setdefault("submit_time", start - 60.0)
    known.setdefault("user", "ada")
    known.setdefault("requested_walltime", 3600.0)
    return Completion(
        submission=Submission(job_id=job, **known),
        start_time=start,
        end_time=start + runtime,
        runtime=runtime,
        status=Status.COMPLETED,
    )


def reported(*runs: Completion, **named: str) -> list[ReportedCompletion]:
    """The runs as somebody reports them, who may know the ids of predictions."""
    return [ReportedCompletion(completion=run, **named) for run in runs]


def predicted(
    name: str, run: Completion, seconds: float = 900.0, **different
) -> RecordedPrediction:
    """A prediction for the submission of ``run`` as a submit filter knows it: without job id."""
    job = run.submission
    known = {
        "cluster": job.cluster,
        "user": job.user,
        "application": job.application,
        "queue": job.queue,
        "submit_time": job.submit_time,
        "requested_walltime": job.requested_walltime,
    }
    recorded = {
        "recorded_at": job.submit_time,
        "interval": None,
        "estimates": {"max-usage": seconds},
        "bounds": {},
        "coverage": None,
        "underestimation_rate": None,
        "basis": None,
        "erasure": 0,
    }
    recorded |= {key: different.pop(key) for key in list(different) if key in recorded}
    if (interval := recorded["interval"]) is not None:
        recorded["bounds"] = {"max-usage": (interval.lower, interval.upper), **recorded["bounds"]}
        recorded["coverage"] = interval.coverage
    return RecordedPrediction(
        prediction_id=name,
        submission=Submission(**{**known, **different}),
        method="max-usage",
        predicted_walltime=seconds,
        **recorded,
    )


def between(lower: float, upper: float) -> Interval:
    """An interval that should hold nine runtimes in ten."""
    return Interval(lower=lower, upper=upper, coverage=0.9)


def read_all(reader, limit: int = 7) -> list[Completion]:
    """Everything there is to read now, a few at a time."""
    reader.refresh()
    found = []
    while reader.has_news():
        found += reader.read(limit)
        reader.refresh()
    return found


def runs_by_job(url: str) -> dict[str, list[Completion]]:
    """What the history at ``url`` holds, by job id."""
    store = open_store(url)
    reader = store.reader()
    found: dict[str, list[Completion]] = {}
    try:
        while completions := reader.read(1000):
            for completion in completions:
                found.setdefault(completion.submission.job_id, []).append(completion)
    finally:
        reader.close()
        store.close()
    return found


def at_price(method, price):
    """Return a method of a distribution at another price, which shares the runs of this one."""
    other = copy(method)
    other._price = float(price)
    return other


def predictions_at(method, job, prices):
    """Return the predictions of a method at several prices, in seconds."""
    return [at_price(method, price).predict(job).predicted_walltime for price in prices]
