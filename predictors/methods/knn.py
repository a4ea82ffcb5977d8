"""Mean runtime of the most similar of the most recent jobs."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from predictors.base import COLD_START, Memory, capped, request_of
from predictors.jobs import Basis, Completion, Prediction, Submission
from predictors.memory.job_table import LATE_JOBS, TEMPLATE_ATTRIBUTES, JobTable, features_of
from predictors.methods import knn_search
from predictors.parameters import choice, number, unknown, whole_number

LONGEST_HISTORY = 5_000
"""Fewest runs that are stored, so that tuning can change N without reading the history again."""

GONE = ("distance", "weights")
"""Parameters of earlier releases, which are refused by name."""


class KnnParameters(Struct, frozen=True, kw_only=True):
    """The parameters in a genome of Xu et al. 2019 (section 2.3), and the scale of the features.

    Attributes:
        template: attributes that neighbours share with the job: any of user, group, queue and
            application (x1 to x4 in the paper). May be empty.
        history: N, the number of most recent completions that are searched.
        neighbours: K, the number of nearest runs that are averaged.
        alpha: weight of their standard deviation.
        beta: weight of the request.
        scaling: number of most recent completions over which features are scaled to [0, 1].

    The defaults are for a cluster whose history is too short to tune on. On SDSC-SP2, CTC-SP2,
    HPC2N, Intrepid and Curie alike, beta = 0.02 instead of 0 lowers the share of underestimated
    jobs from between 42 and 57% to between 22 and 42%, and costs 0.3 to 6% of mean absolute
    error; other values of K are better on some of them and worse on others.
    """

    template: tuple[str, ...] = ("user",)
    history: int = 5_000
    neighbours: int = 5
    alpha: float = 0.0
    beta: float = 0.02
    scaling: int = LONGEST_HISTORY

    def __post_init__(self) -> None:
        """Check the values; the message of the ValueError names the parameter."""
        for attribute in self.template:
            choice("template", attribute, TEMPLATE_ATTRIBUTES)
        if len(set(self.template)) < len(self.template):
            raise ValueError("template must name an attribute once at most")
        whole_number("history", self.history, 1, 1_000_000)
        whole_number("neighbours", self.neighbours, 1, 1_000)
        whole_number("scaling", self.scaling, 1, 1_000_000)
        number("alpha", self.alpha, -100, 100)
        number("beta", self.beta, -100, 100)

    @property
    def columns(self) -> tuple[int, ...]:
        """The template as columns of JobTable."""
        return tuple(map(TEMPLATE_ATTRIBUTES.index, self.template))

    def estimate(self, mean: float, deviation: float, request: float) -> float:
        """Return the estimate in seconds before it is capped (Xu et al. 2019, section 2.2)."""
        return mean + self.alpha * deviation + self.beta * request


def check_names(parameters: Mapping[str, Any]) -> None:
    """Check the names of knn's parameters.

    Raises:
        ValueError: one is unknown, or was a parameter of an earlier release; the message names it.
    """
    for name in parameters:
        if name in GONE:
            raise ValueError(
                f"{name} is no parameter of knn any more: its distance is Euclidean with equal "
                "weights. Leave it out."
            )
        if name not in KnnParameters.__struct_fields__:
            raise ValueError(unknown("parameter of knn", name, KnnParameters.__struct_fields__))


class Knn:
    """Mean runtime of the K nearest among the N most recent jobs that match a template.

    The search looks at the N completions that ended last before the submission and keeps those
    that share every attribute of the template with the job. An attribute that either job lacks is
    never shared. The neighbours are the K nearest of these in requested processors, walltime and
    memory. The answer is min(request, mean + alpha * deviation + beta * request), with the mean
    and the population's standard deviation of the neighbours' runtimes.

    Equations 1 to 6 of the paper are unreadable in our copy. In this reconstruction a feature is
    scaled linearly by its smallest and largest value among the ``scaling`` most recent
    completions (by default 5000 whatever N is, so that the order of neighbours does not depend on
    N); the distance is Euclidean with equal weights; a feature differs by at most 1, so that a job
    beyond the range is as near as one at its edge; by 1 where either job lacks it, and by 0 where
    it was constant among these completions. Among equally near jobs the one that ended last comes
    first, then the one observed last: repeated jobs are at distance 0, so this rule decides many
    answers.

    The search sees only stored runs. So it finds fewer than N for a submission that is
    more than 2000 completions in the past. An average of runtimes underestimates about half
    of the jobs; alpha and beta lower that share.

    Args:
        parameters: the fields of KnnParameters, by name.

    Reference:
        Xu L., Xiong M. and Xiao Y., "On-line Prediction of Job Execution Time Using Schedule
        Historical Data", Application Research of Computers 37(3), 2019, sections 1 and 2.
    """

    name = "knn"

    def __init__(self, **parameters: Any) -> None:
        check_names(parameters)
        template = tuple(parameters.get("template", ("user",)))
        self._take(KnnParameters(**parameters | {"template": template}))
        needed = max(self.given.history, self.given.scaling, LONGEST_HISTORY)
        self._recent = JobTable(needed + 2 * LATE_JOBS)

    @property
    def parameters(self) -> dict[str, Any]:
        """Template, N, K, alpha, beta and the scale, by name."""
        return msgspec.structs.asdict(self.given) | {"template": list(self.given.template)}

    @property
    def memory(self) -> Memory:
        """The latest jobs of the cluster."""
        return Memory(latest_jobs=self._recent.capacity)

    def predict(self, submission: Submission) -> Prediction:
        """Predict the neighbours' mean runtime, without neighbours the request."""
        count, mean, deviation = nearest(self._recent, submission, self._columns, self._sizes)
        if not count:
            return request_of(submission, method=self.name, basis=COLD_START)
        return capped(
            self.given.estimate(mean, deviation, submission.requested_walltime),
            submission,
            method=self.name,
            basis=Basis(jobs=count, reason="history"),
        )

    def observe(self, completion: Completion) -> None:
        """Store the run among the recent ones."""
        self._recent.add(completion)

    def retuned(self, parameters: KnnParameters) -> "Knn":
        """Return a predictor with other parameters that shares the runs of this one.

        Only one of the two may go on observing.

        Raises:
            ValueError: the parameters look further back than runs are stored.
        """
        longest = self._recent.capacity - 2 * LATE_JOBS
        if max(parameters.history, parameters.scaling) > longest:
            raise ValueError(f"history must be at most {longest}")
        other = Knn.__new__(Knn)
        other._take(parameters)  # noqa: SLF001 - another instance of this class
        other._recent = self._recent  # noqa: SLF001
        return other

    def _take(self, parameters: KnnParameters) -> None:
        self.given = parameters
        self._columns = parameters.columns
        self._sizes = (parameters.history, parameters.neighbours, parameters.scaling)


def nearest(
    recent: JobTable,
    submission: Submission,
    template: tuple[int, ...],
    sizes: tuple[int, int, int],
) -> tuple[int, float, float]:
    """Return the number of neighbours of a job, and mean and deviation of their runtimes.

    Args:
        recent: the runs that may be neighbours.
        submission: the job; only runs that had ended at its submission count.
        template: columns of the attributes that neighbours share with the job.
        sizes: N, K, and the number of jobs over which the features are scaled.
    """
    ids = recent.matching(submission, template)
    if ids is None:
        return 0, 0.0, 0.0
    features = features_of(submission)
    return knn_search.nearest(recent.columns, recent.window(submission), sizes, ids, features)
