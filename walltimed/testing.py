"""The contract that every method keeps, as checks for classes of users.

``check_method`` runs all of them on logs that are made by chance from a seed::

    from walltimed.testing import check_method

    def test_my_method_keeps_the_contract():
        check_method(MyMethod)
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from math import isfinite
from random import Random
from types import MappingProxyType

from msgspec.structs import replace

from predictors.base import SHORTEST_ESTIMATE
from predictors.jobs import Completion, Prediction, Status, Submission
from walltimed.methods import MakeMethod, Method

DAY = 86400.0

LOGS = 20
"""Number of logs of each check."""

RUNS = 60
"""Number of runs of a log."""

Log = Sequence[Completion]


class ContractError(AssertionError):
    """A method breaks the contract."""


def check_method(make: MakeMethod, *, seed: int = 0, leave_out: Collection[str] = ()) -> None:
    """Check that a method keeps the contract; names of the checks are in ``CHECKS``.

    Args:
        make: the class, or a function that makes a method without any history.
        seed: of the logs.
        leave_out: names of checks that do not count.

    Raises:
        ContractError: the message names the check, and the answer that breaks it.
        ValueError: there is no check of that name.
    """
    if unknown := set(leave_out) - set(CHECKS):
        raise ValueError(f"There is no check {', '.join(sorted(unknown))}: {', '.join(CHECKS)}.")
    for name, check in CHECKS.items():
        if name in leave_out:
            continue
        for number in range(LOGS):
            random = Random(f"{seed} {number}")  # noqa: S311 - no secret
            log = [random_run(random) for _ in range(random.randrange(RUNS))]
            try:
                check(make, log, random_job(random))
            except ContractError as error:
                raise ContractError(f"{name}: {error}") from error


def answered(method: Method, job: Submission) -> float:
    """Return the prediction of a method in seconds."""
    answer = method.predict(job)
    return answer.predicted_walltime if isinstance(answer, Prediction) else answer


def taught(make: MakeMethod, log: Log) -> Method:
    """Return a method that has learned from a log."""
    method = make()
    for run in log:
        method.observe(run)
    return method


def check_bounds(make: MakeMethod, log: Log, job: Submission) -> None:
    """Check that a prediction is finite, positive and at most the request."""
    seconds, request = answered(taught(make, log), job), job.requested_walltime
    if not isfinite(seconds):
        raise ContractError(f"{seconds!r} was predicted, which is not finite.")
    if not min(SHORTEST_ESTIMATE, request) <= seconds <= request:
        raise ContractError(
            f"{seconds!r} s were predicted; the request is {request:g} s, the least "
            f"{SHORTEST_ESTIMATE:g} s or the request."
        )


def check_cold_start(make: MakeMethod, _log: Log, job: Submission) -> None:
    """Check that the request is predicted without any history."""
    seconds = answered(make(), job)
    if seconds != job.requested_walltime:
        raise ContractError(
            f"Without any run {seconds!r} s were predicted; the request is "
            f"{job.requested_walltime:g} s."
        )


def check_asking(make: MakeMethod, log: Log, job: Submission) -> None:
    """Check that asking changes no answer."""
    silent, disturbed = taught(make, log), make()
    for run in log:
        answered(disturbed, job)
        answered(disturbed, run.submission)
        disturbed.observe(run)
    first, again, other = answered(silent, job), answered(silent, job), answered(disturbed, job)
    if first != again:
        raise ContractError(f"Asked twice, {first!r} s and then {again!r} s were predicted.")
    if first != other:
        raise ContractError(
            f"{first!r} s were predicted, but {other!r} s after questions between the runs."
        )


def check_fold(make: MakeMethod, log: Log, job: Submission) -> None:
    """Check that the answers depend only on the runs that the method itself has observed."""
    method = taught(make, log)
    first = answered(method, job)
    taught(make, [replace(run, runtime=run.runtime / 2) for run in log])
    for later in (answered(method, job), answered(taught(make, log), job)):
        if first != later:
            raise ContractError(
                f"From one log {first!r} s were predicted, and {later!r} s after another object "
                "had learned. Is there state outside the object, or chance without a seed?"
            )


def check_causality(make: MakeMethod, log: Log, job: Submission) -> None:
    """Check that a run says nothing about jobs that were submitted before its end."""
    known = [run for run in log if run.end_time <= job.submit_time]
    late = [
        replace(run, end_time=job.submit_time + (number + 1) * DAY)
        for number, run in enumerate(log)
        if run.end_time > job.submit_time
    ][:5]
    first, second = answered(taught(make, known), job), answered(taught(make, known + late), job)
    if first != second:
        raise ContractError(
            f"{first!r} s were predicted for a job, and {second!r} s after runs had been learned "
            "that ended after its submission. Use runs with end_time <= submit_time alone."
        )


CHECKS: Mapping[str, Callable[[MakeMethod, Log, Submission], None]] = MappingProxyType(
    {
        "bounds": check_bounds,
        "cold-start": check_cold_start,
        "asking": check_asking,
        "fold": check_fold,
        "causality": check_causality,
    }
)
"""The checks by name."""


def random_job(random: Random) -> Submission:
    """Return a job of one of few users; what a log may not know is sometimes unknown."""
    return Submission(
        requested_walltime=random.choice((0.5, 60.0, 3600.0, 86400.0, 366 * DAY)),
        submit_time=random.randrange(100) * DAY,
        user=random.choice(("ann", "ann", "bob", None)),
        project=random.choice(("x", "y", None)),
        group=random.choice(("g", None)),
        queue=random.choice(("short", None)),
        application=random.choice(("a.out", "b.out", None)),
        requested_processors=random.choice((1, 64, None)),
        requested_memory=random.choice((1.0, 1e6, None)),
    )


def random_run(random: Random) -> Completion:
    """Return a run that ended at midnight, so that several end together.

    It may have outrun its request, or have taken no time.
    """
    job = random_job(random)
    runtime = job.requested_walltime * random.choice((0.0, 0.1, 0.3, 1.0, 1.7))
    end = job.submit_time + random.randrange(20) * DAY
    return Completion(
        submission=job,
        start_time=end - runtime,
        end_time=end,
        runtime=runtime,
        status=random.choice((Status.COMPLETED, Status.FAILED, Status.UNKNOWN)),
    )
