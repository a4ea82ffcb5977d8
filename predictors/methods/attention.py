"""The estimate of least expected cost over a distribution whose weights were learned."""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from msgspec.structs import replace

from predictors.answers import Weighed, answered, basis_of, quantiles_of, told, unknown, wanted
from predictors.base import COLD_START, SHORTEST_ESTIMATE, Memory, capped, request_of
from predictors.base import Question as Asked
from predictors.jobs import Completion, PastRun, Prediction, Submission
from predictors.memory.calibration import Calibration, rows_kept
from predictors.memory.columns import USER, Floats
from predictors.memory.hindsight import LOOKED_BACK
from predictors.memory.job_table import NEW, UNKNOWN, JobTable
from predictors.methods import attention_search
from predictors.methods.attention_features import FEATURES, Names, Question, Rows, Singles
from predictors.methods.attention_weights import Weights, shipped
from predictors.methods.least_cost_search import SCALING
from predictors.names import without_digits
from predictors.parameters import number, whole_number

MANY = 1_000
"""As many runs are worth another thread to rank them."""


class Attention:
    """As least-cost does, but what likeness is was learned from public logs.

    The runtime of a job is taken to be one of some values: how long the user's last 40 runs took,
    older ones that are like the job (12 with the same request, processors and application, 8 more
    with the same application), the same share of the new request that runs with another request
    used of theirs, and the request. For somebody with fewer than 16 runs, runs of others are added:
    recent ones, those of the same group and those with the same request. Each value counts up to
    the request.

    A small network gives each value a weight. It is told how the run behind the value resembles
    the job (user, group, application, queue, request, processors, memory, how long ago, how many
    runs ago, how much of its request it used), and what kind of user, job and cluster it is: how
    much of their requests the user's and the cluster's last runs used, and whether runtimes or
    usages stay the same when the request changes. The digits of a name of an application are
    left out, so that ``step_1`` and ``step_2`` are the same; a project stands for the group where
    there is one.

    A share of all weight, a quarter in the file that is shipped, goes to the user's last 128 runs
    by the hand-chosen likeness of least-cost instead: two judges that err differently err less
    together. For a user without runs the network judges alone.

    The next run may take what no past run took: a guess is mixed in that counts as some runs more,
    six in the file that is shipped. Half of it is below the median, half between the median and
    the request. So few runs, or few that are alike, are trusted less where too short an answer is
    dear.

    The network's weights are the same for all clusters. They come with the package, were learned
    from the logs that the file names, and are renewed by ``walltimed learn``. The answer is that of
    the values, each 30 s more, and the request, whose expected cost is least, as in least-cost;
    the price means the same.

    A job of an unknown user gets the request. Median and interval are quantiles of the same
    distribution, at levels that are corrected as those of least-cost are. Other weights rank the
    runs that end from then on; those that were ranked before keep their ranks.

    Args:
        price: of an underestimate, in mean runtimes of the cluster (0 to 1000).
        history: among how many of the cluster's last runs all are sought (1000 to 1000000).
        weights: others than those that come with the package.

    Reference:
        The weighted distribution of like runs is a kernel regression with a learned kernel: E.
        Nadaraya, "On estimating regression", 1964; D. Bahdanau, K. Cho and Y. Bengio, "Neural
        machine translation by jointly learning to align and translate", ICLR 2015, for learned
        attention. It is learned by the continuous ranked probability score: T. Gneiting and A.
        Raftery, "Strictly proper scoring rules, prediction, and estimation", JASA 102, 2007.
    """

    name = "attention"

    def __init__(
        self, *, price: float = 1.0, history: int = 20_000, weights: Weights | None = None
    ) -> None:
        self._price = number("price", price, 0, 1000)
        self._history = whole_number("history", history, SCALING, 1_000_000)
        self._weights = weights or shipped()
        kept = rows_kept(self._history, looked_back=LOOKED_BACK)
        self._recent = JobTable(kept, names_jobs=True)
        self._calibration = Calibration(self._recent, self._rank, looked_back=LOOKED_BACK)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters in force; the weights are none of them."""
        return {"price": self._price, "history": self._history}

    @property
    def memory(self) -> Memory:
        """The latest runs of the cluster."""
        return Memory(latest_jobs=self._recent.kept)

    @property
    def price(self) -> float:
        """Of an underestimate, in mean runtimes."""
        return self._price

    @property
    def weights(self) -> Weights:
        """What it weighs by."""
        return self._weights

    def predict(self, submission: Submission) -> Prediction:
        """The estimate of least expected cost, else the request."""
        own = others = 0
        seconds = 0.0
        if submission.user is not None:
            own, others, seconds = attention_search.least_cost(
                self._recent.columns,
                self._recent.window(submission),
                (float(self._price), self._history),
                self._question(submission),
                self._weights.model,
            )
        if not own + others:
            return request_of(submission, method=self.name, basis=COLD_START)
        return capped(seconds, submission, method=self.name, basis=basis_of(own, others))

    def ask(self, submission: Submission, question: Asked) -> Prediction:
        """The same with median and interval; the request and what can be where nothing is known."""
        if question.explain:
            return self._answered(submission, question)
        own = others = 0
        if submission.user is not None:
            window = self._recent.window(submission)
            own, others, found = attention_search.certain(
                self._recent.columns,
                window,
                (float(self._price), self._history),
                self._question(submission),
                self._weights.model,
                (self._calibration.bins(window), wanted(question)),
            )
        if not own + others:
            return unknown(submission, question, method=self.name)
        basis = basis_of(own, others)
        return told(found, submission, question, method=self.name, basis=basis)

    def quantiles(
        self, submission: Submission, shares: Sequence[float], elapsed: float | None = None
    ) -> list[float] | None:
        """The runtimes that shares of jobs like this one do not exceed."""
        return quantiles_of(self._weighed(submission), submission, shares, elapsed)

    def observe(self, completion: Completion) -> None:
        """Keep the run among the recent ones."""
        submission = recognised(completion.submission)
        if submission is not completion.submission:
            completion = replace(completion, submission=submission)
        self._recent.add(completion)
        self._calibration.observed()

    def estimates(self, submission: Submission, prices: Floats) -> Floats:
        """What would be answered at each of several prices, in seconds."""
        request = submission.requested_walltime
        found = np.empty(0)
        if submission.user is not None:
            found = attention_search.least_costs(
                self._recent.columns,
                self._recent.window(submission),
                self._history,
                self._question(submission),
                self._weights.model,
                prices,
            )
        if not len(found):
            return np.full(len(prices), request)
        return np.minimum(request, np.maximum(SHORTEST_ESTIMATE, found))

    def distribution(self, submission: Submission) -> tuple[Floats, Floats, Rows]:
        """Values in ascending order, their weights, and rows of the runs (-1: no run has it).

        Nothing at all where no run says anything of the job. A row is the place of the run in
        the table of recent runs until the next one is observed.
        """
        if submission.user is None:
            return np.empty(0), np.empty(0), np.empty(0, np.int64)
        return self._distribution(submission)[:3]

    def atoms(self, submission: Submission) -> tuple[Singles, Floats, Singles]:
        """Features by atom, values, and the context: what the network is shown of a job."""
        if submission.user is None:
            return np.empty((len(FEATURES), 0), np.float32), np.empty(0), np.zeros(0, np.float32)
        return attention_search.atoms_of(
            self._recent.columns,
            self._recent.window(submission),
            self._history,
            self._question(submission),
        )

    def repriced(self, price: float) -> "Attention":
        """Return a predictor at another price that shares what this one has learned.

        Only one of the two may go on observing.
        """
        other = Attention.__new__(Attention)
        other._price = number("price", price, 0, 1000)  # noqa: SLF001 - of this class, too
        other._history, other._weights = self._history, self._weights  # noqa: SLF001
        other._recent, other._calibration = self._recent, self._calibration  # noqa: SLF001
        return other

    def _answered(self, submission: Submission, question: Asked) -> Prediction:
        """What ``ask`` says in one call, from the weighed runs, which can be explained."""
        return answered(self._weighed(submission), submission, question, method=self.name)

    def _weighed(self, submission: Submission) -> Weighed | None:
        """What past runs say of a job; None if none says anything."""
        if submission.user is None:
            return None
        values, weights, rows, (own, others, mean) = self._distribution(submission)
        if not len(values):
            return None
        return Weighed(
            values=values,
            weights=weights,
            price=self._price * mean,
            basis=basis_of(own, others),
            counts=self._calibration.at(submission),
            runs=partial(self._runs, submission, values, weights, rows),
        )

    def _runs(
        self, submission: Submission, values: Floats, weights: Floats, rows: Rows, elapsed: float
    ) -> list[tuple[PastRun, float]]:
        """The user's runs, each with the weight of its atoms that are longer than ``elapsed``."""
        user = self._recent.ids_of(submission)[0]
        if user == UNKNOWN:  # of somebody new, whose number is that of nobody known
            return []
        owners = self._recent.columns[1][USER]
        total: dict[int, float] = {}
        longer = values > elapsed
        for row, weight in zip(rows[longer].tolist(), weights[longer].tolist(), strict=True):
            if row >= 0 and owners[row] == user:
                total[row] = total.get(row, 0.0) + weight
        return [(self._recent.run_at(row), weight) for row, weight in total.items()]

    def _distribution(
        self, submission: Submission
    ) -> tuple[Floats, Floats, Rows, tuple[int, int, float]]:
        return attention_search.distribution(
            self._recent.columns,
            self._recent.window(submission),
            self._history,
            self._question(submission),
            self._weights.model,
        )

    def _rank(self, begin: int, end: int) -> None:
        """Rank rows, of which none rests on the rank of another: many of them on two cores."""
        if end - begin < MANY:
            self._rank_rows(begin, end)
            return
        middle = (begin + end) // 2
        with ThreadPoolExecutor(1) as other:
            later = other.submit(self._rank_rows, middle, end)
            self._rank_rows(begin, middle)
            later.result()

    def _rank_rows(self, begin: int, end: int) -> None:
        rows = (self._recent.first, begin, end)
        attention_search.rank(self._recent.columns, rows, self._history, self._weights.model)

    def _question(self, submission: Submission) -> tuple[Names, Question]:
        submission = recognised(submission)
        user, group, _, _ = self._recent.ids_of(submission)
        if user == UNKNOWN:
            user = NEW  # runs of nobody in particular are not this user's
        queue, application = self._recent.alike(submission)
        memory = submission.requested_memory
        question = (
            float(submission.requested_walltime),
            float(submission.requested_processors or 1),
            math.nan if memory is None else float(memory),
            float(submission.submit_time),
        )
        return (user, group, queue, application), question


def recognised(submission: Submission) -> Submission:
    """The submission with its application's digits left out, and its project for the group."""
    application = without_digits(submission.application)
    group = submission.project or submission.group
    if application == submission.application and group == submission.group:
        return submission
    return replace(submission, application=application, group=group)
