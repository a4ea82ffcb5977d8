"""``walltimed db``: the schema of the history store."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.config import without_password
from service.cli.options import (
    LONGEST_SECONDS,
    DatabaseUrl,
    load_settings,
    make_default_place,
    opened,
    surplus_of,
)
from terminal.console import err, out, print_json
from terminal.options import AsJson, ConfigFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.store import Store

WAIT_SECONDS = 1.0
"""Between two attempts to reach a database."""

db = typer.Typer(name="db", help="Look after the history store.", no_args_is_help=True)


@db.command()
def upgrade(
    *,
    wait: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=LONGEST_SECONDS,
            help="Seconds to wait for a database that is still starting.",
        ),
    ] = 0.0,
    database_url: DatabaseUrl = None,
    file: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Bring the schema up to date; do nothing if it is current.

    Run this command before `walltimed serve` on PostgreSQL. Every command that opens an SQLite
    file upgrades it.

    For example:

        walltimed db upgrade
        walltimed db upgrade --wait 60 -d postgresql+psycopg://db/walltimed
    """
    settings = load_settings(database_url=database_url, config=file)
    with opened(settings) as store:
        make_default_place(settings)
        if upgrade_within(store, wait):
            err.print("The history is new and empty.", style="dim")
    report(without_password(settings), as_json=as_json)


def upgrade_within(store: "Store", patience: float) -> bool:
    """Upgrade as soon as the database can be reached; says whether the history is new.

    Raises:
        StoreUnavailableError: it could not be reached for ``patience`` seconds.
    """
    from service.store import StoreUnavailableError

    deadline = time.monotonic() + patience
    while True:
        try:
            return store.upgrade()
        except StoreUnavailableError as error:
            if time.monotonic() >= deadline:
                raise
            err.print(f"Waiting: {error}", style="dim", soft_wrap=True)
            time.sleep(min(WAIT_SECONDS, max(0.0, deadline - time.monotonic())))


@db.command()
def check(
    *, database_url: DatabaseUrl = None, file: ConfigFile = None, as_json: AsJson = False
) -> None:
    """Say whether the schema is current and, on SQLite, every page whole; exit code 1 if not.

    For example:

        walltimed db check && systemctl start walltimed
    """
    settings = load_settings(database_url=database_url, config=file)
    with opened(settings) as store:
        store.check()
        store.check_whole()
        warnings = surplus_of(store, settings)
    report(without_password(settings), warnings, as_json=as_json)


@db.command()
def backup(
    copy: Annotated[Path, typer.Argument(metavar="FILE", help="Must not exist yet.")],
    *,
    database_url: DatabaseUrl = None,
    file: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Write the history to FILE, readable to you alone, while the service goes on.

    FILE holds the history of one moment and appears only when it is complete. For SQLite; for
    PostgreSQL this says which tool to use.

    For example:

        walltimed db backup /var/backups/walltimed-$(date +%F).sqlite3
    """
    settings = load_settings(database_url=database_url, config=file)
    with opened(settings) as store:
        store.check()
        store.back_up(copy)
    size = copy.stat().st_size
    if as_json:
        print_json({"database": without_password(settings), "backup": str(copy), "bytes": size})
    else:
        out.print(f"{copy} holds the history, {size:,} bytes.", soft_wrap=True)


@db.command()
def restore(
    copy: Annotated[Path, typer.Argument(metavar="FILE", help="What `db backup` wrote.")],
    *,
    database_url: DatabaseUrl = None,
    file: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Put the history of FILE in the place of the present one, with the service stopped.

    The present history is kept under another name, its tokens stay in force, and places in the
    log go on from where it was. What has ended since the backup can be posted or imported again.

    For example:

        systemctl stop walltimed
        walltimed db restore /var/backups/walltimed-2026-11-22.sqlite3
        systemctl start walltimed
    """
    settings = load_settings(database_url=database_url, config=file)
    with opened(settings) as store:
        make_default_place(settings)
        aside = Path(f"{store.name}.before-restore-{time.strftime('%Y%m%dT%H%M%S')}")
        store.restore(copy, aside=aside)
        store.upgrade()
        runs = store.past_runs.count()
    before = str(aside) if aside.exists() else None
    if as_json:
        print_json({"database": without_password(settings), "runs": runs, "before": before})
        return
    out.print(f"The history holds {runs:,} runs again.")
    if before:
        out.print(f"What was there before is in {before}.", soft_wrap=True)


def report(database: str, warnings: "Sequence[str]" = (), *, as_json: bool) -> None:
    """Print that the schema is current, and the warnings."""
    if as_json:
        print_json({"database": database, "migrations": "current", "warnings": list(warnings)})
        return
    out.print(f"The schema of {database} is current.", soft_wrap=True)
    for warning in warnings:
        out.print(f"But: {warning}", soft_wrap=True)
