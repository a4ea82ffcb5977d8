"""A log that fits on paper, for tests of everything that plays one."""

from predictors.jobs import Completion, Submission


def run(job, submit, runtime, *, wait=0, request=100, user="ada", cluster="default"):
    """One job of a log; times are seconds after Unix second 1000."""
    start = 1000.0 + submit + wait
    return Completion(
        submission=Submission(
            job_id=str(job),
            user=user,
            cluster=cluster,
            requested_walltime=float(request),
            submit_time=1000.0 + submit,
            requested_processors=1,
        ),
        start_time=start,
        end_time=start + runtime,
        runtime=float(runtime),
    )
