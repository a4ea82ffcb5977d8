"""``walltimed reconcile``: fetches missing runs from sacct."""

import time
from collections import Counter
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
from service.site.facts import rows_of_sacct
from terminal.console import out, print_json
from terminal.options import AsJson, ConfigFile
from terminal.words import DAY

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.store import ReportedCompletion, Store

BATCH = 1000
"""Runs in a transaction: so few that others can commit in between."""


class ReconcileCounts(Struct):
    """The counts of a reconciliation; ``left_out`` counts rows that cannot be learned from.

    ``doubts`` counts runs whose fields contradict each other.
    """

    accepted: int = 0
    duplicates: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    doubts: dict[str, int] = field(default_factory=dict)


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
    lines = rows_of_sacct(sacct, since=time.time() - days * DAY)
    with ready(settings) as store:
        report = store_missing(store, lines, cluster, storable(store, settings, names))
    if as_json:
        print_json(report)
        return
    out.print(f"{report.accepted:,} runs were missing, {report.duplicates:,} were known")
    for reason, rows in report.left_out.items():
        out.print(f"  left out: {rows:,} {reason}")
    for doubt, rows in report.doubts.items():
        out.print(f"  in doubt: {rows:,} {doubt}", soft_wrap=True)


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
    doubts: Counter[str] = Counter()
    for _, outcome in read_sacct(lines, cluster=cluster):
        if isinstance(outcome, SkippedError):
            left_out[str(outcome)] += 1
        else:
            doubts.update(outcome.doubts)
            runs.append(treat(outcome))
    report = ReconcileCounts(left_out=dict(left_out), doubts=dict(doubts))
    for stored in store.store_reports(runs, batch=BATCH):
        report.accepted += stored.accepted
        report.duplicates += stored.duplicates
    return report
