"""``walltimed backtest``: whether a site should turn predictions on, from its own log."""

import json
import shlex
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Protocol

import typer
from rich.markup import escape

from simulator.cli.options import (
    ADJUSTMENTS,
    METHODS,
    ORDERS,
    POLICIES,
    TWINS,
    CoresPerNode,
    MachineSize,
    MalformedLines,
    PbsConfig,
    Processes,
    SlurmConfig,
)
from simulator.cli.simulate import SiteOfTwin, site_of_twin
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
    progress_bar,
)
from terminal.options import AsJson, ConfigFile, Format, Limit, OnError, TimeZone, choice, one_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from simulator.backtest.plays import Plays
    from simulator.backtest.site import BacktestSite, SiteFiles
    from simulator.backtest.verdict import Backtest
    from simulator.scheduling.semantics import Semantics
    from simulator.traces.completions import RecordedLog
    from simulator.traces.partitions import Partition
    from simulator.traces.trace import Trace

SCHEDULERS = (*TWINS, *POLICIES)

SCHEDULER_OF_FORMAT = {"sacct": "slurm", "pbs": "pbs"}
"""The scheduler of a log; that of SWF is not known, and played by EASY."""

DEFAULT_PAGE = Path("backtest.html")

KNOWN = frozenset({"requested", "exact"})
"""Estimates that every backtest simulates; no method to name."""


class Installation(Protocol):
    """The service of a site: its formats of logs and its settings; ``obj`` of the context."""

    def recorded_log(
        self, file: str, format_: str | None, cluster: str | None, time_zone: str, on_error: OnError
    ) -> "RecordedLog":
        """Read an accounting file as a trace, with the names that its numbers stand for."""

    def method_in_force(self, config: Path | None) -> "tuple[str, Mapping[str, Any]]":
        """Return the method that the settings name, with its parameters."""


def backtest(
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="LOG", help="Accounting log; plain, gzip or xz; - is stdin.")
    ],
    *,
    format_: Format = None,
    cluster: Annotated[
        str | None, typer.Option(help="Cluster of all jobs; by default as the records name it.")
    ] = None,
    time_zone: TimeZone = "UTC",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The page to write; default: backtest.html."
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
            help="Where predictions act: order: on the order of the queue, within bounds (default "
            "of slurm and pbs); order-and-time-min: also as TimeMin or soft_walltime; regular: on "
            "plans alone (default of easy); selective.",
        ),
    ] = None,
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
    limit: Limit = None,
    on_error: MalformedLines = OnError.REFUSE,
    config: ConfigFile = None,
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
    from simulator.backtest.site import SiteFiles, give_back_what_is_dropped
    from simulator.backtest.verdict import backtest_of
    from simulator.scheduling.semantics import HANDED_OVER
    from terminal.files import name_of

    output = page_of(output)
    check_rules(scheduler, profile, order)
    installation: Installation = context.obj
    in_force = in_force_of(*installation.method_in_force(config))
    methods = methods_of(in_force, method)
    give_back_what_is_dropped()
    log = installation.recorded_log(file, format_, cluster, time_zone, on_error)
    scheduler = scheduler or scheduler_of(log.format, slurm_config, pbs_config)
    profile = profile or (HANDED_OVER if scheduler in TWINS else "regular")
    twin = site_of_twin(slurm_config, pbs_config, [scheduler], cores_per_node)
    if twin.rules and partitions:
        raise CommandError("The configuration knows the queues: no --partitions.", ExitCode.USAGE)
    site = site_of(
        log,
        rules_of(scheduler, profile, order, twin, site_factor),
        processors=processors or twin.processors,
        cores_per_node=cores_per_node,
        partitions=partitions,
        limit=limit,
    )
    malformed, left_out = len(log.trace.rejects), log.left_out
    check_jobs(site, left_out, name_of(file))
    with TemporaryDirectory(prefix="walltimed-backtest-") as directory:
        files = SiteFiles.written(site, Path(directory))
        del log, site  # a large one takes hundreds of megabytes
        plays = play(files, methods, shake, processes, quiet=as_json)
        tested = backtest_of(files.mapped(), plays, in_force, profile=profile, scheduler=scheduler)
        if output:
            from simulator.backtest.backtest_page import write_page

            facts = facts_of(tested, malformed, left_out)
            write_page(tested, output, Path(name_of(file)).name, facts)
    show(tested, output, as_json=as_json)
    if malformed:
        raise typer.Exit(ExitCode.PARTIAL)


