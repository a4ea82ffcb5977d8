"""A running service as a player of a replay."""

from collections.abc import Mapping, Sequence

from predictors.jobs import Completion, Prediction, Submission
from terminal.client import LARGEST_BATCH, Client


class RemotePlayer:
    """Several methods of one running service, for ``replay``.

    A single submission is a request of its own, as from a submit filter. Submissions between
    which no run ends are sent together.
    """

    largest_batch = LARGEST_BATCH

    def __init__(self, client: Client, methods: Mapping[str, str]) -> None:
        """Play to ``client``; ``methods`` are names by label."""
        self._client = client
        self._names = dict(methods)

    @property
    def methods(self) -> Sequence[str]:
        """The labels of the methods."""
        return tuple(self._names)

    def predict(self, method: str, submissions: Sequence[Submission]) -> Sequence[Prediction]:
        """Ask the service for predictions of ``method``."""
        name = self._names[method]
        if len(submissions) == 1:
            return [self._client.predict(submissions[0], name)]
        return self._client.predict_batch(submissions, name)

    def observe(self, ended: Sequence[Completion]) -> None:
        """Report the runs to the service."""
        self._client.observe(*ended)
