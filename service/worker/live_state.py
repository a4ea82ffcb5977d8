"""What this process knows: the fold of the log of completions, cluster by cluster."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from itertools import chain, groupby
from math import inf
from operator import or_
from typing import cast

import structlog
from msgspec.structs import replace

from predictors.accuracy_groups import Accuracies
from predictors.base import (
    USUAL,
    Memory,
    Predictor,
    Question,
    UncertainPredictor,
    request_of,
)
from predictors.correction_by_history import Survivors
from predictors.jobs import LATEST_TIME, Basis, Completion, Prediction, Status, Submission
from predictors.memory.error_ratios import RecentErrors
from predictors.methods.attention import Attention
from predictors.methods.knn import Knn
from predictors.methods.least_cost import LeastCost
from predictors.methods.requested import Requested
from predictors.registry import (
    AUTO,
    METHODS,
    PREDICTORS,
    UNCERTAIN,
    UnknownMethodError,
    create,
)
from predictors.tuning.cluster_round import Standing
from predictors.tuning.subjects import FIRST
from service.logs import Throttle
from service.metrics import Metrics
from service.settings import Settings

log = structlog.get_logger()

ASKED_SELDOM = 7
"""Uncertain methods are asked about one run in seven only: asking costs ten times as much as
learning, and a start or an import learns from many."""

WARM_UP_RUNS = 300
"""Made-up runs of a user, in a rehearsal."""

FAILURE_SECONDS = 60.0
"""Seconds between two records of the same failure; the metrics count all of them."""

_NO_CLUSTER: tuple[str | None, Iterable[Completion]] = (None, ())

FAILED = Basis(jobs=0, reason="failure")
"""The basis of the answer that takes the place of a method that failed."""


class ClusterState:
    """What the completions of one cluster taught every predictor and the accuracy groups."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self.predictors: dict[str, Predictor] = {
            name: create(name, **settings.predictors.get(name, {})) for name in PREDICTORS
        }
        self.accuracy_groups = Accuracies(default_group=settings.default_group)
        self.correction = Survivors()
        self.error_ratios = RecentErrors()
        self.windowed = [name for name, each in self.predictors.items() if _has_window(each)]
        self.unwindowed = [name for name in self.predictors if name not in self.windowed]
        self.chosen = FIRST
        self._answering = settings.method
        self._metrics = metrics
        self._throttle = Throttle(FAILURE_SECONDS)
        self._prices = {
            name: float(self.predictors[name].parameters["price"])
            for name in (Attention.name, LeastCost.name)
        }

    def retune(self, standing: Standing) -> None:
        """Let methods answer by what is in force from now on; costs nothing if they do.

        Raises:
            ValueError: the parameters of knn look further back than the settings let it remember;
                all else is in force nevertheless.
        """
        price = standing.price
        # A price that is back after a later one has lost has replaced nothing itself.
        is_adopted = price.before is not None or price.now != self._prices[Attention.name]
        for name, own in self._prices.items():
            method, wanted = self.predictors[name], price.now if is_adopted else own
            if isinstance(method, Attention | LeastCost) and method.price != wanted:
                self.predictors[name] = method.repriced(wanted)
        self.chosen = standing.auto.now
        knn = self.predictors[Knn.name]
        if isinstance(knn, Knn) and knn.given != standing.knn.now:
            self.predictors[Knn.name] = knn.retuned(standing.knn.now)

    def resolved(self, method: str) -> str:
        """The method that answers for a name."""
        return self.chosen if method == AUTO else method

    def rank_runs(self, methods: Collection[str] = PREDICTORS) -> None:
        """Let methods rank the folded runs now, so that no request has to wait for it."""
        job = Submission(requested_walltime=3600.0, submit_time=LATEST_TIME, user="u")
        for method in UNCERTAIN.intersection(methods):
            self.ask(method, job, USUAL, phase="observe")

    def ask(
        self,
        method: str,
        submission: Submission,
        question: Question | None = None,
        *,
        phase: str = "answer",
    ) -> Prediction:
        """The method's prediction; if the method fails, the request, as method ``requested``.

        A submission must not suffer from a bug in a method. So this is the only way in which the
        service asks one.

        Args:
            method: a name of the registry; ``auto`` is whom the last round has chosen.
            submission: without names of people.
            question: what else is asked, of a method that knows how sure it is.
            phase: in which a failure is counted: ``answer``, ``shadow`` or ``observe``.
        """
        try:
            method = self.resolved(method)
            if question is not None and method in UNCERTAIN:
                return cast("UncertainPredictor", self.predictors[method]).ask(submission, question)
            return self.predictors[method].predict(submission)
        except Exception:
            self._metrics.failures.labels(method, phase).inc()
            if self._throttle.count(method, phase):
                log.exception(
                    "a method failed; the request takes its place", method=method, phase=phase
                )
            return request_of(submission, method=Requested.name, basis=FAILED)

    def quantiles(
        self,
        method: str,
        submission: Submission,
        shares: Sequence[float],
        elapsed: float | None = None,
    ) -> list[float] | None:
        """The runtimes that ``shares`` of jobs do not exceed; None if the method cannot tell."""
        method = self.resolved(method)
        if method not in UNCERTAIN:
            return None
        try:
            uncertain = cast("UncertainPredictor", self.predictors[method])
            return uncertain.quantiles(submission, shares, elapsed)
        except Exception:
            self._metrics.failures.labels(method, "answer").inc()
            if self._throttle.count(method, "quantiles"):
                log.exception("a method could not tell how sure it is", method=method)
            return None

    def learn(
        self, completion: Completion, methods: Collection[str], *, is_judged: bool = True
    ) -> None:
        """Let ``methods`` observe a completion; a method that fails does not stop the others.

        Before that the service's own method, if it is among them, is asked about the job: the ratio
        of runtime to prediction is what forecasts vary runtimes by. ``service/store/scores.py``
        scores the predictions that were recorded; this one needs no record, so it is a fold of the
        log. Methods that know how sure they are are asked about the runs that ended in every
        seventh second only, and none where nobody would remember how that ended.
        """
        answering = self.resolved(self._answering)
        is_asked = answering not in UNCERTAIN or not int(completion.end_time) % ASKED_SELDOM
        if is_judged and answering in methods and is_asked:
            would_be = self.ask(self._answering, completion.submission, phase="observe")
            self.error_ratios.add(would_be.predicted_walltime, completion.runtime)
        for method in methods:
            self._teach(method, self.predictors[method].observe, completion)

    def _teach(
        self, method: str, observe: Callable[[Completion], None], completion: Completion
    ) -> None:
        try:
            observe(completion)
        except Exception:
            self._metrics.failures.labels(method, "observe").inc()
            if self._throttle.count(method, "learn"):
                log.exception("a method could not learn from a completion", method=method)

    def remember(self, runs: Sequence[Completion]) -> None:
        """Learn the cluster's last runs, in order; a method learns those that it asks for alone."""
        count = len(runs)
        judged = count - RecentErrors.memory.latest_jobs
        firsts = {
            name: max(0, count - _noticed(self.predictors[name].memory)) for name in self.unwindowed
        }
        starts, learning = {*firsts.values()}, list[str]()
        for place, run in enumerate(runs):
            if place in starts:
                learning = [name for name, first in firsts.items() if first <= place]
            self.observe(run, learning, is_judged=place >= judged)

    def remember_window(self, older: Iterable[Completion], recent: Sequence[Completion]) -> None:
        """Let the methods that look at a time window learn it, the older part of it first.

        Args:
            older: runs that ended before the latest of ``recent``, in order.
            recent: the cluster's last runs; older ones of some users may be among them.
        """
        ends = sorted(run.end_time for run in recent)
        first = _end_of_newest(ends, self.memories[0].latest_jobs)
        for run in chain(older, (run for run in recent if run.end_time >= first)):
            self.learn(run, self.windowed)

    def observe(
        self, completion: Completion, methods: Collection[str], *, is_judged: bool = True
    ) -> None:
        """Let methods, the accuracy groups and the correction learn from a completion."""
        self.learn(completion, methods, is_judged=is_judged)
        self.accuracy_groups.observe(completion)
        self.correction.observe(completion)

    @property
    def memories(self) -> tuple[Memory, Memory]:
        """The memory requirements of the methods: without a time window, and with one.

        The part of the history that the first asks for is not read again for the second.
        """
        recent = self.accuracy_groups.memory | self.correction.memory | self.error_ratios.memory
        return (
            reduce(or_, (self.predictors[name].memory for name in self.unwindowed), recent),
            reduce(or_, (self.predictors[name].memory for name in self.windowed), Memory()),
        )