def page_of(output: Path | None) -> Path | None:
    """Return the page to write; None if none is named and there is no matplotlib to draw it.

    Raises:
        CommandError: the page is standard output, cannot be written, or cannot be drawn.
    """
    need("matplotlib", for_=output)
    if str(output) == STANDARD_OUTPUT:
        raise CommandError("Standard output has the verdict: name a file.", ExitCode.USAGE)
    check_file(output or DEFAULT_PAGE)
    return output or (DEFAULT_PAGE if find_spec("matplotlib") else None)


def check_jobs(site: "BacktestSite", left_out: "Mapping[str, int]", name: str) -> None:
    """Check that a site has jobs to simulate.

    Raises:
        NoJobError: there are none; the message says why jobs of the log ``name`` were left out.
    """
    from simulator.backtest.verdict import counts_of
    from simulator.traces.cleaning import NoJobError

    workloads = site.workloads()
    if not any(map(len, workloads)):
        removed = {**left_out, **counts_of(workloads, len(site.trace))}
        raise NoJobError(name, "simulated", removed)


def play(
    files: "SiteFiles", methods: "Sequence[str]", shake: int, processes: int | None, *, quiet: bool
) -> "Plays":
    """Play the log and its shaken repetitions by all methods, with a progress bar."""
    from simulator.backtest.plays import play_all, tasks_of

    with progress_bar("plays", quiet=quiet) as progress:
        task = progress.add_task("", total=len(tasks_of(methods, shake)))
        return play_all(
            files,
            methods,
            shake,
            processes=processes,
            progress=lambda done: progress.advance(task, done),
        )


def scheduler_of(format_: str, slurm_config: Path | None, pbs_config: Path | None) -> str:
    """Return the scheduler whose configuration is named, else that of the log's format."""
    if slurm_config or pbs_config:
        return "slurm" if slurm_config else "pbs"
    return SCHEDULER_OF_FORMAT.get(format_, "easy")


class Rules(NamedTuple):
    """Rules of the three columns: today, ordered by request, with predictions."""

    semantics: "Semantics"
    by_request: "Semantics"
    handed_over: "Semantics"


def check_rules(scheduler: str | None, profile: str | None, order: str) -> None:
    """Refuse impossible rules before the log is read."""
    rules_of(scheduler or "easy", profile or "regular", order)


def rules_of(
    scheduler: str,
    profile: str,
    order: str,
    twin: SiteOfTwin | None = None,
    site_factor: int | None = None,
) -> Rules:
    """Return the rules of the three columns.

    Raises:
        SemanticsError: there is no such scheduler, profile or order.
    """
    from simulator.scheduling.semantics import HAND_OVERS, Semantics

    site: dict[str, Any] = {"policy": scheduler, **(twin.rules if twin else {})}
    orders = {} if profile in HAND_OVERS else {"order": order}
    today = Semantics(order=order, **site)
    site["site_factor"] = site_factor
    return Rules(
        semantics=today,
        by_request=Semantics.adjusted("order", **site),
        handed_over=Semantics.adjusted(profile, **orders, **site),
    )


def in_force_of(method: str, given: "Mapping[str, Any]") -> str:
    """Return the method that the service would answer with, as a spec with its parameters."""
    from simulator.replay.method_spec import WITHOUT_PROJECTS

    if not given:
        return WITHOUT_PROJECTS.get(method, method)
    pairs = (
        f"{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in given.items()
    )
    return f"{method}:{','.join(pairs)}"


def methods_of(in_force: str, wanted: "Sequence[str] | None") -> list[str]:
    """Return the methods to play: the method in force, and the methods to compare it with.

    Raises:
        CommandError: a method predicts nothing, or is unknown or wrongly spelt.
    """
    from simulator.replay.method_spec import MethodSpec, usual_methods

    if wanted and not set(wanted) - KNOWN:
        raise CommandError("Name a method that predicts.", ExitCode.USAGE)
    if in_force in KNOWN:
        raise CommandError(
            f"With the setting method = {in_force!r} nothing is predicted; name a method that "
            "predicts, for example WALLTIMED_METHOD=max-usage.",
            ExitCode.USAGE,
        )
    methods = [name for name in (in_force, *(wanted or usual_methods())) if name not in KNOWN]
    for name in methods:
        MethodSpec.parse(name).predictor()
    return list(dict.fromkeys(methods))


