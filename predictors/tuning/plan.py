"""The plan of a round of tuning: the jobs that it looks at, and its search."""

from typing import Literal

from msgspec import Struct

from predictors.parameters import choice, number, whole_number

FEWEST_JOBS = 1_000
"""Fewest completions that are tuned on."""


class TooShortHistoryError(ValueError):
    """There are too few completions to tune on."""


class TuningPlan(Struct, frozen=True, kw_only=True):
    """The jobs that a round looks at, and its search.

    The defaults come from the shared traces (docs/results/tuning). With the paper's t1 of 2000
    or 1500 jobs the search follows accidents of the training jobs. With 20000 jobs it found
    parameters that were also better on later jobs; twice as many jobs gave none that were better.

    Attributes:
        history: h, number of completions before the training jobs; they serve only as neighbours.
        training: t1, number of jobs on which parameters are searched.
        test: t2, number of newest jobs, on which the result has to beat the parameters in force.
            A new round is due when this number of jobs have ended since the last round.
        penalty: price of underestimating; see Errors.cost.
        search: ``exhaustive`` or ``genetic``.
        seed: seed of the genetic search.
    """

    history: int = 5_000
    training: int = 20_000
    test: int = 2_000
    penalty: float = 1.0
    search: Literal["exhaustive", "genetic"] = "exhaustive"
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse values that make no sense; the message names the parameter."""
        whole_number("history", self.history, 0, 100_000)
        whole_number("training", self.training, 100, 100_000)
        whole_number("test", self.test, 100, 100_000)
        number("penalty", self.penalty, 0, 1_000)
        choice("search", self.search, ("exhaustive", "genetic"))
        whole_number("seed", self.seed, 0, 2**32 - 1)

    @property
    def jobs(self) -> int:
        """Number of completions that a round looks at."""
        return self.history + self.training + self.test

    @property
    def fewest_jobs(self) -> int:
        """Fewest completions that a round needs."""
        return min(self.jobs, FEWEST_JOBS)

    def check(self, jobs: int) -> None:
        """Refuse too short a history.

        Raises:
            TooShortHistoryError: there are fewer than ``fewest_jobs``.
        """
        if jobs < self.fewest_jobs:
            raise TooShortHistoryError(
                f"Tuning needs {self.fewest_jobs} completions, there are {jobs}."
            )

    def divide(self, jobs: int) -> tuple[int, int]:
        """The places among ``jobs`` completions, oldest first, where training and test jobs begin.

        A shorter history is divided in the same proportions.

        Raises:
            TooShortHistoryError: there are fewer than ``fewest_jobs``.
        """
        self.check(jobs)
        share = min(1.0, jobs / self.jobs)
        test = jobs - round(self.test * share)
        return test - round(self.training * share), test
