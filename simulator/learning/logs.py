"""A workload log as learning needs it: its runs, its name, and whom to thank for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from predictors.jobs import Completion
from simulator.traces.cleaning import REPLAY_RULES, clean
from simulator.traces.completions import completions
from simulator.traces.swf import read_swf


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """A log.

    Attributes:
        name: of its file, without what follows the first dot behind the name.
        runs: its jobs that can be learned from.
        acknowledgement: whom its header asks to thank.
        source: where its header says that it comes from.
    """

    name: str
    runs: Sequence[Completion]
    acknowledgement: str
    source: str

    def described(self) -> dict[str, Any]:
        """For the header of a file of weights."""
        return {
            "name": self.name,
            "jobs": len(self.runs),
            "acknowledgement": self.acknowledgement,
            "source": self.source,
        }


def name_of(path: str | Path) -> str:
    """The name of a log, by which a file of weights knows it: that of its file up to ``.swf``."""
    return Path(path).name.split(".swf")[0]


def read_log(path: str) -> Log:
    """Read an SWF trace.

    Raises:
        OSError: the file cannot be read.
        MalformedLineError: a line is no job.
    """
    trace, _ = clean(read_swf(path), REPLAY_RULES)
    return Log(
        name=name_of(path),
        runs=list(completions(trace)),
        acknowledgement=trace.header.get("Acknowledge", ""),
        source=trace.header.get("Installation", ""),
    )
