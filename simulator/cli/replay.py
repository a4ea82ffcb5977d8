"""``walltimed replay``: measures the predictions of each method on a log."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from predictors.jobs import DEFAULT_CLUSTER
from simulator.cli.logs import Installation, LogFile
from simulator.cli.options import (
    MalformedLines,
    Methods,
    Processes,
    ReportDirectory,
    ServiceToken,
    ServiceUrl,
    TraceFile,
    Wide,
)
from simulator.cli.players import opened
from simulator.cli.results import conclude, numbers_of, print_tables
from terminal.console import (
    STANDARD_OUTPUT,
    CommandError,
    ExitCode,
    check_directory,
    need,
)
from terminal.files import name_of
from terminal.options import AsJson, Columns, Format, Limit, OnError, Quiet, TimeZone
from terminal.progress import progress_bar

if TYPE_CHECKING:
    from predictors.base import Question
    from predictors.jobs import Completion
    from simulator.replay.method_spec import MethodSpec
    from simulator.replay.trace_replay import Replay
    from simulator.reports.method_summary import MethodSummary
    from simulator.traces.completions import RecordedLog
    from simulator.traces.trace import Reject, Trace


@dataclass(frozen=True)
class PlayedLog:
    """The usable jobs of a trace, and the reasons why other jobs are left out.

    Attributes:
        recorded: the usable jobs with the names that their numbers stand for.
        cluster: the cluster of whose history they become part.
        runs: the usable jobs as predictors receive them.
        left_out: numbers of other jobs by the rule that left them out.
    """

    name: str
    recorded: "RecordedLog"
    cluster: str
    runs: "Sequence[Completion]"
    left_out: dict[str, int]
    rejected: "Sequence[Reject]"

    @property
    def trace(self) -> "Trace":
        """The usable jobs."""
        return self.recorded.trace


@dataclass(frozen=True, kw_only=True)
class ReplayResult:
    """The result of a replay.

    Attributes:
        log: the jobs, and counts of the jobs left out.
        way: the transport: in process, or over HTTP.
    """

    log: PlayedLog
    way: str
    played: "Replay"
    summaries: "Sequence[MethodSummary]"

    @property
    def rejected(self) -> "Sequence[Reject]":
        """The malformed lines of the log."""
        return self.log.rejected

    @property
    def facts(self) -> dict[str, str]:
        """Facts about the replay, by name."""
        from simulator.traces.cleaning import in_words
        from terminal.words import counted

        log = self.log
        facts = {
            "trace": log.name,
            "played": f"{counted(len(log.runs), 'job')}, {self.way}, {self.played.seconds:,.1f} s",
            "left out": in_words(log.left_out) or "nothing",
        }
        if log.rejected:
            facts["malformed lines"] = numbers_of(log.rejected)
        return facts

    def show(self, *, wide: bool) -> None:
        """Print the facts and the tables; ``wide`` has all columns, in seconds."""
        from simulator.reports.method_summary import summary_table
        from simulator.reports.page import lines_of

        table = summary_table(self.summaries, wide=wide)
        print_tables(f"{lines_of(self.facts)}\n{table}", wide=wide, end="\n")

    def as_data(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        return {
            "trace": self.log.name,
            "jobs": len(self.log.runs),
            "left_out": self.log.left_out,
            "rejected": self.log.rejected,
            "seconds": self.played.seconds,
            "methods": [summary.as_dict() for summary in self.summaries],
        }

    def write(self, directory: Path) -> None:
        """Write the page with its pictures and data."""
        from simulator.reports.replay_report import write_report  # loads matplotlib

        write_report(
            directory,
            self.facts,
            self.played,
            data=self.as_data(),
        )


def replay(
    context: typer.Context,
    trace: TraceFile,
    *,
    format_: Format = None,
    columns: Columns = None,
    time_zone: TimeZone = "UTC",
    url: ServiceUrl = None,
    token: ServiceToken = None,
    cluster: Annotated[
        str | None, typer.Option(help="Name of the history at --url; by default a new one.")
    ] = None,
    in_process: Annotated[
        bool,
        typer.Option("--in-process", help="Play to predictors in this process, without a service."),
    ] = False,
    processes: Processes = None,
    method: Methods = None,
    limit: Limit = None,
    leave_out: Annotated[
        list[str] | None, typer.Option(help="Further cleaning rule, such as zero-run.")
    ] = None,
    on_error: MalformedLines = OnError.REFUSE,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write a row for each job and method: .csv (- is stdout), .parquet or .arrow.",
        ),
    ] = None,
    report: ReportDirectory = None,
    wide: Wide = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Play a log in simulated time, and measure every method's predictions.

    Each method predicts each submission and learns from each completion at its time; at equal
    times completions come first. The predictions are the same over HTTP and in process; only the
    latency differs. A service at --url uses its own parameters.

    For example:

        walltimed replay SDSC-SP2-1998-4.2-cln.swf.gz --report sdsc
        walltimed replay sacct.txt --time-zone Europe/Berlin --in-process
        walltimed replay - -m max-usage -m max-usage:window=10 --in-process < log.swf
    """
    need("matplotlib", for_=report)
    from simulator.replay.method_spec import MethodSpec
    from simulator.replay.predictions_file import prediction_tables
    from simulator.reports.method_summary import summarise
    from terminal.data_table import check_table, write_table

    if processes is not None and not in_process:
        raise CommandError("--processes is for --in-process.", ExitCode.USAGE)
    check_table(output, "the predictions", as_json=as_json)
    check_directory(report)
    specs = [MethodSpec.parse(text) for text in dict.fromkeys(method or default_methods(url))]
    installation: Installation = context.obj
    recorded = installation.recorded_log(
        LogFile(
            path=trace,
            format=format_,
            columns=columns or (),
            cluster=cluster,
            time_zone=time_zone,
            on_error=on_error,
            quiet=quiet,
        )
    )
    log = played_log(
        recorded,
        name_of(trace),
        limit,
        further_rules=leave_out or [],
        cluster=cluster_of(url, cluster),
    )
    played = play(
        log,
        specs,
        url=url,
        token=token,
        in_process=in_process,
        processes=processes,
        with_levels=output is not None,
        quiet=quiet,
    )
    result = ReplayResult(
        log=log,
        way="in process" if in_process else f"over HTTP, {url or 'private'}",
        played=played,
        summaries=summarise(played),
    )
    if output:
        write_table(prediction_tables(log.recorded, played.answers), output)
    piped = output == STANDARD_OUTPUT
    conclude(result, report=report, wide=wide, as_json=as_json, is_piped=piped)


