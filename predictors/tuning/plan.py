"""The plan of a round of tuning: the jobs that it looks at, and its search."""

from msgspec import Struct

from predictors.parameters import choice, number, whole_number
from predictors.tuning.adoption import ONE_SIDED, Demand

GENERATIONS = 100
POPULATION = 50
"""Of the genetic search. The paper stops after 100 generations and does not name its population in
our copy."""

SUBJECTS = ("knn", "forest")
"""Names of the tunables, in the order of a round."""

GONE = {
    "fitness": "the cost is the error times 1 + penalty x share of underestimated jobs",
    "search": "the search is genetic",
    "distance": "the distance of knn is Euclidean",
    "weights": "the features of knn have equal weights",
    "learned": "auto chooses by sums of costs, not in rounds",
    "underestimation_rate": "use the setting underestimation_rate of the service",
}
"""Parts of a plan in earlier releases, which are refused by name, with the reason."""

FEWEST_JOBS = 1_000
"""Fewest completions that are tuned on."""


class TooShortHistoryError(ValueError):
    """There are too few completions to tune on."""


class TuningPlan(Struct, frozen=True, kw_only=True):
    """The jobs that a round looks at, and its search.

    The defaults come from the shared traces (results/tuning.txt): with t1 of 2000 or 1500 jobs,
    as in the batches that Xu et al. 2019 compare, the search overfits the training jobs; with
    20000 it found parameters that were better on later jobs too, and with 40000 none better still.
    The batch that the paper chose is in its Table 1, which our copy lacks.

    Attributes:
        history: h, completions before the training jobs, which only serve as neighbours.
        training: t1, jobs on which parameters are searched.
        test: t2, the newest jobs, on which the result has to beat the parameters in force. A new
            round is due when ``test`` jobs have ended since the last.
        penalty: price of underestimating; see ``batch.cost_of``.
        generations: of the genetic search, at most.
        subjects: of the round: ``knn``, its parameters; ``forest``, its trees.
        errors: number of standard errors by which a proposal has to win; a later loss by half of
            them drops it.
    """

    history: int = 5_000
    training: int = 20_000
    test: int = 2_000
    penalty: float = 1.0
    generations: int = GENERATIONS
    population: int = POPULATION
    seed: int = 0
    subjects: tuple[str, ...] = SUBJECTS
    errors: float = ONE_SIDED

    def __post_init__(self) -> None:
        """Check the values; the message of the ValueError names the parameter."""
        whole_number("history", self.history, 0, 100_000)
        whole_number("training", self.training, 100, 100_000)
        whole_number("test", self.test, 100, 100_000)
        number("penalty", self.penalty, 0, 1_000)
        whole_number("generations", self.generations, 1, 10_000)
        whole_number("population", self.population, 2, 10_000)
        whole_number("seed", self.seed, 0, 2**32 - 1)
        for subject in self.subjects:
            choice("subjects", subject, SUBJECTS)
        number("errors", self.errors, 0, 100)

    @property
    def demand(self) -> Demand:
        """The least gain that counts."""
        return Demand(errors=self.errors)

    @property
    def jobs(self) -> int:
        """Number of completions of a round."""
        return self.history + self.training + self.test

    @property
    def fewest_jobs(self) -> int:
        """Fewest completions that a round needs."""
        return min(self.jobs, FEWEST_JOBS)

    def check(self, jobs: int) -> None:
        """Check the length of a history.

        Raises:
            TooShortHistoryError: there are fewer than ``fewest_jobs``.
        """
        if jobs < self.fewest_jobs:
            raise TooShortHistoryError(
                f"Tuning needs {self.fewest_jobs} completions, there are {jobs}."
            )

    def divide(self, jobs: int) -> tuple[int, int]:
        """Return the indices among ``jobs`` completions where training and test jobs begin.

        A shorter history is divided in the same proportions.

        Raises:
            TooShortHistoryError: there are fewer than ``fewest_jobs``.
        """
        self.check(jobs)
        share = min(1.0, jobs / self.jobs)
        test = jobs - round(self.test * share)
        return test - round(self.training * share), test
