"""Predicts runtimes, and ranks users and waiting jobs by the accuracy of earlier requests."""

import asyncio
import secrets
from itertools import count
from operator import attrgetter

from msgspec.structs import replace

from predictors.accuracy_groups import Accuracies, UserAccuracy, aged_priority, group_named
from predictors.base import Question, request_of
from predictors.correction import next_estimate
from predictors.correction_by_history import SHARE
from predictors.distribution import MARGIN_SECONDS
from predictors.facts import starts_after_hits
from predictors.jobs import Basis, Prediction, Submission, in_agreement
from predictors.limits import LimitRisk, nothing_known
from predictors.methods.least_cost import LeastCost
from predictors.registry import UNCERTAIN
from service.auth import EVERYBODY, Caller
from service.contract.answers import (
    ExtensionAnswer,
    GroupsAnswer,
    LimitAnswer,
    PredictionAnswer,
    PredictionsAnswer,
    PrioritiesAnswer,
    PriorityAnswer,
    UserAnswer,
)
from service.contract.bodies import (
    AskedSubmission,
    ExtensionRequest,
    PredictionBatch,
    PredictionRequest,
    PriorityRequest,
    WaitingJob,
    check_length,
    method_of,
)
from service.contract.fields import unix_seconds
from service.errors import InvalidFieldError, UnknownUserError
from service.live_queue.taken_processors import longest_of
from service.worker.live_state import ClusterState
from service.worker.prediction_recorder import AnsweredPrediction
from service.worker.worker import Worker

PREDICTIONS_PER_TURN = 16
"""Number of predictions made in one turn of the event loop; other requests pass in between."""

STARTING = Basis(jobs=0, reason="starting")
"""Basis of the answer to a submit filter before the history has been read."""

UNREAD = nothing_known(STARTING.reason)
"""Answer about limits before the history has been read."""


