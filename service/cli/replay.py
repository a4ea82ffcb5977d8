"""``walltimed replay``: measures the predictions of each method on a log."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from predictors.jobs import DEFAULT_CLUSTER
from service.cli import option_values as values
from service.cli.console import (
    AsJson,
    ExitCode,
    Limit,
    Wide,
    err,
    print_json,
    progress_bar,
)
from service.cli.extras import need
from service.cli.importing import OnError
from service.cli.outputs import STANDARD_OUTPUT, check_alone, check_directory, check_file
from service.cli.players import opened

if TYPE_CHECKING:
    from service.cli.replay_result import PlayedLog
    from simulator.replay.method_spec import MethodSpec
    from simulator.replay.percentile_schemes import Swept
    from simulator.replay.trace_replay import Replay


def replay(
    trace: Annotated[
        str, typer.Argument(metavar="TRACE", help="SWF; plain, gzip, xz; - is stdin.")
    ],
    *,
    url: Annotated[
        str | None, typer.Option(help="URL of a running service; default: a private one.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(envvar="WALLTIMED_TOKEN", help="Token (predict, ingest) for --url."),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Name of the history at --url; by default a new one.")
    ] = None,
    in_process: Annotated[
        bool,
        typer.Option("--in-process", help="Play to predictors in this process, without a service."),
    ] = False,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            help="Method, such as percentile:percentile=90.",
            autocompletion=values.one_of(values.METHODS),
        ),
    ] = None,
    limit: Limit = None,
    leave_out: Annotated[
        list[str] | None, typer.Option(help="Further cleaning rule, such as zero-run.")
    ] = None,
    on_error: Annotated[
        OnError, typer.Option(help="Malformed lines: refuse the file, or skip them.")
    ] = OnError.REFUSE,
    sweep: Annotated[
        bool, typer.Option("--sweep", help="Also compare the schemes of the percentile method.")
    ] = False,
    predictions: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write a line for each job and method; - is stdout."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write a page with tables and pictures.")
    ] = None,
    wide: Wide = False,
    as_json: AsJson = False,
) -> None:
    """Play a log in simulated time, and measure every method's predictions.

    Each method predicts each submission and learns from each completion at its time; at equal
    times completions come first. The predictions are the same over HTTP and in process; only the
    latency differs. A service at --url uses its own parameters.

    For example:

        walltimed replay SDSC-SP2-1998-4.2-cln.swf.gz --report sdsc
        walltimed replay ANL-Intrepid-2009-1.swf.gz --in-process --sweep
        walltimed replay - -m max-usage -m max-usage:window=10 --in-process < log.swf
    """
    need("matplotlib", for_=report)
    from service.cli.replay_result import ReplayResult
    from simulator.replay.method_spec import MethodSpec
    from simulator.replay.predictions_file import write_predictions
    from simulator.reports.method_summary import summarise

    check_alone(predictions, "the predictions", as_json=as_json)
    check_file(predictions)
    check_directory(report)
    specs = [MethodSpec.parse(text) for text in dict.fromkeys(method or default_methods(url))]
    log = read_log(trace, limit, leave_out or [], on_error, cluster_of(url, cluster))
    played = play(log, specs, url=url, token=token, in_process=in_process, quiet=as_json)
    result = ReplayResult(
        log=log,
        way="in process" if in_process else f"over HTTP, {url or 'private'}",
        played=played,
        summaries=summarise(played),
        swept=compare_schemes(log, quiet=as_json) if sweep else None,
    )
    if predictions:
        write_predictions(played, predictions)
    if report:
        result.write(report, compare_schemes(log, quiet=as_json, figure_only=True))
        err.print(escape(f"The report is {report / 'index.html'}."), soft_wrap=True)
    if as_json:
        print_json(result.as_data())
    elif predictions != STANDARD_OUTPUT:
        result.show(wide=wide)
    if log.rejected:
        raise typer.Exit(ExitCode.PARTIAL)


def default_methods(url: str | None) -> list[str]:
    """All usual methods; without parameters for a running service, which has its own."""
    from predictors.registry import METHODS
    from simulator.replay.method_spec import usual_methods

    return list(METHODS) if url else usual_methods()


def cluster_of(url: str | None, cluster: str | None) -> str:
    """A cluster without history, because a service may know the log's future already."""
    if cluster:
        return cluster
    return time.strftime("replay-%Y%m%dT%H%M%SZ", time.gmtime()) if url else DEFAULT_CLUSTER


def read_log(
    file: str, limit: int | None, further_rules: Sequence[str], on_error: OnError, cluster: str
) -> "PlayedLog":
    """Read and clean a trace.

    Raises:
        NoJobError: nothing is left to play.
    """
    from service.cli.replay_result import PlayedLog
    from simulator.traces.cleaning import REPLAY_RULES, NoJobError, clean
    from simulator.traces.completions import completions
    from simulator.traces.swf import read_swf

    trace = read_swf(file, on_error="raise" if on_error is OnError.REFUSE else "skip")
    cleaned, removed = clean(trace, (*REPLAY_RULES, *further_rules))
    log = PlayedLog(
        name=Path(file).name if file != "-" else "standard input",
        runs=list(completions(cleaned.select(slice(limit)), cluster=cluster)),
        left_out={rule: jobs for rule, jobs in removed.items() if jobs},
        rejected=[{"line": reject.line, "reason": reject.reason} for reject in trace.rejects],
    )
    if not log.runs:
        raise NoJobError(log.name, "played", removed)
    return log


def play(
    log: "PlayedLog",
    specs: "Sequence[MethodSpec]",
    *,
    url: str | None,
    token: str | None,
    in_process: bool,
    quiet: bool,
) -> "Replay":
    """Play the log with a progress bar."""
    from simulator.replay.trace_replay import replay as play_to

    with (
        opened(specs, url=url, token=token, in_process=in_process) as player,
        progress_bar("jobs", quiet=quiet) as progress,
    ):
        task = progress.add_task(escape(log.name), total=len(log.runs))
        return play_to(log.runs, player, progress=lambda jobs: progress.advance(task, jobs))


def compare_schemes(log: "PlayedLog", *, quiet: bool, figure_only: bool = False) -> "Swept":
    """Play the log to the percentile method's schemes, in process."""
    from simulator.replay import percentile_schemes

    keys = percentile_schemes.usable_keys(log.runs)
    schemes = (
        percentile_schemes.schemes(keys, windows=[None], lower_bounds=[0.0], min_jobs=[1])
        if figure_only
        else percentile_schemes.schemes(keys)
    )
    with progress_bar("jobs", quiet=quiet) as progress:
        task = progress.add_task(f"{len(schemes)} schemes", total=len(log.runs))
        return percentile_schemes.sweep(
            log.runs, schemes, progress=lambda jobs: progress.advance(task, jobs)
        )
