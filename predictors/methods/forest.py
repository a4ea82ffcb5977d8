"""The estimate of least expected cost over a distribution that a forest of the site gives."""

from math import inf
from typing import Any, Self

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from predictors.answers import Bounds, DistributionMethod
from predictors.base import USUAL
from predictors.candidates import Wanted
from predictors.distribution import Evidence
from predictors.jobs import LATEST_TIME, Completion, Submission
from predictors.memory.calibration import (
    FEWEST_SEARCHED,
    KEPT_RUNS,
    Calibrated,
    Calibration,
    capacity_for,
)
from predictors.memory.columns import USER, Floats, Ids, RowWindow, Running
from predictors.memory.fact_rows import (
    PLACES,
    UNKNOWN_FACT,
    describe_rows,
)
from predictors.memory.histograms import LONGEST_WINDOW
from predictors.memory.job_table import LATE_JOBS, JobTable
from predictors.methods import forest_decision
from predictors.methods.attention import compared_names, normalised, on_two_cores
from predictors.methods.attention_features import Singles
from predictors.methods.attention_network import shipped
from predictors.methods.forest_features import FEATURES
from predictors.methods.forest_leaves import LeafIndex, Leaves
from predictors.methods.forest_trees import NO_TREES, LearnedForest, Trees, unpacked
from predictors.parameters import whole_number


