"""What a round of tuning looks at, and what it wants."""

from typing import Literal

from msgspec import Struct

from predictors.parameters import choice, number, whole_number

FEWEST_JOBS = 1_000
"""With fewer completions than this nothing is tuned."""


class TooShortHistoryError(ValueError):
    """There are too few completions to tune on."""


class TuningPlan(Struct, frozen=True, kw_only=True):
    """What a round looks at, and what it wants.

    The defaults come from the shared traces (docs/results/tuning): with the paper's t1 of 2000
    or 1500 jobs the search follows accidents of the training jobs; with 20000 it found parameters
    that were better on later jobs too, and with twice as many none better still.

    Attributes:
        history: h, completions before the training jobs, which only serve as neighbours.
        training: t1, jobs on which parameters are searched.
        test: t2, the newest jobs, on which the result has to beat the parameters in force. A new
            round is due when so many have ended since the last.
        penalty: price of underestimating; see Errors.cost.
        search: ``exhaustive`` or ``genetic``.
        seed: of the genetic search.
    """

    history: int = 5_000
    training: int = 20_000
    test: int = 2_000
    penalty: float = 1.0
    search: Literal["exhaustive", "genetic"] = "exhaustive"
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what makes no sense; the message names the parameter."""
        whole_number("history", self.history, 0, 100_000)
        whole_number("training", self.training, 100, 100_000)
        whole_number("test", self.test, 100, 100_000)
        number("penalty", self.penalty, 0, 1_000)
        choice("search", self.search, ("exhaustive", "genetic"))
        whole_number("seed", self.seed, 0, 2**32 - 1)

    @property
    def jobs(self) -> int:
        """Completions that a round looks at."""
        return self.history + self.training + self.test

    @property
    def fewest_jobs(self) -> int:
        """Completions that a round needs."""
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
        """Where in ``jobs`` completions, oldest first, the training and the test jobs begin.

        A shorter history is divided in the same proportions.

        Raises:
            TooShortHistoryError: there are fewer than ``fewest_jobs``.
        """
        self.check(jobs)
        share = min(1.0, jobs / self.jobs)
        test = jobs - round(self.test * share)
        return test - round(self.training * share), test