class Predicting:
    """Predicts from memory; nothing here waits for the store."""

    def __init__(self, worker: Worker) -> None:
        self._settings = worker.settings
        self._usual = Question(coverage=worker.settings.coverage)
        self._by_rate = replace(
            self._usual, underestimation_rate=worker.settings.underestimation_rate
        )
        self._follower = worker.follower
        self._queue_nodes = worker.queues.queue_nodes
        self._recorder = worker.recorder
        self._hide = worker.pseudonyms.submission
        self._metrics = worker.metrics
        self._clock = worker.clock
        self._prefix = secrets.token_hex(8)
        self._serial = count(1)

    def predict(self, body: PredictionRequest, caller: Caller) -> PredictionAnswer:
        """Predict one job; before the history has been read, as its request.

        Submit filters ask for one job, and pause after an error.

        Raises:
            ForbiddenError: the caller may not ask about another user's job.
            InvalidFieldError: there is no method of that name.
        """
        method = method_of(body.method, self._settings.method)
        question, now = self._question(body, method), self._clock()
        if not self._follower.started:
            return self._request(body, method, now, caller)
        return self._answer(body, method, question, now, caller)

    async def predict_batch(self, body: PredictionBatch) -> PredictionsAnswer:
        """Predict several jobs, in order.

        Raises:
            InvalidFieldError: there is no method of that name, or there are too many jobs.
            StartingError: the history has not been read.
        """
        method = method_of(body.method, self._settings.method)
        question = self._question(body, method)
        check_length(body.submissions, "submissions", self._settings.max_batch)
        now = self._clock()
        answers: list[PredictionAnswer] = []
        for start in range(0, len(body.submissions), PREDICTIONS_PER_TURN):
            jobs = body.submissions[start : start + PREDICTIONS_PER_TURN]
            answers += [self._answer(job, method, question, now) for job in jobs]
            await asyncio.sleep(0)
        return PredictionsAnswer(predictions=answers)

    def extend(self, body: ExtensionRequest) -> ExtensionAnswer:
        """Return the next estimate of a job that outlived its prediction.

        Raises:
            InvalidFieldError: the prediction is longer than the request, or the submission has
                another request.
            StartingError: the history has not been read, and there is a submission.
        """
        if body.predicted_walltime > body.requested_walltime:
            raise InvalidFieldError(
                "No prediction is longer than the request.", "predicted_walltime"
            )
        return ExtensionAnswer(predicted_walltime=self._extended(body))

    def _extended(self, body: ExtensionRequest) -> float:
        """Return the next estimate: from the user's longer runs, else by doubling."""
        predicted, requested, elapsed = (
            body.predicted_walltime,
            body.requested_walltime,
            body.elapsed,
        )
        if body.submission is None:
            return next_estimate(predicted, requested, elapsed)
        if body.submission.requested_walltime != requested:
            raise InvalidFieldError(
                "It must be the same as requested_walltime.", "submission.requested_walltime"
            )
        submission = later(self._hide(body.submission.submission(self._clock())), elapsed)
        if elapsed < predicted or elapsed >= requested:
            return next_estimate(predicted, requested, elapsed)
        state = self._follower.state_of(submission.cluster)
        if (left := self._quantile_estimate(state, submission, elapsed)) is not None:
            return left
        return state.correction.next_estimate(predicted, submission, elapsed)

    def _quantile_estimate(
        self, state: ClusterState, submission: Submission, elapsed: float
    ) -> float | None:
        """Return a quantile of the runtimes of jobs that ran as long; None without a method."""
        usual = self._settings.method
        method = usual if usual in UNCERTAIN else LeastCost.name
        found = state.quantiles(method, submission, (SHARE,), elapsed)
        if found is None:
            return None
        return min(submission.requested_walltime, max(found[0], elapsed + MARGIN_SECONDS))

    def _question(self, body: PredictionRequest | PredictionBatch, method: str) -> Question:
        """Return the question in the body, without the elapsed time.

        Raises:
            InvalidFieldError: the method gives no distribution for a rate of underestimates.
        """
        rate = body.underestimation_rate
        if body.coverage is None and rate is None and not body.explain:
            return self._by_rate if method in UNCERTAIN else self._usual
        if rate is not None and method not in UNCERTAIN:
            raise InvalidFieldError(
                f"{method} gives no intervals; {', '.join(sorted(UNCERTAIN))} can be asked.",
                "underestimation_rate",
            )
        coverage = self._usual.coverage if body.coverage is None else body.coverage
        return Question(coverage=coverage, underestimation_rate=rate, explain=body.explain)

    def _answer(
        self,
        body: AskedSubmission,
        method: str,
        question: Question,
        now: float,
        caller: Caller = EVERYBODY,
    ) -> PredictionAnswer:
        asked = self._submission(body, now)
        submission = caller.own(self._hide(asked))
        if body.elapsed is not None:
            question = replace(question, elapsed=body.elapsed)
        state = self._follower.state_of(submission.cluster)
        as_of = later(submission, body.elapsed or 0.0)
        prediction = running_on(state.ask(method, as_of, question), body.elapsed)
        prediction_id = self._next_id()
        is_recorded = self._settings.record_predictions and caller.restricted_to is None
        if is_recorded and body.elapsed is None:
            self._recorder.later(
                AnsweredPrediction(
                    method=method,
                    state=state,
                    submission=submission,
                    question=question,
                    prediction=prediction,
                    prediction_id=prediction_id,
                )
            )
        longest = longest_of(self._queue_nodes(submission.cluster), submission.queue)
        follows = starts_after_hits(asked.facts)
        risk = state.limit_risk(as_of, body.elapsed, longest=longest, follows=follows)
        return self._shown(body, submission, prediction, risk, prediction_id)

    def _submission(self, body: AskedSubmission, now: float) -> Submission:
        """Return the job with the processors that it will take."""
        submission, nodes = body.submission(now), self._queue_nodes(body.cluster)
        return body.taken(submission, nodes) if nodes else submission

    def _request(
        self, body: AskedSubmission, method: str, now: float, caller: Caller
    ) -> PredictionAnswer:
        """Return the request in place of a prediction, which is not recorded."""
        submission = caller.own(self._hide(self._submission(body, now)))
        prediction = request_of(submission, method=method, basis=STARTING)
        return self._shown(body, submission, prediction, UNREAD, self._next_id())

    def _next_id(self) -> str:
        return f"{self._prefix}-{next(self._serial):x}"

    def _shown(
        self,
        body: AskedSubmission,
        submission: Submission,
        prediction: Prediction,
        risk: LimitRisk,
        prediction_id: str,
    ) -> PredictionAnswer:
        """Count a prediction, and return its answer."""
        self._metrics.predicted.add(prediction.method)
        shown = in_agreement(prediction)
        return PredictionAnswer(
            predicted_walltime=shown.predicted_walltime,
            requested_walltime=shown.requested_walltime,
            method=shown.method,
            basis=shown.basis,
            interval=shown.interval,
            likely=shown.median,
            mean_walltime=shown.mean,
            explanation=shown.explanation,
            limit_probability=risk.probability,
            limit_reason=risk.reason,
            limit_warning=risk.warns(self._settings.least_warning(body.elapsed)),
            like_runs=risk.runs,
            like_hits=risk.hits,
            longer_walltime=risk.longer_walltime,
            longer_reason=risk.longer_reason,
            prediction_id=prediction_id,
            job_id=body.job_id,
            cluster=submission.cluster,
        )


