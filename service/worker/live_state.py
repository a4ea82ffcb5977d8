"""The state of this process: a fold of the log of completions, by cluster."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from itertools import chain, groupby, islice
from math import inf
from operator import or_
from typing import Any, cast

import structlog
from msgspec.structs import replace

from predictors.accuracy_groups import Accuracies
from predictors.answers import DistributionMethod
from predictors.auto import Auto
from predictors.base import (
    USUAL,
    Memory,
    Predictor,
    Question,
    UncertainPredictor,
    request_of,
)
from predictors.correction_by_history import HistoryCorrection
from predictors.jobs import LATEST_TIME, Basis, Completion, Prediction, Status, Submission
from predictors.limits import LimitHits, LimitRisk, nothing_known
from predictors.memory.error_ratios import ErrorRatios
from predictors.memory.running_jobs import RunningJobs, Start
from predictors.methods.attention import Attention
from predictors.methods.forest import Forest
from predictors.methods.forest_trees import LearnedForest
from predictors.methods.knn import Knn
from predictors.methods.requested import Requested
from predictors.registry import (
    AUTO,
    METHODS,
    PREDICTORS,
    UNCERTAIN,
    UnknownMethodError,
    create,
)
from predictors.tuning.cluster_round import ClusterParameters
from service.metrics import Metrics
from service.settings import Settings
from terminal.logs import Throttle

log = structlog.get_logger()

ASKED_SELDOM = 7
"""Uncertain methods predict one run in seven only, because a prediction costs ten times as much as
an observation, and a start or an import observes many runs."""

MOST_USERS = 500
"""Most users of whom it is counted which candidate of auto answers them."""

LATE_RUNS = 64
"""Most later runs behind which a run is learned at once: all of these are scored again."""

FREED_RUNS = 500
"""Runs that are freed at a time: a third of a millisecond, in which no other thread runs."""

WARM_UP_RUNS = 300
"""Number of invented runs of a user, for a warm-up of the methods."""

FAILURE_SECONDS = 60.0
"""Seconds between two records of the same failure; the metrics count all of them."""

_NO_CLUSTER: tuple[str | None, Iterable[Completion]] = (None, ())

FAILED = Basis(jobs=0, reason="failure")
"""Basis of the answer in place of a failed method."""

NEXT_JOB = Submission(requested_walltime=3600.0, submit_time=LATEST_TIME, user="u")
"""Invented job; to answer it, methods rank all observed runs."""

LIMITS = "limits"
"""Label of the probability of a hit in the metrics of failures."""


class ClusterState:
    """The state of the predictors, accuracy groups and correction of one cluster."""

    def __init__(
        self, settings: Settings, metrics: Metrics, running: RunningJobs | None = None
    ) -> None:
        self.predictors: dict[str, Predictor] = {
            name: create(name, **parameters_of(settings, name)) for name in PREDICTORS
        }
        self.running = RunningJobs() if running is None else running
        for name in (Attention.name, Forest.name):
            cast("DistributionMethod", self.predictors[name]).running = self.running
        self.accuracy_groups = Accuracies(default_group=settings.default_group)
        self.correction = HistoryCorrection()
        self._limits = LimitHits()
        self.error_ratios = ErrorRatios()
        self.windowed = [
            name for name, each in self.predictors.items() if each.memory.window_seconds > 0
        ]
        self.ranked = [name for name in self.predictors if name in UNCERTAIN]
        self.unranked = [name for name in PREDICTORS if name not in (*self.windowed, *self.ranked)]
        self._users: dict[str, None] = {}
        self._chooser = self._choosing()
        self._answering = settings.method
        self._metrics = metrics
        self._throttle = Throttle(FAILURE_SECONDS)
        self._missed: list[Completion] | None = None

    def retune(self, standing: ClusterParameters) -> None:
        """Put adopted parameters in force; costs nothing if they already are.

        Raises:
            ValueError: the parameters of knn need a longer history than the settings allow.
        """
        knn = self.predictors[Knn.name]
        if isinstance(knn, Knn) and knn.given != standing.knn.now:
            self.predictors[Knn.name] = knn.retuned(standing.knn.now)

    def is_late(self, completion: Completion) -> bool:
        """Return whether more than LATE_RUNS runs are known that ended after this one."""
        method, end = self.predictors[Attention.name], completion.end_time
        return isinstance(method, DistributionMethod) and method.has_later(end, LATE_RUNS)

    @property
    def forest(self) -> Forest:
        """The method with trees that rounds learn."""
        return cast("Forest", self.predictors[Forest.name])

    def grown(self, learned: LearnedForest | None) -> Forest | None:
        """Return a forest on a copy of the runs; None if these trees are in force.

        Leaves and calibration of the copy may be computed in another thread, until ``replant``.
        """
        if self.forest.learned == learned:
            return None
        self._missed = []
        return self.forest.copied(learned)

    def replant(self, forest: Forest) -> None:
        """Put a grown forest in force, after it has observed the runs that ended meanwhile."""
        missed, self._missed = self._missed, None
        for run in missed or ():
            self._teach(Forest.name, forest.observe, run)
        self.predictors[Forest.name] = forest
        self._chooser = self._choosing()

    @property
    def choice(self) -> dict[str, Any]:
        """The price of auto, and by candidate how much more it has cost than the first.

        Of the last users with runs it says how many each candidate answers.
        """
        known, strangers = self._chooser.cluster_costs()
        users = islice(reversed(self._users), MOST_USERS)
        return {
            "price": self._chooser.parameters["price"],
            "relative_costs": {name: round(cost, 4) for name, cost in known.items()},
            "relative_costs_without_runs": {
                name: round(cost, 4) for name, cost in strangers.items()
            },
            "users": self._chooser.users_by_candidate(users),
        }

    def _choosing(self) -> Auto:
        """Return auto over the methods that are in force."""
        return Auto.over(cast("Attention", self.predictors[Attention.name]), self.forest)

    def _method(self, name: str) -> Predictor:
        return self._chooser if name == AUTO else self.predictors[name]

    def rank_runs(self, methods: Collection[str] = PREDICTORS) -> None:
        """Let methods rank the observed runs now, so that no request has to wait for it."""
        for method in UNCERTAIN.intersection(methods):
            self.ask(method, NEXT_JOB, USUAL, phase="observe")

    def ask(
        self,
        method: str,
        submission: Submission,
        question: Question | None = None,
        *,
        phase: str = "answer",
    ) -> Prediction:
        """Return the method's prediction; if the method fails, the request, as ``requested``.

        A bug in a method must not cost a submission, so the service asks methods only in this way.

        Args:
            submission: under pseudonyms.
            question: for methods with intervals; other methods ignore it.
            phase: label of a failure in the metrics: ``answer``, ``shadow`` or ``observe``.
        """
        try:
            predictor = self._method(method)
            if question is not None and method in UNCERTAIN:
                return cast("UncertainPredictor", predictor).ask(submission, question)
            return predictor.predict(submission)
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
        """Return quantiles of the runtime in seconds; None if the method gives none."""
        if method not in UNCERTAIN:
            return None
        try:
            uncertain = cast("UncertainPredictor", self._method(method))
            return uncertain.quantiles(submission, shares, elapsed)
        except Exception:
            self._metrics.failures.labels(method, "answer").inc()
            if self._throttle.count(method, "quantiles"):
                log.exception("a method gave no quantiles", method=method)
            return None

    def learn(
        self, completion: Completion, methods: Collection[str], *, is_judged: bool = True
    ) -> None:
        """Let ``methods`` observe a completion; a method that fails does not stop the others.

        The default method, if it is among them, predicts the job before it learns: forecasts vary
        runtimes by the ratio of runtime to prediction. These ratios need no recorded prediction,
        unlike the scores of the store, so they are a fold of the log. Methods with intervals
        predict only runs that ended in a second divisible by seven.

        Args:
            is_judged: whether the ratio is needed.
        """
        answering = self._answering
        is_asked = answering not in UNCERTAIN or not int(completion.end_time) % ASKED_SELDOM
        is_taught = (Forest.name if answering == AUTO else answering) in methods
        if is_judged and is_taught and is_asked:
            would_be = self.ask(self._answering, completion.submission, phase="observe")
            self.error_ratios.add(would_be.predicted_walltime, completion.runtime)
        for method in methods:
            self._teach(method, self.predictors[method].observe, completion)
        if Attention.name in methods:
            self.running.ended(completion)
        if self._missed is not None and Forest.name in methods:
            self._missed.append(completion)

    def _teach(
        self, method: str, observe: Callable[[Completion], None], completion: Completion
    ) -> None:
        try:
            observe(completion)
        except Exception:
            self._metrics.failures.labels(method, "observe").inc()
            if self._throttle.count(method, "learn"):
                log.exception("a method could not learn from a completion", method=method)

    def remember(self, runs: Sequence[Completion], methods: Collection[str]) -> None:
        """Let methods observe the cluster's last runs, in order, each those that it remembers."""
        count = len(runs)
        judged = count - ErrorRatios.memory.latest_jobs
        firsts = {
            name: int(max(0, count - _noticed(self.predictors[name].memory))) for name in methods
        }
        if Attention.name in firsts:
            self.running.reopen(runs[firsts[Attention.name] :])
        starts, learning = {*firsts.values()}, list[str]()
        for place, run in enumerate(runs):
            if place in starts:
                learning = [name for name, first in firsts.items() if first <= place]
            self.learn(run, learning, is_judged=place >= judged)

    def limit_risk(
        self,
        submission: Submission,
        elapsed: float | None = None,
        *,
        longest: float | None = None,
        follows: bool = False,
    ) -> LimitRisk:
        """Return the probability that a job ends at its limit; without one if that fails.

        Args:
            submission: the job.
            elapsed: seconds that it has run; None before it starts.
            longest: largest limit that its queue allows, in seconds.
            follows: whether it waits for another job, and starts also if that one was cut.
        """
        try:
            found = self._limits.of(submission, elapsed, follows=follows)
            return found.within(submission.requested_walltime, longest)
        except Exception:
            self._metrics.failures.labels(LIMITS, "answer").inc()
            if self._throttle.count(LIMITS, "answer"):
                log.exception("the probability of a hit could not be computed")
            return nothing_known(FAILED.reason)

    def limit_core_hours(self) -> tuple[float, float]:
        """Return core hours of the last runs that ended at their limits, and of the others."""
        return self._limits.core_hours()

    def remember_users(self, runs: Sequence[Completion]) -> None:
        """Let accuracy groups, correction and limits observe the cluster's last runs, in order."""
        for run in runs:
            self.accuracy_groups.observe(run)
            self.correction.observe(run)
            if (user := run.submission.user) is not None:
                self._users.pop(user, None)
                self._users[user] = None
        for run in runs[-LimitHits.memory.latest_jobs :]:
            self._teach(LIMITS, self._limits.observe, run)

    def remember_window(self, older: Iterable[Completion], recent: Sequence[Completion]) -> None:
        """Let the methods with a time window observe the runs in it, the older part first.

        Args:
            older: runs that ended before the latest of ``recent``, in order.
            recent: the cluster's last runs, with older ones of some users.
        """
        ends = sorted(run.end_time for run in recent)
        first = _end_of_newest(ends, self.memories[0].latest_jobs)
        for run in chain(older, (run for run in recent if run.end_time >= first)):
            self.learn(run, self.windowed)

    def observe(self, completion: Completion, methods: Collection[str]) -> None:
        """Let methods, accuracy groups, correction and limits observe a completion."""
        self.learn(completion, methods)
        self.remember_users((completion,))

    def _memory_of(self, method: str) -> Memory:
        return self.predictors[method].memory

    @property
    def memories(self) -> tuple[Memory, Memory]:
        """Return the memory requirements of methods without a time window, and with one.

        Runs that are read for the first are not read again for the second.
        """
        others = (self.accuracy_groups, self.correction, self.error_ratios, self._limits)
        recent = reduce(or_, (each.memory for each in others), Memory())
        return (
            reduce(or_, map(self._memory_of, self.ranked + self.unranked), recent),
            reduce(or_, map(self._memory_of, self.windowed), Memory()),
        )


