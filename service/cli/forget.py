"""``walltimed forget``: deletes what the history holds of a person, a cluster, or of long ago."""

import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.options import MOST_DAYS, DatabaseUrl, load_settings, names_of, ready
from terminal.console import CommandError, ExitCode, err, out, print_json
from terminal.options import AsJson, ConfigFile
from terminal.words import DAY

if TYPE_CHECKING:
    from service.settings import Settings
    from service.store import Erased, Erasure


def forget(
    *,
    user: Annotated[str | None, typer.Option(help="Whose runs and predictions.")] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Whose runs, predictions, scores and tuned parameters.")
    ] = None,
    older_than_days: Annotated[
        float | None,
        typer.Option(min=1.0, max=MOST_DAYS, help="Delete runs that ended longer ago."),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="Delete runs that ended later, such as 2027-01-01."),
    ] = None,
    job: Annotated[
        str | None, typer.Option(help="Delete the runs of this job id (with --cluster, there).")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say how much would be deleted; delete nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking.")] = False,
    database_url: DatabaseUrl = None,
    file: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Delete the history of a user, of a cluster, or of long ago. This cannot be undone.

    Recorded predictions go too; scores of methods, which name nobody, stay unless the cluster goes.
    Running services learn the rest of the history anew within seconds: no restart is needed.
    Backups that were made before still hold what is deleted here.

    For example:

        walltimed forget --user carol --dry-run
        walltimed forget --user carol
        walltimed forget --cluster typo --yes
        walltimed forget --older-than-days 1095 --yes
        walltimed forget --after 2027-01-01 --dry-run
        walltimed forget --job 4711 --cluster hill
    """
    ways = (user, None if job else cluster, older_than_days, after, job)
    if sum(each is not None for each in ways) != 1:
        raise CommandError(
            "Say one of --user, --cluster, --older-than-days, --after and --job.", ExitCode.USAGE
        )
    from service.store import Erasure

    settings = load_settings(database_url=database_url, config=file)
    erasure = (
        Erasure(after=seconds_of(after), job=job, cluster=cluster)
        if after is not None or job is not None
        else erasure_of(settings, user=user, cluster=cluster, older_than_days=older_than_days)
    )
    with ready(settings) as store:
        if not (dry_run or yes):
            confirm(store.erasures.count(erasure), store.name)
        erased = (
            store.erasures.count(erasure) if dry_run else store.erasures.erase(erasure, time.time())
        )
        left = None if dry_run else store.erasures.scrub(erasure.users)
    show(erased, left, dry_run=dry_run, as_json=as_json)


def erasure_of(
    settings: "Settings",
    *,
    user: str | None,
    cluster: str | None,
    older_than_days: float | None,
) -> "Erasure":
    """Return the erasure that the options ask for."""
    from service.store import Erasure

    if user is not None:
        # The name itself too: what was stored before there was a key.
        return Erasure(users=frozenset({user, names_of(settings).user(user) or user}))
    if cluster is not None:
        return Erasure(cluster=cluster)
    return Erasure(before=time.time() - (older_than_days or 0) * DAY)


def seconds_of(date: str | None) -> float | None:
    """Return the Unix seconds of a date, which is in UTC unless it names its zone.

    Raises:
        CommandError: it is no date.
    """
    if date is None:
        return None
    try:
        found = datetime.fromisoformat(date)
    except ValueError as error:
        raise CommandError(
            f"--after {date} is no date such as 2027-01-01 or 2027-01-01T12:00:00+01:00.",
            ExitCode.USAGE,
        ) from error
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def confirm(erased: "Erased", database: str) -> None:
    """Ask the person at the terminal.

    Raises:
        CommandError: there is nobody to ask, or the answer was no.
    """
    if not sys.stdin.isatty():
        raise CommandError(
            "There is no terminal to ask at: say --yes to delete, or --dry-run to see what.",
            ExitCode.USAGE,
        )
    err.print(
        f"{erased.runs:,} runs and {erased.predictions:,} predictions in {database} would be "
        "deleted. This cannot be undone.",
        soft_wrap=True,
    )
    if not typer.confirm("Delete them?", err=True):
        raise CommandError("Nothing was deleted.")


def show(erased: "Erased", left: str | None, *, dry_run: bool, as_json: bool) -> None:
    """Print the number of deleted rows, and hints at data that is left."""
    if as_json:
        key = "would_delete" if dry_run else "deleted"
        print_json({key: erased.runs, "predictions": erased.predictions, "left": left})
        return
    would = "would be " if dry_run else ""
    out.print(f"{erased.runs:,} runs and {erased.predictions:,} predictions {would}deleted")
    if left:
        out.print(left, soft_wrap=True)
