"""``walltimed backtest``: whether a site should turn predictions on, from its own log."""

import shlex
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from simulator.cli.logs import Installation, LogFile, with_size
from simulator.cli.options import (
    ADJUSTMENTS,
    METHODS,
    ORDERS,
    POLICIES,
    TWINS,
    CoresPerNode,
    Distributed,
    MachineSize,
    MalformedLines,
    PbsConfig,
    Processes,
    SlurmConfig,
)
from simulator.cli.simulate import site_of_twin
from terminal.console import (
    STANDARD_OUTPUT,
    CommandError,
    ExitCode,
    check_file,
    err,
    missing,
    need,
    out,
    print_json,
)
from terminal.options import (
    AsJson,
    Columns,
    ConfigFile,
    Format,
    Limit,
    OnError,
    Quiet,
    Ratio,
    TimeZone,
    choice,
    one_of,
)
from terminal.progress import progress_bar, waiting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simulator.backtest.plays import Plays, Task
    from simulator.backtest.site import BacktestSite
    from simulator.backtest.sorting import Sorting
    from simulator.backtest.verdict import Backtest
    from simulator.replay.method_spec import MethodSpec

SCHEDULERS = (*TWINS, *POLICIES)

DEFAULT_PAGE = Path("backtest.html")


def backtest(
    context: typer.Context,
    file: Annotated[
        str,
        typer.Argument(metavar="LOG", help="Accounting log; plain, gzip, xz or bzip2; - is stdin."),
    ],
    *,
    format_: Format = None,
    columns: Columns = None,
    cluster: Annotated[
        str | None, typer.Option(help="Cluster of all jobs; by default as the records name it.")
    ] = None,
    time_zone: TimeZone = "UTC",
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The page (default: backtest.html), or a row for each job and source of estimates "
            "(.csv, .parquet or .arrow); may be given twice.",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler",
            "--policy",
            autocompletion=one_of(SCHEDULERS),
            help="The site's scheduler: slurm or pbs (their twins), or a policy of papers such as "
            "easy; default: by the log.",
        ),
    ] = None,
    slurm_config: SlurmConfig = None,
    pbs_config: PbsConfig = None,
    order: Annotated[str, choice("Queue order of today", ORDERS)] = "fcfs",
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            "--adjust",
            autocompletion=one_of(ADJUSTMENTS),
            help="Where predictions act: order: on the order of the queue, within bounds "
            "(default); order-and-time-min: also as TimeMin or soft_walltime; aged-order: on the "
            "order of a filter without the updater; regular: on plans alone; selective.",
        ),
    ] = None,
    ratio: Ratio = None,
    site_factor: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Largest SiteFactor beside Slurm's other factors; default: what a day of age "
            "adds to a priority.",
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            help="Compare with this one, not with all methods.",
            autocompletion=one_of(METHODS),
        ),
    ] = None,
    processors: MachineSize = None,
    partitions: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Queues with processors of their own: what sinfo --json or pbsnodes -F json "
            "printed, lines such as batch 4096, or the word queues: by the log itself.",
        ),
    ] = None,
    cores_per_node: CoresPerNode = None,
    shake: Annotated[
        int,
        typer.Option(
            min=0,
            max=1000,
            help="Repetitions with submissions moved a little; of methods not in force at most 2.",
        ),
    ] = 10,
    processes: Processes = None,
    distributed: Distributed = None,
    limit: Limit = None,
    on_error: MalformedLines = OnError.REFUSE,
    config: ConfigFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Say whether a site should turn predictions on, and why, from its own accounting log.

    The scheduler is simulated as it is today, with the queue ordered by requests, and with
    predictions; again and again with submissions moved a little, and judged over resampled weeks,
    so that chance is told from gain. The verdict is about the setting `method`; other methods are
    shown beside it. The page needs no other file; without matplotlib there is no page.

    For example:

        walltimed backtest log.swf.gz
        walltimed backtest log.swf.gz --scheduler slurm -m last-two
        walltimed backtest sacct.txt --slurm-config site -o site.html
        walltimed backtest sacct.txt --partitions sinfo.json --json
        walltimed backtest log.swf.gz --partitions queues
    """
    from simulator.backtest.backtest_plan import (
        MachineOptions,
        check_jobs,
        in_force_of,
        methods_of,
        rules_of,
        scheduler_of,
        site_of,
    )
    from simulator.backtest.document import WIDTH
    from simulator.backtest.job_rows import job_tables
    from simulator.backtest.plays import return_freed_arrays, tasks_of
    from simulator.backtest.site import ReadLog
    from simulator.backtest.verdict import backtest_of
    from simulator.replay.method_spec import MethodSpec
    from simulator.scheduling.ratio_rules import RatioRules
    from simulator.scheduling.semantics import HANDED_OVER
    from terminal.data_table import write_table
    from terminal.files import name_of

    table, page = table_of(output or []), page_of(output or [])
    rules: dict[str, Any] = {"ratio": RatioRules.of(ratio)}
    rules_of(scheduler or "easy", profile, order, twin=rules)  # refuses before a long read
    installation: Installation = context.obj
    in_force = in_force_of(*installation.method_in_force(config))
    methods = methods_of(in_force, method)
    return_freed_arrays()
    log = installation.recorded_log(
        LogFile(
            path=file,
            format=format_,
            columns=columns or (),
            cluster=cluster,
            time_zone=time_zone,
            on_error=on_error,
            quiet=quiet,
        )
    )
    scheduler = scheduler or scheduler_of(log.format, slurm_config, pbs_config)
    profile = profile or HANDED_OVER
    twin = site_of_twin(slurm_config, pbs_config, [scheduler], cores_per_node)
    if twin.rules and partitions:
        raise CommandError("The configuration knows the queues: no --partitions.", ExitCode.USAGE)
    if not (processors or twin.processors or partitions):
        log = with_size(log)
    site = site_of(
        log,
        rules_of(scheduler, profile, order, twin={**rules, **twin.rules}, site_factor=site_factor),
        MachineOptions(processors or twin.processors, cores_per_node, partitions),
        limit=limit,
    )
    read = ReadLog(Path(name_of(file)).name, len(log.trace.rejects), log.left_out)
    check_jobs(site, log.left_out, name_of(file))
    named = replace(log, trace=site.trace) if table else None
    del log  # a large one takes hundreds of megabytes
    sorting = pairs_in_order(site, MethodSpec.parse(in_force), quiet=quiet)
    if sorting is not None and not as_json:
        err.print(escape(fill(sorting.sentence, WIDTH)), soft_wrap=True)
    tasks = tasks_of(methods, shake, jobs=len(site.trace), keeps=table is not None)
    plays = play(site, tasks, processes, distributed, quiet=quiet)
    with waiting("verdict", quiet=quiet):
        tested = backtest_of(site, plays, in_force, profile=profile, scheduler=scheduler)
        tested = replace(tested, sorting=sorting)
    if named and table:
        write_table(job_tables(tested, named), table)
    if page:
        from simulator.backtest.backtest_page import write_page

        with waiting("page", quiet=quiet):
            write_page(tested, page, read, shlex.join(["walltimed", *sys.argv[1:]]))
    show(tested, page, as_json=as_json)
    if read.malformed:
        raise typer.Exit(ExitCode.PARTIAL)


def table_of(outputs: "Sequence[Path]") -> Path | None:
    """Return the file of the table; None if none is named.

    Raises:
        CommandError: there are several, or it cannot be written.
    """
    from terminal.data_table import check_table, form_of

    tables = [each for each in outputs if form_of(each) and str(each) != STANDARD_OUTPUT]
    if len(tables) > 1:
        raise CommandError("Name one table.", ExitCode.USAGE)
    check_table(tables[0] if tables else None, "the jobs")
    return tables[0] if tables else None


def page_of(outputs: "Sequence[Path]") -> Path | None:
    """Return the page to write; None if only a table is named, or nothing can draw a page.

    Raises:
        CommandError: the page is standard output, cannot be written, or cannot be drawn.
    """
    from terminal.data_table import form_of

    pages = [each for each in outputs if str(each) == STANDARD_OUTPUT or not form_of(each)]
    page = pages[0] if pages else None
    need("matplotlib", for_=page)
    if len(pages) > 1:
        raise CommandError("Name one page.", ExitCode.USAGE)
    if str(page) == STANDARD_OUTPUT:
        raise CommandError("Standard output has the verdict: name a file.", ExitCode.USAGE)
    check_file(page or DEFAULT_PAGE)
    return page or (DEFAULT_PAGE if not outputs and find_spec("matplotlib") else None)


def pairs_in_order(site: "BacktestSite", spec: "MethodSpec", *, quiet: bool) -> "Sorting | None":
    """Compare requests and predictions of the last jobs, with a progress bar."""
    from simulator.backtest.sorting import COMPARED, HISTORY, sorting_of

    with progress_bar("jobs", quiet=quiet) as progress:
        task = progress.add_task("pairs", total=min(len(site.trace), COMPARED + HISTORY))
        return sorting_of(site, spec, progress=lambda jobs: progress.advance(task, jobs))


def play(
    site: "BacktestSite",
    tasks: "Sequence[Task]",
    processes: int | None,
    distributed: str | None,
    *,
    quiet: bool,
) -> "Plays":
    """Play the log and its shaken repetitions by all methods, with a progress bar."""
    from simulator.backtest.plays import play_all

    with progress_bar("plays", quiet=quiet) as progress:
        task = progress.add_task("", total=len(tasks))
        return play_all(
            site,
            tasks,
            processes=processes,
            distributed=distributed,
            progress=lambda done: progress.advance(task, done),
        )


def show(tested: "Backtest", page: Path | None, *, as_json: bool) -> None:
    """Print the verdict: as JSON, or with one line for each method, in 80 columns."""
    if as_json:
        from simulator.backtest.document import as_document

        print_json(as_document(tested))
        return
    from simulator.backtest.document import text_of

    out.print(escape(text_of(tested)), soft_wrap=True, end="")
    if page:
        err.print(escape(f"The page is {page}."), soft_wrap=True)
    elif not find_spec("matplotlib"):
        err.print(escape(f"There is no page. {missing('matplotlib')}"), soft_wrap=True)
