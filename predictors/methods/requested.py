"""The user's request as prediction: the baseline, the fallback and the cold start."""

from typing import Any

from predictors.base import REQUESTED, Memory, request_of
from predictors.jobs import Basis, Completion, Prediction, Submission

_BASIS = Basis(jobs=0, reason="request")


class Requested:
    """Predicts the requested walltime. Learns nothing."""

    name = REQUESTED
    memory = Memory()

    def __init__(self) -> None:  # without it, Python does not name an unexpected parameter
        pass

    @property
    def parameters(self) -> dict[str, Any]:
        """No parameters."""
        return {}

    def predict(self, submission: Submission) -> Prediction:
        """Predict the request."""
        return request_of(submission, method=self.name, basis=_BASIS)

    def observe(self, completion: Completion) -> None:
        """Ignore the run: a request needs no history."""
