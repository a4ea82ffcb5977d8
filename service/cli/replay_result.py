"""The result of a replay for people, as JSON and as a page."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from predictors.jobs import Completion
from service.cli.console import print_tables
from service.cli.importing import LISTED
from simulator.replay.percentile_schemes import Swept, as_records
from simulator.replay.trace_replay import Replay
from simulator.reports.method_summary import (
    LEGEND,
    NARROW_LEGEND,
    MethodSummary,
    narrow_sweep_table,
    narrow_table,
    summary_table,
    sweep_table,
)
from simulator.reports.words import counted
from simulator.traces.cleaning import in_words


@dataclass(frozen=True)
class PlayedLog:
    """The usable jobs of a trace, and the reasons why other jobs are left out."""

    name: str
    runs: Sequence[Completion]
    left_out: dict[str, int]
    rejected: list[dict[str, str | int]]


@dataclass(frozen=True, kw_only=True)
class ReplayResult:
    """A log that was played.

    Attributes:
        log: the jobs, and counts of those left out.
        way: how the methods were asked.
        played: every answer.
        summaries: summaries of the methods.
        swept: the percentile method's schemes, if they were compared.
    """

    log: PlayedLog
    way: str
    played: Replay
    summaries: Sequence[MethodSummary]
    swept: Swept | None

    @property
    def facts(self) -> dict[str, str]:
        """Facts about the replay, by name."""
        log, rejected = self.log, self.log.rejected
        facts = {
            "trace": log.name,
            "played": f"{counted(len(log.runs), 'job')}, {self.way}, {self.played.seconds:,.1f} s",
            "left out": in_words(log.left_out) or "nothing",
        }
        if rejected:
            lines = ", ".join(str(reject["line"]) for reject in rejected[:LISTED])
            more = " and more; --json lists them all" if len(rejected) > LISTED else ""
            facts["malformed lines"] = f"{len(rejected):,}: {lines}{more}"
        return facts

    def show(self, *, wide: bool) -> None:
        """Print the facts and the tables; ``wide`` has all columns, in seconds."""
        facts = "".join(f"{name}: {fact}\n" for name, fact in self.facts.items())
        table = summary_table(self.summaries) if wide else narrow_table(self.summaries)
        legend = LEGEND if wide else NARROW_LEGEND
        print_tables(f"{facts}\n{table}\n{legend}", wide=wide, end="\n")
        if self.swept:
            swept = sweep_table(self.swept) if wide else narrow_sweep_table(self.swept)
            print_tables(swept, wide=wide, end="\n")

    def as_data(self) -> dict[str, Any]:
        """The result as a JSON object."""
        return {
            "trace": self.log.name,
            "jobs": len(self.log.runs),
            "left_out": self.log.left_out,
            "rejected": self.log.rejected,
            "seconds": self.played.seconds,
            "methods": [summary.as_dict() for summary in self.summaries],
            "sweep": as_records(self.swept) if self.swept else None,
        }

    def write(self, directory: Path, by_percentile: Swept) -> None:
        """Write the page; ``by_percentile`` gives the picture of accuracies."""
        from simulator.reports.replay_report import Report  # loads matplotlib

        Report(
            title=f"Replay of {self.log.name}",
            facts=self.facts,
            played=self.played,
            summaries=self.summaries,
            by_percentile=by_percentile,
            swept=self.swept,
        ).write(directory)
