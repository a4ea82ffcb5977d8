"""``walltimed forget``: deletes the history of one user, or old history."""

import time
from typing import Annotated

import typer

from service.cli.console import AsJson, CommandError, ExitCode, out, print_json
from service.cli.settings import ConfigFile, DatabaseUrl, load_settings, names_of
from service.cli.stores import ready

DAY = 86400.0


def forget(
    *,
    user: Annotated[str | None, typer.Option(help="Delete this user's history.")] = None,
    older_than_days: Annotated[
        float | None, typer.Option(min=1.0, help="Delete runs that ended longer ago.")
    ] = None,
    database_url: DatabaseUrl = None,
    file: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Delete the history of one user, or all history beyond an age. This cannot be undone.

    Scores of methods stay, as they contain no names. Restart running services afterwards: until
    then they keep a user's last runs in memory.

    For example:

        walltimed forget --user carol
        walltimed forget --older-than-days 1095
    """
    if (user is None) == (older_than_days is None):
        raise CommandError("Give either --user or --older-than-days.", ExitCode.USAGE)
    settings = load_settings(database_url=database_url, config=file)
    names = names_of(settings)
    with ready(settings) as store:
        if user is None:
            runs = store.forget_before(time.time() - (older_than_days or 0) * DAY)
        else:
            # The name itself too: what was stored before there was a key.
            known_as = {user, names.user(user) or user}
            runs = sum(store.forget_user(name) for name in known_as)
    if as_json:
        print_json({"deleted": runs})
    else:
        out.print(f"{runs:,} runs deleted")
