"""The contract that every predictor keeps."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from predictors.jobs import Basis, Completion, Prediction, Submission

SHORTEST_ESTIMATE = 1.0
"""Shortest prediction in seconds, unless the request is shorter: predictions are positive."""

DEFAULT_METHOD = "auto"
"""The method that predicts if neither the caller nor the settings name one."""

REQUESTED = "requested"
"""The method whose prediction is the request."""

WARNING_PROBABILITY = 0.6
"""Usual probability of ending at the limit from which on users are warned."""

RUNNING_WARNING_PROBABILITY = 0.875
"""Likewise of jobs that run: most of those that come to 80% of their limit end there."""

COLD_START = Basis(jobs=0, reason="cold-start")
"""The basis of a prediction without any usable history."""


class Memory(Struct, frozen=True, kw_only=True):
    """The part of the history that can still change a predictor's answers.

    A service that starts on a long history lets the predictor observe only this part, in log
    order. Its answers are then the same as after observing all of the history.

    Attributes:
        jobs_per_user: the most recently ended runs of every user.
        latest_jobs: the most recently ended runs of the whole cluster.
        window_seconds: every run that ended within this time before the newest; may be ``inf``.
    """

    jobs_per_user: int = 0
    latest_jobs: int = 0
    window_seconds: float = 0.0

    def __or__(self, other: "Memory") -> "Memory":
        """Return the smallest memory that holds both."""
        return Memory(
            jobs_per_user=max(self.jobs_per_user, other.jobs_per_user),
            latest_jobs=max(self.latest_jobs, other.latest_jobs),
            window_seconds=max(self.window_seconds, other.window_seconds),
        )


@runtime_checkable
class Predictor(Protocol):
    """Predicts how long a job will run from the observed completions of one cluster.

    One test suite checks that every registered predictor keeps this contract:

    - ``predict`` changes no answer, ``observe`` is the only mutation.
    - Every prediction is finite, positive, at most the request, and deterministic.
    - With no usable history the answer is the request, with reason ``cold-start``.
    - A completion influences predictions for submissions at or after its end time only.
    - The answers depend only on the completions and the order in which they were observed.
      "Most recent" means the latest end time, and among equal end times the latest observed.
    - The time of either call does not grow with the length of the history.

    A predictor may rely on its input: times and durations are finite and requests are positive.
    The edges of the system refuse anything else, so that the input is checked once.
    """

    @property
    def name(self) -> str:
        """The method's name in the API."""
        ...

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters in force, as JSON values."""
        ...

    @property
    def memory(self) -> Memory:
        """The part of the history that can still change an answer."""
        ...

    def predict(self, submission: Submission) -> Prediction:
        """Predict the runtime of a job that was just submitted."""
        ...

    def observe(self, completion: Completion) -> None:
        """Learn from a run that has ended."""
        ...


class Question(Struct, frozen=True, kw_only=True, gc=False):
    """The parts of an answer beyond the prediction, for methods with a distribution.

    Attributes:
        coverage: share of jobs whose runtime lies in the interval.
        underestimation_rate: share of jobs for which the prediction may be too short; None for
            the method's own trade-off.
        elapsed: seconds that the job has been running; None for a job that has not started.
        explain: whether the answer names the runs that weigh most.
    """

    coverage: float = 0.9
    underestimation_rate: float | None = None
    elapsed: float | None = None
    explain: bool = False


USUAL = Question()
"""The default question."""


@runtime_checkable
class UncertainPredictor(Predictor, Protocol):
    """A predictor with a distribution of the job's runtime.

    What the contract says of ``predict`` holds for these verbs too. The prediction of ``ask``
    is that of ``predict``, unless the question is about a running job or a rate.
    """

    def ask(self, submission: Submission, question: Question) -> Prediction:
        """Predict the runtime with its median, its mean and an interval."""
        ...

    def quantiles(
        self, submission: Submission, shares: Sequence[float], elapsed: float | None = None
    ) -> list[float] | None:
        """Return the runtimes that ``shares`` of jobs like this one do not exceed, in seconds.

        For a job that has been running for ``elapsed`` seconds, only jobs count that ran as long.
        None where too few runs have ended.
        """
        ...


def limited(seconds: float, request: float) -> float:
    """Return seconds limited to [SHORTEST_ESTIMATE, request]."""
    return min(request, max(SHORTEST_ESTIMATE, seconds))


def capped(seconds: float, submission: Submission, *, method: str, basis: Basis) -> Prediction:
    """Return a prediction of ``seconds``, limited to [SHORTEST_ESTIMATE, request]."""
    request = submission.requested_walltime
    return Prediction(
        predicted_walltime=limited(seconds, request),
        requested_walltime=request,
        method=method,
        basis=basis,
    )


def request_of(submission: Submission, *, method: str, basis: Basis) -> Prediction:
    """Return the user's request as prediction of ``method``."""
    request = submission.requested_walltime
    return Prediction(
        predicted_walltime=request, requested_walltime=request, method=method, basis=basis
    )
