"""``walltimed token``: manages the tokens with which callers may use the service."""

import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from service.cli.options import DatabaseUrl, load_settings, names_of, ready
from terminal import options as values
from terminal.console import CommandError, ExitCode, out, print_json
from terminal.options import AsJson, ConfigFile
from terminal.scopes import Scope

if TYPE_CHECKING:
    from service.store import Token

token = typer.Typer(name="token", help="Issue, revoke and list API tokens.", no_args_is_help=True)


@token.command()
def issue(
    name: Annotated[str, typer.Argument(help="Holder of the token, such as 'submit filter'.")],
    *,
    scopes: Annotated[
        list[str],
        typer.Option(
            "--scope",
            "-s",
            help="predict, ingest, read, self (goes alone) or admin (all); may be repeated.",
            autocompletion=values.one_of(tuple(Scope)),
        ),
    ],
    user: Annotated[
        str | None, typer.Option(help="With --scope self: the user whose own jobs may be seen.")
    ] = None,
    database_url: DatabaseUrl = None,
    file: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Issue a token and print its secret, which is shown only once and stored as a hash.

    After the first token has been issued, every call except the health checks needs a token.

    For example:

        walltimed token issue "submit filter" --scope predict
        walltimed token issue epilog -s ingest --json
        walltimed token issue "ada's own" --scope self --user ada
    """
    settings = load_settings(database_url=database_url, config=file)
    user_name = names_of(settings).user(user)
    with ready(settings) as store:
        try:
            issued, secret = store.tokens.issue(name, scopes, time.time(), user=user_name)
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

    When the last token is revoked, every call is refused until another token is issued.

    For example:

        walltimed token revoke 7Qm2xK
    """
    with ready(load_settings(database_url=database_url, config=file)) as store:
        if not store.tokens.revoke(id_, time.time()):
            raise CommandError(f"There is no valid token {id_!r}.")
        valid = sum(each.revoked_at is None for each in store.tokens.read_all())
    if as_json:
        print_json({"id": id_, "revoked": True, "valid_tokens": valid})
        return
    out.print(f"Token {id_} is revoked.")
    if not valid:
        out.print(NONE_LEFT, soft_wrap=True)


NONE_LEFT = """It was the last valid token: every call is refused until another is issued.
To let all users of this machine call without a token again: walltimed token stop-requiring"""


@token.command()
def stop_requiring(
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    database_url: DatabaseUrl = None,
    file: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Delete all tokens, so that all users of this machine may call without a token.

    Once a token has been issued, only this command ends the need for tokens. A service that
    listens beyond loopback still refuses every call.

    For example:

        walltimed token stop-requiring --yes
    """
    if not yes and not (sys.stdin.isatty() and typer.confirm(QUESTION)):
        raise CommandError("Nothing was changed; give --yes to delete all tokens.", ExitCode.USAGE)
    with ready(load_settings(database_url=database_url, config=file)) as store:
        deleted = store.tokens.forget_all()
    if as_json:
        print_json({"deleted": deleted})
    else:
        out.print(f"{deleted:,} tokens deleted: on loopback calls need no token any more.")


QUESTION = "Delete all tokens, and let all users of this machine call without a token?"


@token.command(name="list")
def list_(
    *, database_url: DatabaseUrl = None, file: ConfigFile = None, as_json: AsJson = False
) -> None:
    """List the tokens, without their secrets.

    For example:

        walltimed token list --json
    """
    with ready(load_settings(database_url=database_url, config=file)) as store:
        tokens = store.tokens.read_all()
    if as_json:
        print_json({"tokens": [public_fields(each) for each in tokens]})
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("id", "name", "scopes", "user", "issued", "revoked"):
        table.add_column(heading, overflow="fold")
    for each in tokens:
        table.add_row(
            each.token_id,
            escape(each.name),
            ", ".join(sorted(each.scopes)),
            escape(each.user or ""),
            day(each.created_at),
            day(each.revoked_at),
        )
    out.print(table)


def public_fields(each: "Token") -> dict[str, Any]:
    """Return the fields of a token that may be printed."""
    return {
        "id": each.token_id,
        "name": each.name,
        "scopes": sorted(each.scopes),
        "user": each.user,
        "issued_at": each.created_at,
        "revoked_at": each.revoked_at,
    }


def day(seconds: float | None) -> str:
    """Return the UTC day of a Unix time; empty for None."""
    return datetime.fromtimestamp(seconds, UTC).date().isoformat() if seconds is not None else ""