def default_methods(url: str | None) -> list[str]:
    """Return all usual methods; without parameters for a running service, which has its own."""
    from predictors.registry import METHODS
    from simulator.replay.method_spec import usual_methods

    return list(METHODS) if url else usual_methods()


def cluster_of(url: str | None, cluster: str | None) -> str:
    """Return the name of a cluster without history: a service may know the log's future already."""
    if cluster:
        return cluster
    return time.strftime("replay-%Y%m%dT%H%M%SZ", time.gmtime()) if url else DEFAULT_CLUSTER


def played_log(
    recorded: "RecordedLog",
    file: str,
    limit: int | None = None,
    *,
    further_rules: Sequence[str] = (),
    cluster: str = DEFAULT_CLUSTER,
) -> PlayedLog:
    """Return the usable jobs of a log.

    Raises:
        NoJobError: nothing is left to play.
    """
    from simulator.traces.cleaning import REPLAY_RULES, NoJobError, clean
    from simulator.traces.completions import LoggedRuns

    cleaned, removed = clean(recorded.trace, (*REPLAY_RULES, *further_rules))
    played = cleaned.select(slice(limit))
    left_out = {**recorded.left_out, **{rule: jobs for rule, jobs in removed.items() if jobs}}
    log = PlayedLog(
        name=Path(file).name,
        recorded=replace(recorded, trace=played),
        cluster=cluster,
        runs=LoggedRuns(played, cluster),
        left_out=left_out,
        rejected=recorded.trace.rejects,
    )
    if not log.runs:
        raise NoJobError(log.name, "played", left_out)
    return log


def play(
    log: "PlayedLog",
    specs: "Sequence[MethodSpec]",
    *,
    url: str | None,
    token: str | None,
    in_process: bool,
    processes: int | None = 1,
    with_levels: bool = False,
    quiet: bool,
) -> "Replay":
    """Play the log with a progress bar."""
    from simulator.replay.trace_replay import LEVELS
    from simulator.replay.trace_replay import replay as play_to
    from simulator.scheduling.parallel import number_of_processes

    levels = LEVELS if with_levels else ()
    if in_process and not url:
        processes = number_of_processes(processes, len(specs) * len(log.runs))
        if processes > 1 and len(specs) > 1:
            return play_beside(log, specs, processes, levels, quiet=quiet)
    with (
        opened(specs, url=url, token=token, in_process=in_process, quiet=quiet) as player,
        progress_bar("jobs", quiet=quiet) as progress,
    ):
        task = progress.add_task(escape(log.name), total=len(log.runs))
        return play_to(
            log.runs,
            player,
            levels=levels,
            progress=lambda jobs: progress.advance(task, jobs),
        )


def play_beside(
    log: "PlayedLog",
    specs: "Sequence[MethodSpec]",
    processes: int,
    levels: "Sequence[Question]",
    *,
    quiet: bool,
) -> "Replay":
    """Play the log to each method in a process of its own."""
    from simulator.replay.trace_replay import Replay, replay_alone
    from simulator.scheduling.parallel import in_parallel

    began = time.perf_counter()
    slowest_first = specs[::-1]  # of the usual methods, the last take longest
    function = partial(replay_alone, log.trace, log.cluster, levels)
    answers = {}
    with progress_bar("jobs", quiet=quiet) as progress:
        task = progress.add_task(escape(log.name), total=len(specs) * len(log.runs))
        found = in_parallel(function, slowest_first, processes=processes)
        for spec, each in zip(slowest_first, found, strict=True):
            answers[spec.label] = each
            progress.advance(task, len(log.runs))
    in_order = {spec.label: answers[spec.label] for spec in specs}
    return Replay(log.runs, in_order, time.perf_counter() - began)
