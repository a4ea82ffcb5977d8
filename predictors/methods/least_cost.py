"""The estimate of least expected cost, where an underestimate has a price."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from predictors.answers import Weighed, answered, basis_of, quantiles_of, told, unknown, wanted
from predictors.base import COLD_START, Memory, Question, capped, request_of
from predictors.jobs import Completion, PastRun, Prediction, Submission
from predictors.memory.calibration import Calibration, rows_kept
from predictors.memory.job_table import JobTable
from predictors.methods import least_cost_search
from predictors.parameters import number, whole_number


class LeastCost:
    """Minimises the expected error of the estimate plus a price for an estimate that is too short.

    A prediction p of a job that runs for r costs ``|p - r|``. A prediction that is too short costs
    ``price`` more, because it gets jobs killed or plans broken. r is not known, so each of the
    user's latest runs stands for r with a weight, the product of

    - 0.96 to the power of the number of the user's runs that ended later;
    - the fourth power of the smaller of the two requests over the larger;
    - the smaller number of processors over the larger, or 1 where either is unknown;
    - 1/4 if the application differs, and 3/4 if the queue differs.

    The cluster's last 16 runs share a tenth of one weight. Each counts as the share of its own
    request that it used: all that is known about a new user. The answer is the candidate of least
    expected cost, and the shortest among equals. The candidates are the weighted runtimes, each
    plus 30 s, and the request itself. Each runtime counts up to the request.

    So at price 0 the answer is nearly the weighted median. Where being safe costs little, the
    answer is safe: a job that takes a minute or an hour is given the hour sooner than a job that
    takes a minute or a day is given the day. Thus few jobs are underestimated for a given mean
    absolute error; the same percentile for every job would underestimate more.

    The weights of age, request and processors were chosen on SDSC-SP2, CTC-SP2, HPC2N, Theta and
    CERIT-SC, the rest on these and Intrepid, SDSC-DS, LANL-CM5, Graham and Curie together.
    results/least-cost shows their results. Other weights do about as well.

    The price is counted in mean runtimes of the cluster's last 1000 runs, so that it means the same
    where jobs take minutes and where they take days. Only runs among the last ``history`` of the
    cluster are looked at. A job of an unknown user gets the request.

    Median and interval are quantiles of the same weighted runtimes, at levels that were corrected
    by how the cluster's last runs fell into what was predicted for them (``calibration``).

    Args:
        price: price of an underestimate, in mean runtimes (0 to 1000).
        window: number of the user's last runs that are looked at (1 to 1000).
        history: number of the cluster's last runs that these may be among (1000 to 1000000).

    Reference:
        Least expected cost is Bayes's rule for a loss function, here with an empirical
        distribution; the loss is our own. For the weights see W. Smith, I. Foster and V. Taylor,
        "Predicting application run times with historical information", JPDC 64(9), 2004, and
        D. Tsafrir, Y. Etsion and D. Feitelson, "Backfilling using system-generated predictions
        rather than user runtime estimates", IEEE TPDS 18(6), 2007.
    """

    name = "least-cost"

    def __init__(self, *, price: float = 1.0, window: int = 128, history: int = 20_000) -> None:
        self._price = number("price", price, 0, 1000)
        self._window = whole_number("window", window, 1, 1000)
        self._history = whole_number("history", history, least_cost_search.SCALING, 1_000_000)
        self._recent = JobTable(rows_kept(self._history), names_jobs=True)
        self._calibration = Calibration(self._recent, self._rank)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters in force."""
        return {"price": self._price, "window": self._window, "history": self._history}

    @property
    def price(self) -> float:
        """Of an underestimate, in mean runtimes."""
        return self._price

    @property
    def memory(self) -> Memory:
        """The latest runs of the cluster."""
        return Memory(latest_jobs=self._recent.kept)

    def predict(self, submission: Submission) -> Prediction:
        """The estimate of least expected cost, else the request."""
        own = others = 0
        seconds = 0.0
        if submission.user is not None:
            own, others, seconds = least_cost_search.least_cost(
                *self._job(submission), (float(self._price), self._window, self._history)
            )
        if not own + others:
            return request_of(submission, method=self.name, basis=COLD_START)
        return capped(seconds, submission, method=self.name, basis=basis_of(own, others))

    def ask(self, submission: Submission, question: Question) -> Prediction:
        """The same with median and interval; the request and what can be where nothing is known."""
        if question.explain:
            return self._answered(submission, question)
        own = others = 0
        if submission.user is not None:
            job = self._job(submission)
            own, others, found = least_cost_search.certain(
                job,
                (float(self._price), self._window, self._history),
                self._calibration.bins(job[1]),
                wanted(question),
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

    def repriced(self, price: float) -> "LeastCost":
        """A predictor at another price that shares what this one has learned and will learn.

        Only one of the two may go on observing.
        """
        other = LeastCost.__new__(LeastCost)
        other._price = number("price", price, 0, 1000)  # noqa: SLF001 - of this class, too
        other._window, other._history = self._window, self._history  # noqa: SLF001
        other._recent, other._calibration = self._recent, self._calibration  # noqa: SLF001
        return other

    def observe(self, completion: Completion) -> None:
        """Keep the run among the recent ones."""
        self._recent.add(completion)
        self._calibration.observed()

    def _answered(self, submission: Submission, question: Question) -> Prediction:
        """What ``ask`` says in one call, from the weighed runs, which can be explained."""
        return answered(self._weighed(submission), submission, question, method=self.name)

    def _weighed(self, submission: Submission) -> Weighed | None:
        """What past runs say of a job; None if none says anything."""
        if submission.user is None:
            return None
        own, values, weights, mean = least_cost_search.distribution(
            *self._job(submission), (self._window, self._history)
        )
        if not len(values):
            return None
        return Weighed(
            values=values,
            weights=weights,
            price=self._price * mean,
            basis=basis_of(own, len(values) - own),
            counts=self._calibration.at(submission),
            runs=partial(self._runs, submission),
        )

    def _runs(self, submission: Submission, elapsed: float) -> list[tuple[PastRun, float]]:
        """The user's runs that took longer than ``elapsed``, with their weights, newest first."""
        rows, weights = least_cost_search.own_runs(
            *self._job(submission), (self._window, self._history)
        )
        runs = map(self._recent.run_at, rows.tolist())
        found = zip(runs, weights.tolist(), strict=True)
        return [(run, weight) for run, weight in found if run.runtime > elapsed]

    def _job(self, submission: Submission) -> least_cost_search.Job:
        return (
            self._recent.columns,
            self._recent.window(submission),
            self._recent.alike(submission),
            (float(submission.requested_walltime), float(submission.requested_processors or 1)),
        )

    def _rank(self, begin: int, end: int) -> None:
        rows = (self._recent.first, begin, end)
        least_cost_search.rank(self._recent.columns, rows, (self._window, self._history))