def site_of(
    log: "RecordedLog",
    rules: Rules,
    *,
    processors: int | None,
    cores_per_node: int | None,
    partitions: str | None,
    limit: int | None,
) -> "BacktestSite":
    """Return the site to simulate: its trace, rules, partitions and groupings."""
    from simulator.backtest.site import (
        BacktestSite,
        groupings_of,
        machines_of,
        names_of_queues,
        without_unused,
    )
    from simulator.scheduling.workload import first_jobs

    queues = {**names_of_queues(log.trace), **log.queues}
    found = partitions_of(log.trace, queues, partitions)
    size = sum(each.processors for each in found) or processors
    trace = first_jobs(log.trace, limit, processors=size)
    machines = machines_of(trace, queues, found)
    if found and not (machines >= 0).any():
        names = ", ".join(sorted({queues.get(each, str(each)) for each in set(trace.queue)})[:8])
        raise CommandError(
            f"No job is in a partition of {partitions}: they are "
            f"{', '.join(each.name for each in found[:8])}; the log's queues are {names}.",
            ExitCode.USAGE,
        )
    accounts = log.accounts_of_jobs
    return BacktestSite(
        trace=replace(without_unused(trace), header=with_queues(trace.header, log.queues)),
        **rules._asdict(),
        processors=processors,
        cores_per_node=cores_per_node,
        partitions=found,
        machine_of_line=machines,
        groupings=groupings_of(
            trace,
            users=log.users,
            queues=queues,
            accounts=log.accounts,
            accounts_of_jobs=None if accounts is None else accounts[trace.line - 1],
        ),
    )


def partitions_of(
    trace: "Trace", queues: "Mapping[int, str]", source: str | None
) -> "Sequence[Partition]":
    """Return the partitions that ``--partitions`` names, by the log itself or by a file."""
    from simulator.traces.partitions import FROM_LOG, partitions_of_log, read_partitions

    if not source:
        return []
    return partitions_of_log(trace, queues) if source == FROM_LOG else read_partitions(source)


def with_queues(header: dict[str, str], queues: "Mapping[int, str]") -> dict[str, str]:
    """Return a header that names the queues, as the twin of Slurm finds partitions by name."""
    if not queues:
        return header
    return {**header, "Queue": "\n".join(f"{number} {name}" for number, name in queues.items())}


def facts_of(tested: "Backtest", malformed: int, left_out: "Mapping[str, int]") -> dict[str, str]:
    """Return the facts for "How this was computed" that are no figures of the log."""
    from simulator.backtest.site import BY_REQUEST
    from simulator.traces.cleaning import in_words

    site = tested.site
    today = site.semantics.card(site.trace)
    facts = {
        "In force": f"{tested.in_force}, profile {tested.profile}",
        **today,
        "Ordered by request": site.rules_of(BY_REQUEST).card()["Order"],
        "With predictions": "; ".join(
            f"{name}: {text}"
            for name, text in site.rules_of(tested.in_force).card(site.trace).items()
            if text != today.get(name)
        ),
        "Estimates": "whole seconds, at least 1; running jobs that outlive theirs get a longer one",
        "Machine": "; ".join(
            f"{each.name}: {each.processors:,} processors" for each in site.partitions
        )
        or f"{_size(tested):,} processors",
    }
    if site.cores_per_node:
        facts["Nodes"] = f"{site.cores_per_node} cores, whole nodes to a job"
    if left_out:
        facts["Records left out"] = in_words(left_out)
    if malformed:
        facts["Malformed lines"] = f"{malformed:,} skipped"
    return {
        **facts,
        "Computed": f"{datetime.fromtimestamp(time.time(), UTC):%-d %b %Y}, "
        f"walltimed {version('walltimed')}",
        "Command": shlex.join(["walltimed", *sys.argv[1:]]),
    }


def _size(tested: "Backtest") -> int:
    workload = tested.site.workloads()[0]
    return workload.processors_of_machine * (workload.cores_per_node or 1)


def show(tested: "Backtest", output: Path | None, *, as_json: bool) -> None:
    """Print the verdict: as JSON, or with one line for each method, in 80 columns."""
    if as_json:
        from simulator.backtest.document import as_document

        print_json(as_document(tested))
        return
    from simulator.backtest.document import text_of

    out.print(escape(text_of(tested)), soft_wrap=True, end="")
    no_page = f"There is no page. {missing('matplotlib')}"
    err.print(escape(f"The page is {output}." if output else no_page), soft_wrap=True)
