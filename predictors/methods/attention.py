"""The estimate of least expected cost over a distribution whose weights were learned."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from msgspec.structs import replace

from predictors.answers import Bounds, DistributionMethod
from predictors.candidates import Wanted
from predictors.distribution import Evidence
from predictors.jobs import Completion, Submission, without_digits
from predictors.memory.calibration import (
    FEWEST_SEARCHED,
    KEPT_RUNS,
    Calibrated,
    Calibration,
    capacity_for,
)
from predictors.memory.columns import Floats, JobQuery, RowWindow, Running
from predictors.memory.job_table import JobTable
from predictors.memory.recalibration import RECALIBRATED
from predictors.methods import attention_decision
from predictors.methods.attention_features import FEATURES, Singles
from predictors.methods.attention_network import Weights, shipped
from predictors.parameters import whole_number

ROWS_FOR_THREADS = 1_000
"""Fewest rows that two threads score."""


class Attention(DistributionMethod):
    """Like ``least-cost``, by a kernel that was learned from public logs; see docs/attention.md.

    The runtime of a job is taken to be one of some support points: runtimes of the user's last 40
    runs and of older runs that are like the job, usages of runs with other requests scaled to the
    new request, and the request. Users with fewer than 16 runs get runs of other users too. A small
    network scores each support point by features of the run behind it and by a context that
    describes user, job and cluster; the softmax of the scores gives the weights. A share of all
    weight follows the handcrafted kernel of ``least-cost``, and a tail mixture stands for runtimes
    that no past run had.

    The network's weights are the same for all clusters. They come with the package, were learned
    from the logs that the file names, and are renewed by ``research/learn_attention.py``. The
    prediction is the estimate of least expected cost, as in ``least-cost``; the price means the
    same. A job of an unknown user gets the request.

    Digits in the name of an application are left out, so that ``step_1`` and ``step_2`` are the
    same; a project stands for the group where there is one.

    Args:
        price: penalty of an underestimate, in mean runtimes of the cluster (0 to 1000).
        history: number of the cluster's last runs that are searched (1000 to 1000000).
        weights: others than those that come with the package.

    Reference:
        Kernel regression with a learned kernel: E. Nadaraya, "On estimating regression", 1964; D.
        Bahdanau, K. Cho and Y. Bengio, "Neural machine translation by jointly learning to align and
        translate", ICLR 2015. Learned by the continuous ranked probability score: T. Gneiting and
        A. Raftery, "Strictly proper scoring rules, prediction, and estimation", JASA 102, 2007.
    """

    name = "attention"

    def __init__(
        self, *, price: float = 1.0, history: int = 20_000, weights: Weights | None = None
    ) -> None:
        self._history = whole_number("history", history, FEWEST_SEARCHED, 1_000_000)
        self._model = (weights or shipped()).model
        capacity = capacity_for(self._history, recalibrated=RECALIBRATED)
        super().__init__(price, JobTable(capacity, kept=KEPT_RUNS, names_jobs=True, has_costs=True))
        self._calibration = Calibration(
            self._recent, self._score, recalibrated=RECALIBRATED, has_costs=True
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters in force, without the weights."""
        return {"price": self._price, "history": self._history}

    def bounds(
        self,
        submission: Submission,
        window: RowWindow,
        wanted: Wanted,
        calibrated: Calibrated,
        running: Running,
    ) -> Bounds:
        """Return the prediction of a known user's job in numbers."""
        return attention_decision.bounds(
            self._recent.columns,
            window,
            self._job(submission),
            self._history,
            self._model,
            wanted,
            calibrated,
            running,
            self._recent.facts_of(submission),
        )

    def evidence(self, submission: Submission) -> Evidence:
        """Return the distribution of a job's runtime by the network, the kernel and the tails."""
        return attention_decision.distribution(
            self._recent.columns,
            self._recent.window(submission),
            self._job(submission),
            self._history,
            self._model,
        )

    def observe(self, completion: Completion) -> None:
        """Store the run among the recent ones."""
        submission = normalised(completion.submission)
        if submission is not completion.submission:
            completion = replace(completion, submission=submission)
        super().observe(completion)

    def network_inputs(self, submission: Submission) -> tuple[Singles, Floats, Singles]:
        """Return features by support point, values in seconds, and the context of a job."""
        if submission.user is None:
            return np.empty((len(FEATURES), 0), np.float32), np.empty(0), np.zeros(0, np.float32)
        return attention_decision.network_inputs(
            self._recent.columns,
            self._recent.window(submission),
            self._job(submission),
            self._history,
        )

    def _job(self, submission: Submission) -> JobQuery:
        return self._recent.job_named(submission, *compared_names(submission))

    def _score(self, begin: int, end: int) -> None:
        """Score rows, none of which depends on another."""
        on_two_cores(begin, end, self._score_rows)

    def _score_rows(self, begin: int, end: int) -> None:
        rows, settings = (self._recent.first, begin, end), (self._history, float(self._price))
        recent = self._recent
        attention_decision.score_rows(recent.columns, recent.running, rows, settings, self._model)


def on_two_cores(begin: int, end: int, work: Callable[[int, int], None]) -> None:
    """Apply ``work`` to rows that do not depend on each other, to many on two cores."""
    if end - begin < ROWS_FOR_THREADS:
        work(begin, end)
        return
    middle = (begin + end) // 2
    with ThreadPoolExecutor(1) as other:
        later = other.submit(work, middle, end)
        work(begin, middle)
        later.result()


def compared_names(submission: Submission) -> tuple[str | None, str | None]:
    """Return the project or else the group, and the application without digits."""
    return submission.project or submission.group, without_digits(submission.application)


def normalised(submission: Submission) -> Submission:
    """Return the submission with the names by which it is compared."""
    group, application = compared_names(submission)
    if application == submission.application and group == submission.group:
        return submission
    return replace(submission, application=application, group=group)