def _noticed(memory: Memory) -> float:
    """Return the number of last runs that a method remembers; inf if older ones count."""
    return inf if memory.jobs_per_user or memory.window_seconds else memory.latest_jobs


def _end_of_newest(ends: Sequence[float], count: int) -> float:
    """Return the first end of the ``count`` latest ends; -inf if there are fewer."""
    return ends[-count] if 0 < count <= len(ends) else -inf


def _cluster_of(run: Completion) -> str | None:
    return run.submission.cluster


def _end_of(run: Completion) -> float:
    return run.end_time


class LiveState:
    """The state of all clusters.

    A cluster appears with its first completion, unless there are ``max_clusters`` already: such
    a history was stored under another setting, or imported. Any other name shares one empty
    state, so that asking about clusters that do not exist takes no memory.

    Attributes:
        late: number of runs that came too late to be applied; a fold of the log has them.

    Raises:
        ValueError: the settings name a method or a parameter that does not exist.
    """

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        check_methods(settings)
        self._settings = settings
        self._metrics = metrics
        self._throttle = Throttle(FAILURE_SECONDS)
        self._unknown = ClusterState(settings, metrics)
        self.late = 0
        self._clusters: dict[str, ClusterState] = {}
        self._running: dict[str, RunningJobs] = {}

    @property
    def memories(self) -> tuple[Memory, Memory]:
        """Return the memory requirements of methods without, and of those with a time window."""
        return self._unknown.memories

    @property
    def clusters(self) -> list[str]:
        """Return the names of the clusters with history, sorted."""
        return sorted(self._clusters)

    def names(self) -> Collection[str]:
        """Return a live view of the names of the clusters with history, without order."""
        return self._clusters.keys()

    def of(self, cluster: str) -> ClusterState:
        """Return the state of a cluster."""
        return self._clusters.get(cluster, self._unknown)

    def adopt(self, other: "LiveState") -> None:
        """Take over the state of another fold."""
        self._clusters, self._running = other._clusters, other._running  # noqa: SLF001 - of the same class
        self.late = other.late

    def retune(self, standing: Mapping[str, ClusterParameters]) -> None:
        """Put adopted parameters in force, by cluster; other clusters stay unchanged."""
        for cluster in standing.keys() & self._clusters.keys():
            try:
                self._clusters[cluster].retune(standing[cluster])
            except ValueError as error:
                if self._throttle.count(cluster, "retune"):
                    log.warning("what was adopted does not fit", cluster=cluster, reason=str(error))

    def growing(
        self, standing: Mapping[str, ClusterParameters]
    ) -> Iterator[tuple[ClusterState, Forest]]:
        """Yield clusters whose adopted trees are not in force, each with its grown forest."""
        for cluster in sorted(standing.keys() & self._clusters.keys()):
            state = self._clusters[cluster]
            if forest := state.grown(standing[cluster].forest):
                yield state, forest

    def started(self, starts: Iterable[Start]) -> None:
        """Note jobs that run, also of clusters whose first run has not ended."""
        for cluster in self.recall(starts):
            self._running[cluster].forget_surplus()

    def recall(self, starts: Iterable[Start]) -> set[str]:
        """Like ``started``, for a history whose runs are remembered next; return the clusters."""
        clusters = set[str]()
        for start in starts:
            cluster = start.submission.cluster
            if cluster in self._running or len(self._running) < self._settings.max_clusters:
                self._running_on(cluster).started(start)
                clusters.add(cluster)
        return clusters

    def _running_on(self, cluster: str) -> RunningJobs:
        return self._running.setdefault(cluster, RunningJobs())

    def apply(self, completions: Iterable[Completion]) -> None:
        """Observe completions, in order, but for those that come late.

        Each would move the later runs of all tables, and change their scores: thousands of them
        would keep requests waiting for seconds.
        """
        for completion in completions:
            if (state := self._state_of(completion)) is None:
                continue
            if state.is_late(completion):
                self.late += 1
            else:
                state.observe(completion, state.predictors)

    def remember(
        self,
        recent: Iterable[Completion],
        older: Iterable[Completion],
        standing: Mapping[str, ClusterParameters] | None = None,
    ) -> None:
        """Observe the parts of a history that ``memories`` require, each by cluster.

        The recent part is observed in order of ends: none of its runs is late.

        Methods that rank their runs observe them first, and rank them in machine code that lets
        other threads run. Meanwhile the others observe. Only methods with a time window observe the
        older part.

        Args:
            older: runs of the time window that are not in ``recent``, grouped by cluster in the
                same order.
        """
        standing = standing or {}
        older_by_cluster = groupby(older, key=_cluster_of)
        waiting, runs_before = next(older_by_cluster, _NO_CLUSTER)
        with ThreadPoolExecutor(1) as beside:
            ranking = []
            for cluster, runs in groupby(recent, key=_cluster_of):
                runs_of_cluster = sorted(runs, key=_end_of)
                before = runs_before if waiting == cluster else ()
                if state := self._state_of(runs_of_cluster[0]):
                    own = {name: each for name, each in standing.items() if name == cluster}
                    state.remember(runs_of_cluster, state.ranked)
                    for grown, forest in self.growing(own):
                        grown.replant(forest)
                    ranking.append(beside.submit(state.rank_runs, state.ranked))
                    state.remember(runs_of_cluster, state.unranked)
                    state.remember_users(runs_of_cluster)
                    self.retune(own)
                    state.remember_window(before, runs_of_cluster)
                while runs_of_cluster:  # freeing all at once would keep requests waiting
                    del runs_of_cluster[-FREED_RUNS:]
                if waiting == cluster:
                    waiting, runs_before = next(older_by_cluster, _NO_CLUSTER)
            for each in ranking:
                each.result()

    def rank_runs(self) -> None:
        """Rank all runs under the active parameters, so that no request has to wait for it."""
        for state in self._clusters.values():
            state.rank_runs()
            state.limit_risk(NEXT_JOB)

    def _state_of(self, completion: Completion) -> ClusterState | None:
        """Return the state of a completion's cluster; None if the cluster exceeds the limit."""
        name = completion.submission.cluster
        state = self._clusters.get(name)
        if state is None and len(self._clusters) < self._settings.max_clusters:
            running = self._running_on(name)
            state = self._clusters[name] = ClusterState(self._settings, self._metrics, running)
        return state

    def warm_up_methods(self, methods: Collection[str] = PREDICTORS) -> None:
        """Ask methods once on an invented history, so that no caller waits for a compilation."""
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
        for method in rehearsed.keys() & UNCERTAIN:
            state.quantiles(method, late, (0.5,))
        state.limit_risk(late)


def parameters_of(settings: Settings, method: str) -> dict[str, Any]:
    """Return the parameters of a method; forest has the price of attention, as auto compares them.

    Raises:
        ValueError: the settings give them different prices.
    """
    given = dict(settings.predictors.get(method, {}))
    price = settings.predictors.get(Attention.name, {}).get("price")
    if method != Forest.name or price is None:
        return given
    if given.setdefault("price", price) != price:
        raise ValueError("predictors.forest: price must be that of predictors.attention.")
    return given


def check_methods(settings: Settings) -> None:
    """Raise UnknownMethodError if the settings name a method that does not exist."""
    for name in (settings.method, *settings.predictors, *settings.shadow_methods):
        if name not in METHODS or (name == AUTO and name in settings.predictors):
            raise UnknownMethodError(
                f"There is no method {name!r}; there are {', '.join(sorted(METHODS))}."
            )