def limit_answer(risk: LimitRisk, *, warning: float) -> LimitAnswer:
    """Return the answer about a job's limit; users are warned from a probability on."""
    return LimitAnswer(
        probability=risk.probability,
        reason=risk.reason,
        warning=risk.warns(warning),
        like_runs=risk.runs,
        like_hits=risk.hits,
        longer_walltime=risk.longer_walltime,
        longer_reason=risk.longer_reason,
    )


def later(submission: Submission, elapsed: float) -> Submission:
    """Return the job with its submit time moved forward by ``elapsed`` seconds.

    So runs that ended since the job's start count in its prediction.
    """
    if not elapsed:
        return submission
    return replace(submission, submit_time=submission.submit_time + elapsed)


def running_on(prediction: Prediction, elapsed: float | None) -> Prediction:
    """Return the prediction, doubled until it exceeds the elapsed seconds."""
    if elapsed is None or prediction.predicted_walltime > elapsed:
        return prediction
    requested = prediction.requested_walltime
    seconds = next_estimate(prediction.predicted_walltime, requested, elapsed)
    return replace(prediction, predicted_walltime=seconds)


JOBS_PER_TURN = 256
"""Number of jobs ranked in one turn of the event loop; other requests pass in between."""


class Ranking:
    """Accuracy groups and aging priorities (Rocchetti et al.), from memory."""

    def __init__(self, worker: Worker) -> None:
        self._settings = worker.settings
        self._follower = worker.follower
        self._default = group_named(worker.settings.default_group)
        self._pseudonym = worker.pseudonyms.user
        self._clock = worker.clock

    def user(self, user: str, cluster: str, caller: Caller) -> UserAnswer:
        """Return the accuracy of a user's requests.

        Raises:
            ForbiddenError: the caller may not see this user.
            UnknownUserError: no job of the user has ended.
        """
        name = self._pseudonym(user)
        caller.check_sees({name})
        accuracy = self._accuracies(cluster).of(name)
        if accuracy is None:
            raise UnknownUserError
        return UserAnswer(
            user=user,
            cluster=cluster,
            accuracy=accuracy.accuracy,
            jobs=accuracy.jobs,
            group=accuracy.group,
            priority=accuracy.priority,
        )

    def accuracy_of(self, user: str, cluster: str) -> UserAccuracy | None:
        """Return a user's accuracy, by name or pseudonym; None for an unknown user."""
        accuracies = self._accuracies(cluster)
        return accuracies.of(user) or accuracies.of(self._pseudonym(user))

    def groups(self, cluster: str) -> GroupsAnswer:
        """Return the users of each accuracy group."""
        return GroupsAnswer(cluster=cluster, groups=self._accuracies(cluster).groups())

    async def priorities(self, body: PriorityRequest) -> PrioritiesAnswer:
        """Return the waiting jobs, highest priority first.

        Raises:
            InvalidFieldError: there are too many jobs.
        """
        check_length(body.jobs, "jobs", self._settings.max_batch)
        now = self._clock() if body.now is None else unix_seconds(body.now)
        accuracies = self._accuracies(body.cluster)
        oldest_first = sorted(body.jobs, key=lambda job: unix_seconds(job.submit_time))
        ranked: list[PriorityAnswer] = []
        for start in range(0, len(oldest_first), JOBS_PER_TURN):
            ranked += [
                self._rank(job, accuracies, now)
                for job in oldest_first[start : start + JOBS_PER_TURN]
            ]
            await asyncio.sleep(0)
        # The sort is stable: among equal priorities the older submission stays first.
        ranked.sort(key=attrgetter("priority"), reverse=True)
        return PrioritiesAnswer(priorities=ranked)

    def _rank(self, job: WaitingJob, accuracies: Accuracies, now: float) -> PriorityAnswer:
        accuracy = accuracies.of(self._pseudonym(job.user), now)
        initial = accuracy.priority if accuracy else self._default.priority
        return PriorityAnswer(
            job_id=job.job_id,
            group=accuracy.group if accuracy else self._default.name,
            initial_priority=initial,
            priority=aged_priority(
                initial, now - unix_seconds(job.submit_time), job.requested_walltime
            ),
            reason="history" if accuracy else "cold-start",
        )

    def _accuracies(self, cluster: str) -> Accuracies:
        return self._follower.state_of(cluster).accuracy_groups
