"""``walltimed reconcile``: fetches missing runs from sacct."""

import subprocess
import time
from collections import Counter
from os import environ
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct, field

from service.cli.options import (
    MOST_DAYS,
    DatabaseUrl,
    check_cluster,
    load_settings,
    names_of,
    ready,
    storable,
)
from terminal.console import CommandError, ExitCode, out, print_json
from terminal.options import AsJson, ConfigFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.store import ReportedCompletion, Store

SEPARATOR = "\x1f"
COLUMNS = (
    "JobIDRaw,JobID,Cluster,User,Group,Account,Partition,JobName,Submit,Start,End,ElapsedRaw,"
    "TimelimitRaw,NNodes,ReqNodes,NCPUS,ReqCPUS,ReqMem,ReqTRES,AllocTRES,State,SubmitLine,"
    "AdminComment,NodeList"
)
BATCH = 1000
"""Runs in a transaction: so few that others can commit in between."""

DAY = 86400.0


class ReconcileCounts(Struct):
    """The counts of a reconciliation; ``left_out`` counts rows that cannot be learned from."""

    accepted: int = 0
    duplicates: int = 0
    left_out: dict[str, int] = field(default_factory=dict)


def reconcile(
    *,
    days: Annotated[float, typer.Option(min=0.0, max=MOST_DAYS, help="Days to look back.")] = 7.0,
    cluster: Annotated[
        str | None, typer.Option(help="Name of the history; by default the cluster's in sacct.")
    ] = None,
    sacct: Annotated[str, typer.Option(help="The sacct command.")] = "sacct",
    database_url: DatabaseUrl = None,
    file: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Store the runs that are in Slurm's accounting but not in the history.

    This closes the gaps after an outage: a slurmctld that was killed loses records that it had not
    sent. Known runs count as duplicates. So the command may run often, also beside a running
    service. Predictions that are noted in the jobs are scored.

    For example:

        walltimed reconcile
        walltimed reconcile --days 30 --cluster hill --json
    """
    if cluster is not None:
        check_cluster(cluster)
    settings = load_settings(database_url=database_url, config=file)
    names = names_of(settings)
    lines = rows_of(sacct, since=time.time() - days * DAY)
    with ready(settings) as store:
        report = store_missing(store, lines, cluster, storable(store, settings, names))
    if as_json:
        print_json(report)
        return
    out.print(f"{report.accepted:,} runs were missing, {report.duplicates:,} were known")
    for reason, rows in report.left_out.items():
        out.print(f"  left out: {rows:,} {reason}")


def rows_of(sacct: str, *, since: float, columns: str = COLUMNS) -> list[str]:
    """Return the rows of sacct for all jobs since ``since``, in the form that is safe to read.

    Raises:
        CommandError: sacct cannot be run or fails.
    """
    begin = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(since))
    command = [sacct, "-a", "-X", "-D", "-P", f"--delimiter={SEPARATOR}", "-S", begin]
    try:
        process = subprocess.run(  # noqa: S603 - the administrator names the command
            [*command, "-E", "now", "-o", columns],
            env=environ | {"TZ": "UTC", "SLURM_TIME_FORMAT": "%s"},
            capture_output=True,
            check=True,
        )
    except OSError as error:
        raise CommandError(
            f"{sacct} cannot be run: {error.strerror}. Is Slurm installed here? --sacct names the "
            "command.",
            ExitCode.USAGE,
        ) from error
    except subprocess.CalledProcessError as error:
        # libslurm says the cause last, after several lines about how it came to it.
        *_, cause = error.stderr.decode("utf-8", "replace").strip().splitlines() or [""]
        raise CommandError(
            f"{sacct} cannot read Slurm's accounting here: {cause}", ExitCode.UNAVAILABLE
        ) from error
    return [f"{line}\n" for line in process.stdout.decode("utf-8", "replace").split("\n") if line]


def store_missing(
    store: "Store",
    lines: list[str],
    cluster: str | None,
    treat: "Callable[[ReportedCompletion], ReportedCompletion]",
) -> ReconcileCounts:
    """Store the runs in sacct's rows, ``BATCH`` to a transaction, and return the counts.

    ``treat`` returns a run as it is stored, and refuses a cluster too many before anything is.
    """
    from service.adapters.runs import SkippedError
    from service.adapters.sacct_text import read_sacct

    runs: list[ReportedCompletion] = []
    left_out: Counter[str] = Counter()
    for _, outcome in read_sacct(lines, cluster=cluster):
        if isinstance(outcome, SkippedError):
            left_out[str(outcome)] += 1
        else:
            runs.append(treat(outcome))
    report = ReconcileCounts(left_out=dict(left_out))
    for stored in store.store_reports(runs, batch=BATCH):
        report.accepted += stored.accepted
        report.duplicates += stored.duplicates
    return report