class Forest(DistributionMethod):
    """A quantile regression forest that was learned on the cluster's own runs.

    A past run weighs by the share of trees in which it falls into the leaf of the job, divided by
    the runs in that leaf. The trees divide jobs by what attention knows of user, job and cluster,
    by the time of the submission, by runtimes of like runs, and by attention's own distribution. A
    run enters its leaves as soon as it ends. The prediction is the estimate of least expected cost,
    as in ``attention``, whose tail mixture is used too.

    Levels are corrected by runs that the trees in use were not learned on: what was predicted for
    the runs that the newest trees know is computed by trees that were learned on older runs only.

    Rounds learn the trees in the background. The distribution is the mean of that of the forest and
    that of attention. Without trees, and for a job of an unknown user, the answer is the request.

    Args:
        price: penalty of an underestimate, in mean runtimes of the cluster (0 to 1000).
        history: number of the cluster's last runs that are searched (1000 to 1000000); leaves hold
            the last half of them.
        learned: trees, and the share of attention; None without.

    Reference:
        N. Meinshausen, "Quantile regression forests", JMLR 7, 2006; the trees are those of
        scikit-learn (L. Breiman, "Random forests", Machine Learning 45, 2001).
    """

    name = "forest"

    def __init__(
        self, *, price: float = 1.0, history: int = 20_000, learned: LearnedForest | None = None
    ) -> None:
        self._history = whole_number("history", history, FEWEST_SEARCHED, 1_000_000)
        self._in_leaves = self._history // 2
        self._model = shipped().model
        table = JobTable(self._capacity, kept=KEPT_RUNS, names_jobs=True, has_costs=True)
        super().__init__(price, table)
        self._learn(learned)

    @property
    def learned(self) -> LearnedForest | None:
        """The forest that was adopted; None without."""
        return self._learned

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters in force, without the trees."""
        learned = self._learned.summary() if self._learned else None
        return {"price": self._price, "history": self._history, "learned": learned}

    def evidence(self, submission: Submission) -> Evidence:
        """Return the distribution of a job's runtime by the forest, and by attention as adopted."""
        return forest_decision.distribution(
            self._recent.columns,
            self._recent.window(submission),
            self._recent.job_named(submission, *compared_names(submission)),
            self._settings,
            self._model,
            self._trees,
            self._index.leaves,
            self._recent.facts_of(submission),
        )

    def bounds(
        self,
        submission: Submission,
        window: RowWindow,
        wanted: Wanted,
        calibrated: Calibrated,
        running: Running,
    ) -> Bounds:
        """Return the prediction of a known user's job in numbers."""
        return forest_decision.bounds(
            self._recent.columns,
            window,
            self._recent.job_named(submission, *compared_names(submission)),
            self._settings,
            self._model,
            self._trees,
            self._index.leaves,
            self._recent.facts_of(submission),
            wanted,
            calibrated,
            running,
        )

    def has_distribution(self, submission: Submission) -> bool:
        """Return whether there are trees, and the job has a user."""
        return self._learned is not None and super().has_distribution(submission)

    def observe(self, completion: Completion) -> None:
        """Store the run among the recent ones."""
        submission = normalised(completion.submission)
        if submission is not completion.submission:
            completion = replace(completion, submission=submission)
        super().observe(completion)

    def retuned(self, learned: LearnedForest | None) -> Self:
        """Return a predictor with another forest that shares the runs of this one.

        Only one of the two may go on observing.

        Raises:
            UnusableForestError: the trees are damaged.
        """
        other = type(self).__new__(type(self))
        vars(other).update(vars(self))
        other._learn(learned)  # noqa: SLF001 - of this class
        return other

    def copied(self, learned: LearnedForest | None) -> Self:
        """Return a predictor with another forest and its own copy of the runs.

        Raises:
            UnusableForestError: the trees are damaged.
        """
        other = type(self).__new__(type(self))
        vars(other).update(vars(self))
        other._recent = self._recent.copy()  # noqa: SLF001 - of this class
        other._learn(learned)  # noqa: SLF001 - of this class
        return other

    def rank_runs(self) -> None:
        """Compute leaves and calibration now, so that no request has to wait for it."""
        job = Submission(requested_walltime=3600.0, submit_time=LATEST_TIME, user="u")
        self.ask(job, USUAL)

    def features(self) -> Singles:
        """Return the features of all stored runs at their submissions, by run and feature.

        NaN where no run counted for the job. The runs are in order of their ends. Behind the usual
        features are those that further facts give, if any fact counts by the history.
        """
        first = self._recent.first
        features = self._features(first, first + len(self._recent))
        if not self._recent.facts_that_count().any():
            return features
        return np.concatenate((features, self.fact_features(first, first + len(features))), axis=1)

    def runtimes(self) -> tuple[Floats, Floats, Floats]:
        """Return runtimes, requests and ends of all stored runs, in order of their ends."""
        return self._recent.outcomes()

    def users(self) -> Ids:
        """Return the users of all stored runs as numbers, in order of their ends."""
        first = self._recent.first
        return self._recent.columns[1][USER, first : first + len(self._recent)]

    @property
    def _capacity(self) -> int:
        return self._in_leaves + capacity_for(self._history)

    @property
    def _settings(self) -> forest_decision.Settings:
        learned, trees = self._learned, len(self._trees.roots)
        if learned is None:
            return self._history, self._in_leaves, 0.0, trees, -inf, inf, False
        until = float(learned.until) if learned.calibrating else -inf
        predicting, share = trees - learned.calibrating, float(learned.attention)
        known = float(learned.known if learned.calibrating else learned.until)
        has_facts = learned.has_facts
        return self._history, self._in_leaves, share, predicting, until, known, has_facts

    def _learn(self, learned: LearnedForest | None) -> None:
        """Put a forest in force: its leaves and its calibration begin anew."""
        if learned is not None and not isinstance(learned, LearnedForest):
            raise TypeError("learned")
        self._learned = learned
        self._trees: Trees = (
            NO_TREES if learned is None else unpacked(learned.trees, learned.features)
        )
        self._index = LeafIndex(
            self._recent,
            len(self._trees.roots),
            len(self._trees.features),
            self._write_leaves,
            self._in_leaves + LONGEST_WINDOW + LATE_JOBS,
        )
        self._calibration = Calibration(self._recent, self._score, has_costs=True)

    def _write_leaves(self, begin: int, end: int, leaf: Ids) -> None:
        forest_decision.leaves_of_features(self._trees, self._all_features(begin, end), begin, leaf)

    def _features(self, begin: int, end: int) -> Singles:
        features = np.empty((end - begin, len(FEATURES)), np.float32)

        def write(first: int, stop: int) -> None:
            rows, part = (self._recent.first, first, stop), features[first - begin : stop - begin]
            forest_decision.features_of_rows(
                self._recent.columns, rows, self._history, self._model, part
            )

        on_two_cores(begin, end, write)
        return features

    def _all_features(self, begin: int, end: int) -> Singles:
        """Return the features with those that further facts give, if the trees know some."""
        features = self._features(begin, end)
        if self._learned is None or not self._learned.has_facts:
            return features
        return np.concatenate((features, self.fact_features(begin, end)), axis=1)

    def fact_features(self, begin: int, end: int) -> Singles:
        """Return the features that the facts of runs give, at their submissions."""
        found = np.full((end - begin, PLACES), UNKNOWN_FACT, np.float32)
        if len(self._recent.facts):
            rows = (self._recent.first, begin, end)
            table = self._recent
            describe_rows(table.columns, table.facts, rows, self._history, found)
        return found

    def useful_features(self, count: int) -> NDArray[np.int64]:
        """Return the features that trees may divide by: of facts those that count."""
        useful = np.ones(count, bool)
        useful[len(FEATURES) :] = self._recent.facts_that_count()[: count - len(FEATURES)]
        return np.flatnonzero(useful)

    def _score(self, begin: int, end: int) -> None:
        leaves = self._index.leaves
        on_two_cores(begin, end, lambda first, stop: self._score_rows(first, stop, leaves))

    def _score_rows(self, begin: int, end: int, leaves: Leaves) -> None:
        rows = (self._recent.first, begin, end)
        recent, price = self._recent, float(self._price)
        forest_decision.score_rows(
            recent.columns, recent.running, rows, self._settings, self._model, leaves, price
        )
