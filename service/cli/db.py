"""``walltimed db``: the schema of the history store."""

from typing import TYPE_CHECKING

import typer

from service.cli.config import without_password
from service.cli.console import AsJson, out, print_json
from service.cli.settings import ConfigFile, DatabaseUrl, load_settings
from service.cli.stores import opened, surplus_of

if TYPE_CHECKING:
    from collections.abc import Sequence

db = typer.Typer(name="db", help="Look after the history store.", no_args_is_help=True)


@db.command()
def upgrade(
    *, database_url: DatabaseUrl = None, file: ConfigFile = None, as_json: AsJson = False
) -> None:
    """Bring the schema up to date; does nothing when it is.

    Run it before `walltimed serve` on PostgreSQL. An SQLite file is upgraded by whatever opens it.

    For example:

        walltimed db upgrade
        walltimed db upgrade -d postgresql+psycopg://walltimed@db.example/walltimed
    """
    settings = load_settings(database_url=database_url, config=file)
    with opened(settings) as store:
        store.upgrade()
    report(without_password(settings), as_json=as_json)


@db.command()
def check(
    *, database_url: DatabaseUrl = None, file: ConfigFile = None, as_json: AsJson = False
) -> None:
    """Say whether the schema is current; exit code 1 when it is not.

    For example:

        walltimed db check && systemctl start walltimed
    """
    settings = load_settings(database_url=database_url, config=file)
    with opened(settings) as store:
        store.check()
        warnings = surplus_of(store, settings)
    report(without_password(settings), warnings, as_json=as_json)


def report(database: str, warnings: "Sequence[str]" = (), *, as_json: bool) -> None:
    """Tell that the schema is current, and what else there is to do."""
    if as_json:
        print_json({"database": database, "schema": "current", "warnings": list(warnings)})
        return
    out.print(f"The schema of {database} is current.", soft_wrap=True)
    for warning in warnings:
        out.print(f"But: {warning}", soft_wrap=True)
