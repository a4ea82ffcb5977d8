"""Backtests: whether a site should turn predictions on, from its own log."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from simulator.backtest.backtest_plan import (
    NOT_PREDICTED,
    MachineOptions,
    check_jobs,
    rules_of,
    scheduler_of,
    site_of,
)
from simulator.backtest.document import as_document, text_of
from simulator.backtest.job_rows import job_tables
from simulator.backtest.plays import tasks_of
from simulator.backtest.site import BY_REQUEST, ReadLog
from simulator.backtest.verdict import Backtest as TestedLog
from simulator.backtest.verdict import backtest_of, judge
from simulator.cli.backtest import pairs_in_order, play
from simulator.cli.logs import with_size
from simulator.cli.simulate import site_of_twin
from simulator.replay.method_spec import MethodSpec
from simulator.scheduling.ratio_rules import RatioRules
from simulator.scheduling.semantics import HANDED_OVER
from simulator.traces.completions import RecordedLog
from terminal.console import CommandError
from terminal.data_table import DataTable
from walltimed.logs import Log, log_of
from walltimed.methods import MakeMethod, Methods, spec_of, specs_of
from walltimed.tabular import Tabular, check_counts

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
    method: str | MakeMethod = "auto",
    *,
    compare_with: str | MakeMethod | Methods = (),
    scheduler: str | None = None,
    profile: str | None = None,
    order: str = "fcfs",
    ratio: str | None = None,
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
        method: that would be in force: a name such as ``max-usage:window=10``, or a class with
            ``predict`` and ``observe``.
        compare_with: further methods, as ``replay`` takes them.
        scheduler: slurm, pbs, or a policy such as easy; None: by the log.
        profile: where predictions act, as ``--profile`` of the command.
        order: order of the queue today.
        ratio: numbers of the order by predictions, as ``--ratio`` of the command.
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
        ValueError: a name is not known, or no job of the log can be simulated.
        TypeError: an object is no method.
        Error: an option contradicts another, or a file cannot be used.
    """
    check_counts(
        limit=limit, processes=processes, processors=processors, cores_per_node=cores_per_node
    )
    check_counts(0, shake=shake)
    methods = _methods(method, compare_with)
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
        rules_of(scheduler, profile, order, twin={"ratio": RatioRules.of(ratio), **twin.rules}),
        MachineOptions(size, cores_per_node, partitions),
        limit=limit,
    )
    check_jobs(site, source.left_out, source.name)
    in_force = next(iter(methods))
    pairs = pairs_in_order(site, methods[in_force], quiet=not progress)
    tasks = [
        task._replace(spec=methods.get(task.estimates))
        for task in tasks_of([*methods], shake, jobs=len(site.trace), keeps=True)
    ]
    plays = play(site, tasks, processes, distributed, quiet=not progress)
    tested = backtest_of(site, plays, in_force, profile=profile or HANDED_OVER, scheduler=scheduler)
    tested = replace(tested, sorting=pairs)
    read = ReadLog(source.name, len(source.recorded.trace.rejects), source.left_out)
    return Backtest(tested, read, replace(recorded, trace=site.trace))


def _methods(
    method: str | MakeMethod, compare_with: str | MakeMethod | Methods
) -> dict[str, MethodSpec]:
    """Return the methods by label, the one in force first.

    Raises:
        CommandError: the method predicts nothing, or a class has the name of another source.
    """
    in_force = spec_of(method)
    others = specs_of(compare_with) if compare_with else []
    played = [in_force, *map(MethodSpec.parse, NOT_PREDICTED)]
    others = [each for each in others if each not in played]
    for spec in (in_force, *others):
        if spec.label in {*NOT_PREDICTED, BY_REQUEST}:
            raise CommandError(f"{spec.label} is played in every backtest: name a method.")
        spec.predictor()
    found = {spec.label: spec for spec in (in_force, *others)}
    if len(found) <= len(others):
        raise CommandError(f"Two methods have one label: {', '.join(found)}; give a mapping.")
    return found
