"""The rules of the order ``response-ratio``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from predictors import jobs
from predictors.response_ratio import LONGEST, OFFSET, OVERDUE_SHARE, SHORTEST
from terminal.exit_codes import ExitCode

RESPONSE_RATIO = "response-ratio"


class RatioError(ValueError):
    """Raised when a number of the order is impossible."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioRules:
    """The order ``response-ratio``: (wait + offset) / length, the length between two bounds.

    Attributes:
        offset: seconds.
        shortest: seconds that shorter jobs count as.
        longest: seconds that longer jobs count as.
        overdue_share: a job that has waited for this share of the longest wait of the last quarter
            goes first; 0: none does.
        longest_wait: seconds, of the quarter before the first submission; 0: it is not known, and
            no job goes first until two weeks are over.
    """

    offset: int = OFFSET
    shortest: int = SHORTEST
    longest: int = LONGEST
    overdue_share: float = OVERDUE_SHARE
    longest_wait: int = 0

    def __post_init__(self) -> None:
        """Refuse impossible numbers.

        Raises:
            RatioError: the message names the number.
        """
        most = int(jobs.LONGEST)
        if not 1 <= self.offset <= most:
            raise RatioError(f"The offset of waits is 1 to {most} s, not {self.offset}.")
        if not 1 <= self.shortest <= self.longest <= most:
            raise RatioError(
                f"Lengths cannot be held between {self.shortest} s and {self.longest} s: from 1 to "
                f"{most} s, the shortest first."
            )
        if not 0 <= self.overdue_share <= 1:
            raise RatioError(f"overdue_share must be between 0 and 1, not {self.overdue_share:g}.")

    @classmethod
    def of(cls, text: str | None) -> Self:
        """Return the rules with the numbers of an option ``--ratio``; None: the usual ones.

        >>> RatioRules.of("3600,60,7200").offset
        3600

        Raises:
            RatioError: the text is not three numbers, or one is impossible.
        """
        if text is None:
            return cls()
        words = text.split(",")
        if len(words) != 3 or not all(word.isdecimal() and word.isascii() for word in words):
            raise RatioError(
                "The ratio is OFFSET,SHORTEST,LONGEST in seconds, such as "
                f"{OFFSET},{SHORTEST},{LONGEST}, not {text!r}."
            )
        offset, shortest, longest = map(int, words)
        return cls(offset=offset, shortest=shortest, longest=longest)

    @property
    def option(self) -> str:
        """Return the option that gives these numbers; empty for the usual ones."""
        numbers = f"{self.offset},{self.shortest},{self.longest}"
        return "" if numbers == f"{OFFSET},{SHORTEST},{LONGEST}" else f" --ratio {numbers}"

    @property
    def meaning(self) -> str:
        """Return the order in words."""
        return (
            f"largest (wait + {self.offset / 3600:g} h) / estimate first, the estimate held "
            f"between {self.shortest / 60:g} min and {self.longest / 3600:g} h"
            + (f"; before all a job that has waited {self.overdue}" if self.overdue_share else "")
        )

    @property
    def overdue(self) -> str:
        """Return in words the wait after which a job goes first."""
        return f"{100 * self.overdue_share:g}% of the longest wait of the last quarter"

    def numbers(self, order: str) -> Mapping[str, int]:
        """Return the rules as numbers, by the names of ``simulator.engine.state.RATIO``."""
        acts = order == RESPONSE_RATIO
        return {
            "offset": self.offset if acts else 0,
            "shortest_length": self.shortest,
            "longest_length": self.longest,
            "overdue_permille": round(1000 * self.overdue_share) if acts else 0,
            "longest_wait": self.longest_wait,
        }


USUAL_RATIO = RatioRules()
