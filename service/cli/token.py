"""``walltimed token``: who may call the service."""

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from service.cli.console import AsJson, CommandError, ExitCode, out, print_json
from service.cli.settings import ConfigFile, DatabaseUrl, load_settings
from service.cli.stores import ready

if TYPE_CHECKING:
    from service.store import Token

token = typer.Typer(name="token", help="Issue, revoke and list API tokens.", no_args_is_help=True)


@token.command()
def issue(
    name: Annotated[str, typer.Argument(help="Whom the token is for, such as 'submit filter'.")],
    *,
    scopes: Annotated[
        list[str],
        typer.Option("--scope", "-s", help="predict, ingest or admin (all); may be repeated."),
    ],
    database_url: DatabaseUrl = None,
    file: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Issue a token and print its secret, which is shown once and stored hashed.

    From the first token on, every call but the health checks needs one.

    For example:

        walltimed token issue "submit filter" --scope predict
        walltimed token issue epilog -s ingest --json
    """
    with ready(load_settings(database_url=database_url, config=file)) as store:
        try:
            issued, secret = store.issue_token(name, scopes, time.time())
        except ValueError as error:
            raise CommandError(str(error), ExitCode.USAGE) from error
    if as_json:
        print_json({"id": issued.token_id, "name": name, "scopes": scopes, "token": secret})
        return
    out.print(f"Token {issued.token_id} for {escape(name)}, shown only now:", soft_wrap=True)
    typer.echo(secret)


@token.command()
def revoke(
    id_: Annotated[str, typer.Argument(metavar="ID", help="As `walltimed token list` shows it.")],
    *,
    database_url: DatabaseUrl = None,
    file: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a token; running services refuse it within seconds.

    For example:

        walltimed token revoke 7Qm2xK
    """
    with ready(load_settings(database_url=database_url, config=file)) as store:
        if not store.revoke_token(id_, time.time()):
            raise CommandError(f"There is no valid token {id_!r}.")
    if as_json:
        print_json({"id": id_, "revoked": True})
    else:
        out.print(f"Token {id_} is revoked.")


@token.command(name="list")
def list_(
    *, database_url: DatabaseUrl = None, file: ConfigFile = None, as_json: AsJson = False
) -> None:
    """List the tokens, without their secrets.

    For example:

        walltimed token list --json
    """
    with ready(load_settings(database_url=database_url, config=file)) as store:
        tokens = store.tokens()
    if as_json:
        print_json([shown(each) for each in tokens])
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("id", "name", "scopes", "issued", "revoked"):
        table.add_column(heading, overflow="fold")
    for each in tokens:
        table.add_row(
            each.token_id,
            escape(each.name),
            ", ".join(sorted(each.scopes)),
            day(each.created_at),
            day(each.revoked_at),
        )
    out.print(table)


def shown(each: "Token") -> dict[str, Any]:
    """What may be told of a token."""
    return {
        "id": each.token_id,
        "name": each.name,
        "scopes": sorted(each.scopes),
        "issued_at": each.created_at,
        "revoked_at": each.revoked_at,
    }


def day(seconds: float | None) -> str:
    """The UTC day of a Unix time; empty for none."""
    return datetime.fromtimestamp(seconds, UTC).date().isoformat() if seconds is not None else ""