def _noticed(memory: Memory) -> float:
    """How many of a cluster's last runs it asks for; inf where older ones may count, too."""
    return inf if memory.jobs_per_user or memory.window_seconds else memory.latest_jobs


def _end_of_newest(ends: Sequence[float], count: int) -> float:
    """When the first of the ``count`` runs that ended last ended; of fewer runs, -inf."""
    return ends[-count] if 0 < count <= len(ends) else -inf


def _cluster_of(run: Completion) -> str | None:
    return run.submission.cluster


def _has_window(predictor: Predictor) -> bool:
    return predictor.memory.window_seconds > 0


class LiveState:
    """The state of all clusters.

    A cluster appears with its first completion, unless there are ``max_clusters`` already: such
    a history was stored under another setting, or imported. Any other name shares one empty
    state, so that asking about clusters that do not exist takes no memory.

    Raises:
        ValueError: the settings name a method or a parameter that does not exist.
    """

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        check_methods(settings)
        self._settings = settings
        self._metrics = metrics
        self._throttle = Throttle(FAILURE_SECONDS)
        self._unknown = ClusterState(settings, metrics)
        self._clusters: dict[str, ClusterState] = {}

    @property
    def memories(self) -> tuple[Memory, Memory]:
        """The memory requirements of all methods, for ``remember``: without, with a time window."""
        return self._unknown.memories

    @property
    def clusters(self) -> list[str]:
        """The clusters with history."""
        return sorted(self._clusters)

    @property
    def names(self) -> Collection[str]:
        """A live view of the known clusters, without order."""
        return self._clusters.keys()

    def of(self, cluster: str) -> ClusterState:
        """The state of a cluster."""
        return self._clusters.get(cluster, self._unknown)

    def adopt(self, other: "LiveState") -> None:
        """Take over all that the other has learned."""
        self._clusters = other._clusters  # noqa: SLF001 - it is one of us

    def retune(self, standing: Mapping[str, Standing]) -> None:
        """Put in force what rounds have adopted, by cluster; other clusters keep what they have."""
        for cluster in standing.keys() & self._clusters.keys():
            try:
                self._clusters[cluster].retune(standing[cluster])
            except ValueError as error:
                if self._throttle.count(cluster, "retune"):
                    log.warning("what was adopted does not fit", cluster=cluster, reason=str(error))

    def apply(self, completions: Iterable[Completion]) -> None:
        """Observe completions, in order."""
        for completion in completions:
            if state := self._state_of(completion):
                state.observe(completion, state.predictors)

    def remember(
        self,
        recent: Iterable[Completion],
        older: Iterable[Completion],
        standing: Mapping[str, Standing] | None = None,
    ) -> None:
        """Observe the parts of a history that ``memories`` ask for, each cluster by cluster.

        Only the methods that look at a long window learn the older part, and they learn all of a
        run only if it is among the latest. Meanwhile the other methods rank their runs: that is
        machine code, which lets other threads run.

        Args:
            recent: the first part.
            older: runs of the time window that are not in ``recent``, grouped by cluster in the
                same order.
            standing: what rounds have adopted, by cluster.
        """
        standing = standing or {}
        older_by_cluster = groupby(older, key=_cluster_of)
        waiting, runs_before = next(older_by_cluster, _NO_CLUSTER)
        with ThreadPoolExecutor(1) as beside:
            ranking = []
            for cluster, runs in groupby(recent, key=_cluster_of):
                held, before = list(runs), runs_before if waiting == cluster else ()
                if state := self._state_of(held[0]):
                    state.remember(held)
                    self.retune({name: each for name, each in standing.items() if name == cluster})
                    ranking.append(beside.submit(state.rank_runs, state.unwindowed))
                    state.remember_window(before, held)
                if waiting == cluster:
                    waiting, runs_before = next(older_by_cluster, _NO_CLUSTER)
            for each in ranking:
                each.result()

    def rank_runs(self) -> None:
        """Rank what was learned by what is in force now, so that no request has to wait for it."""
        for state in self._clusters.values():
            state.rank_runs()

    def _state_of(self, completion: Completion) -> ClusterState | None:
        """The state that a completion belongs to; None if its cluster exceeds the bound."""
        name = completion.submission.cluster
        state = self._clusters.get(name)
        if state is None and len(self._clusters) < self._settings.max_clusters:
            state = self._clusters[name] = ClusterState(self._settings, self._metrics)
        return state

    def warm_up_methods(self, methods: Collection[str] = PREDICTORS) -> None:
        """Ask methods once on made-up history, so that nothing is compiled for a caller."""
        state = ClusterState(self._settings, self._metrics)
        rehearsed = {name: each for name, each in state.predictors.items() if name in methods}
        submission = Submission(
            requested_walltime=3600.0, submit_time=0.0, user="u", requested_processors=1
        )
        for end in range(1, WARM_UP_RUNS):
            run = Completion(
                submission=submission,
                start_time=0.0,
                end_time=float(end),
                runtime=float(end),
                status=Status.COMPLETED,
            )
            state.observe(run, rehearsed)
        early, late = (replace(submission, submit_time=time) for time in (220.0, 1e6))
        for method in rehearsed:
            state.ask(method, late)
            for question in (USUAL, Question(elapsed=1.0, explain=True)):
                state.ask(method, early, question)
                state.ask(method, late, question)
        for method in rehearsed.keys() & {LeastCost.name, Attention.name}:
            state.quantiles(method, late, (0.5,))


def check_methods(settings: Settings) -> None:
    """Refuse settings about methods that do not exist, instead of ignoring them."""
    for name in (settings.method, *settings.predictors, *settings.shadow_methods):
        if name not in METHODS or (name == AUTO and name in settings.predictors):
            raise UnknownMethodError(
                f"There is no method {name!r}; there are {', '.join(sorted(METHODS))}."
            )
