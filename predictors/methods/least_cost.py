"""The estimate of least expected cost, where an underestimate has a price."""

from typing import Any

from predictors.answers import Bounds, DistributionMethod
from predictors.candidates import Wanted
from predictors.distribution import Evidence
from predictors.jobs import Submission
from predictors.memory.calibration import (
    FEWEST_SEARCHED,
    KEPT_RUNS,
    Calibrated,
    Calibration,
    capacity_for,
)
from predictors.memory.columns import RowWindow, Running
from predictors.memory.job_table import JobTable
from predictors.methods import kernel
from predictors.parameters import whole_number


class LeastCost(DistributionMethod):
    """Minimises the expected error of the estimate plus a price for an estimate that is too short.

    A prediction p of a job that runs for r costs ``|p - r|``. A prediction that is too short costs
    ``price`` more, because it gets jobs killed or plans broken. r is unknown, so each of the
    user's latest runs stands for r with a weight, the product of

    - 0.96 to the power of the number of the user's runs that ended later;
    - the fourth power of the smaller of the two requests over the larger;
    - the smaller number of processors over the larger, or 1 where either is unknown;
    - 1/4 if the application differs, and 3/4 if the queue differs.

    The cluster's last 16 runs, four of each user at most, share a tenth of one weight. Each counts
    as the share of its own request that it used: the only evidence about a new user. The answer is
    the candidate of least expected cost, and the shortest among equals. The candidates are the
    weighted runtimes, each plus 30 s, and the request itself. Each runtime counts up to the
    request.

    So at price 0 the answer is nearly the weighted median. Where being safe costs little, the
    answer is safe: a job that takes a minute or an hour is given the hour sooner than a job that
    takes a minute or a day is given the day. Thus few jobs are underestimated for a given mean
    absolute error; the same percentile for every job would underestimate more.

    The weights of age, request and processors were chosen on SDSC-SP2, CTC-SP2, HPC2N, Theta and
    CERIT-SC, the rest on these and Intrepid, SDSC-DS, LANL-CM5, Graham and Curie together.
    results/least-cost shows their results. Other weights do about as well.

    The price is counted in mean runtimes of the cluster's last 1000 runs, 20 of each user at most,
    so that it means the same where jobs take minutes and where they take days. Only runs among the
    last ``history`` of the cluster are looked at. A job of an unknown user gets the request.

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
        self._window = whole_number("window", window, 1, 1000)
        self._history = whole_number("history", history, FEWEST_SEARCHED, 1_000_000)
        kept = max(KEPT_RUNS, self._window)
        super().__init__(price, JobTable(capacity_for(self._history), kept=kept, names_jobs=True))
        self._calibration = Calibration(self._recent, self._score)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters in force."""
        return {"price": self._price, "window": self._window, "history": self._history}

    def bounds(
        self,
        submission: Submission,
        window: RowWindow,
        wanted: Wanted,
        calibrated: Calibrated,
        running: Running,
    ) -> Bounds:
        """Return the prediction of a known user's job in numbers."""
        job, settings = self._recent.job(submission), (self._window, self._history)
        columns, facts = self._recent.columns, self._recent.facts_of(submission)
        return kernel.bounds(columns, window, job, settings, wanted, calibrated, running, facts)

    def evidence(self, submission: Submission) -> Evidence:
        """Return the distribution of a job's runtime by the kernel."""
        window, job = self._recent.window(submission), self._recent.job(submission)
        return kernel.distribution(self._recent.columns, window, job, (self._window, self._history))

    def _score(self, begin: int, end: int) -> None:
        rows = (self._recent.first, begin, end)
        kernel.score_rows(self._recent.columns, rows, (self._window, self._history))
