"""Backtests: whether a site should turn predictions on, from its own log."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from simulator.backtest.backtest_plan import (
    MachineOptions,
    check_jobs,
    methods_of,
    rules_of,
    scheduler_of,
    site_of,
)
from simulator.backtest.document import as_document, text_of
from simulator.backtest.job_rows import job_tables
from simulator.backtest.plays import tasks_of
from simulator.backtest.site import ReadLog
from simulator.backtest.verdict import Backtest as TestedLog
from simulator.backtest.verdict import backtest_of, judge
from simulator.cli.backtest import play
from simulator.cli.logs import with_size
from simulator.cli.simulate import site_of_twin
from simulator.scheduling.semantics import HANDED_OVER
from simulator.traces.completions import RecordedLog
from terminal.data_table import DataTable
from walltimed.logs import Log, log_of
from walltimed.tabular import Tabular

Directory = str | PathLike[str]


@dataclass(frozen=True, slots=True, repr=False)
class Backtest(Tabular):
    """A verdict with its figures: a row for each source of estimates.

    Attributes:
        tested: the log under requests and under predictions.
        read: facts on the reading of the log.
        recorded: the jobs, with the names that their numbers stand for.
    """

    tested: TestedLog
    read: ReadLog
    recorded: RecordedLog

    def __str__(self) -> str:
        return text_of(self.tested)

    def __repr__(self) -> str:
        return f"<walltimed.Backtest of {self.read.name}: {self.verdict}>"

    @property
    def verdict(self) -> str:
        """Such as ``turn-on``, ``observe`` or ``not-worth-it``."""
        return judge(self.tested).verdict

    @property
    def reason(self) -> str:
        """The reason of the verdict in a sentence, with its figures."""
        return judge(self.tested).reason

    def document(self) -> dict[str, Any]:
        """Return the verdict with all its figures, as ``walltimed backtest --json`` prints it."""
        return as_document(self.tested)

    def jobs(self) -> DataTable:
        """Return a row for each job of the log and source of estimates."""
        return DataTable.joined(job_tables(self.tested, self.recorded))

    def tables(self) -> Iterator[DataTable]:
        """Yield the figures of the log under requests, under each method, and exact runtimes."""
        document = self.document()
        sources = {
            "requested": document["today"],
            "by-request": document["ordered_by_request"],
            **{each["method"]: each for each in document["methods"]},
            "exact": document["exact"],
        }
        rows = [{"estimates": name, **figures} for name, figures in sources.items()]
        for row in rows:
            for other in ("method", "choice"):
                row.pop(other, None)
        yield DataTable.of_records(rows)

    def write_page(self, path: str | PathLike[str]) -> None:
        """Write the page with pictures, which needs matplotlib."""
        from simulator.backtest.backtest_page import write_page  # noqa: PLC0415 - an extra

        write_page(self.tested, Path(fspath(path)), self.read, "walltimed.backtest")


def backtest(
    log: Log | str | PathLike[str],
    method: str = "auto",
    *,
    compare_with: Sequence[str] = (),
    scheduler: str | None = None,
    profile: str | None = None,
    order: str = "fcfs",
    processors: int | None = None,
    cores_per_node: int | None = None,
    partitions: str | None = None,
    slurm_config: Directory | None = None,
    pbs_config: Directory | None = None,
    shake: int = 10,
    limit: int | None = None,
    processes: int | None = None,
    distributed: str | None = None,
    progress: bool = False,
) -> Backtest:
    """Say whether a site should turn predictions on, and why, from its own log.

    Args:
        log: a log, or the name of its file.
        method: that would be in force.
        compare_with: further methods.
        scheduler: slurm, pbs, or a policy such as easy; None: by the log.
        profile: where predictions act, as ``--profile`` of the command.
        order: order of the queue today.
        processors: size of the machine; None: by the log.
        cores_per_node: jobs take whole nodes with this many cores.
        partitions: file with queues that have processors of their own, or ``queues``.
        slurm_config: directory with what scontrol printed.
        pbs_config: directory with the configuration of PBS.
        shake: number of repetitions with submissions moved a little.
        limit: number of jobs; None takes all.
        processes: of this machine; None: one per core where it is worth it.
        distributed: ``dask:ADDRESS`` of a Dask scheduler, whose workers are used instead.
        progress: whether a bar is shown on standard error.

    Raises:
        Error: a name or an option is not known.
        NoJobError: no job of the log can be simulated.
    """
    source = log_of(log)
    slurm, pbs = (
        None if each is None else Path(fspath(each)) for each in (slurm_config, pbs_config)
    )
    scheduler = scheduler or scheduler_of(source.recorded.format, slurm, pbs)
    twin = site_of_twin(slurm, pbs, [scheduler], cores_per_node)
    size = processors or twin.processors
    recorded = source.recorded if size or partitions else with_size(source.recorded)
    site = site_of(
        recorded,
        rules_of(scheduler, profile, order, twin=twin.rules),
        MachineOptions(size, cores_per_node, partitions),
        limit=limit,
    )
    check_jobs(site, source.left_out, source.name)
    methods = methods_of(method, [method, *compare_with])
    tasks = tasks_of(methods, shake, jobs=len(site.trace), keeps=True)
    plays = play(site, tasks, processes, distributed, quiet=not progress)
    tested = backtest_of(site, plays, method, profile=profile or HANDED_OVER, scheduler=scheduler)
    read = ReadLog(source.name, len(source.recorded.trace.rejects), source.left_out)
    return Backtest(tested, read, replace(recorded, trace=site.trace))
