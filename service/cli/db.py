"""``walltimed db``: the schema of the history store."""

import typer

from service.cli.config import without_password
from service.cli.console import AsJson, out, print_json
from service.cli.settings import ConfigFile, DatabaseUrl, load_settings
from service.cli.stores import opened

db = typer.Typer(name="db", help="Look after the history store.", no_args_is_help=True)


@db.command()
def upgrade(
    *, database_url: DatabaseUrl = None, file: ConfigFile = None, as_json: AsJson = False
) -> None:
    """Bring the schema up to date; do nothing if it is current.

    Run this command before `walltimed serve` on PostgreSQL. Every command that opens an SQLite
    file upgrades it.

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
    """Check whether the schema is current; the exit code is 1 if it is not.

    For example:

        walltimed db check && systemctl start walltimed
    """
    settings = load_settings(database_url=database_url, config=file)
    with opened(settings) as store:
        store.check()
    report(without_password(settings), as_json=as_json)


def report(database: str, *, as_json: bool) -> None:
    """Print that the schema is current."""
    if as_json:
        print_json({"database": database, "schema": "current"})
    else:
        out.print(f"The schema of {database} is current.", soft_wrap=True)
