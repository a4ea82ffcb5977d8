"""What this process knows: the fold of the log of completions, cluster by cluster."""

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import or_

import structlog

from predictors.base import Memory, Predictor
from predictors.jobs import Completion, Status, Submission
from predictors.psp import Accuracies
from predictors.registry import PREDICTORS, create
from service.metrics import Metrics
from service.settings import Settings

log = structlog.get_logger()


class ClusterState:
    """What the completions of one cluster taught every predictor and the accuracy groups."""

    def __init__(self, settings: Settings) -> None:
        self.predictors: Mapping[str, Predictor] = {
            name: create(name, **settings.predictors.get(name, {})) for name in PREDICTORS
        }
        self.accuracies = Accuracies(default_group=settings.default_group)

    @property
    def memory(self) -> Memory:
        """Which part of the cluster's history can still change an answer."""
        return reduce(or_, (predictor.memory for predictor in self.predictors.values())) | (
            self.accuracies.memory
        )


class Live:
    """The state of all clusters.

    A cluster appears with its first completion. Any other name shares one empty state, so that
    asking about clusters that do not exist takes no memory.
    """

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._unknown = ClusterState(settings)
        self._clusters: dict[str, ClusterState] = {}

    @property
    def memory(self) -> Memory:
        """Which part of any cluster's history can still change an answer."""
        return self._unknown.memory

    @property
    def clusters(self) -> list[str]:
        """The clusters with history."""
        return sorted(self._clusters)

    def of(self, cluster: str) -> ClusterState:
        """What is known of a cluster."""
        return self._clusters.get(cluster, self._unknown)

    def adopt(self, other: "Live") -> None:
        """Take over all that the other has learned."""
        self._clusters = other._clusters  # noqa: SLF001 - it is one of us

    def apply(self, completions: Iterable[Completion]) -> None:
        """Observe completions, in order."""
        for completion in completions:
            name = completion.submission.cluster
            state = self._clusters.get(name)
            if state is None:
                state = self._clusters[name] = ClusterState(self._settings)
            self._observe(state, completion)

    def _observe(self, state: ClusterState, completion: Completion) -> None:
        """Tell everybody; a method that fails must not keep the others from learning."""
        for method, predictor in state.predictors.items():
            try:
                predictor.observe(completion)
            except Exception:
                self._metrics.failed(method, "observe")
                log.exception("a method could not learn from a completion", method=method)
        state.accuracies.observe(completion)

    def rehearse(self) -> None:
        """Ask every method once on made-up history, so that nothing is compiled for a caller."""
        state = ClusterState(self._settings)
        submission = Submission(
            requested_walltime=3600.0, submit_time=0.0, user="u", requested_processors=1
        )
        for end in range(1, 65):
            run = Completion(
                submission=submission,
                start_time=0.0,
                end_time=float(end),
                runtime=float(end),
                status=Status.COMPLETED,
            )
            self._observe(state, run)
        for predictor in state.predictors.values():
            predictor.predict(Submission(requested_walltime=3600.0, submit_time=1e6, user="u"))
