"""The history store as commands open it."""

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.markup import escape

from service import places
from simulator.cli.console import CommandError, ExitCode, err

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from predictors.jobs import Completion
    from service.settings import Settings
    from service.store import Store


@contextmanager
def opened(settings: "Settings", *, silent: bool = False) -> "Iterator[Store]":
    """Open the store of the settings, and close it at the end; the schema is not checked.

    Its name is printed on standard error, unless ``silent``.

    Raises:
        CommandError: the database URL names no store.
        NotYoursError: no history was named, and the machine's service has another one.
    """
    from sqlalchemy.exc import ArgumentError

    from service.store import open_store

    if settings.is_default_history:
        places.check_own_history()
    try:
        store = open_store(
            settings.database_url.get_secret_value(),
            sqlite_synchronous=settings.sqlite_synchronous,
        )
    except (ArgumentError, ValueError) as error:
        url = settings.database_url.get_secret_value()
        if "://" not in url:
            raise CommandError(
                f"{url!r} is no database URL; for a file write sqlite:///{url}", ExitCode.USAGE
            ) from error
        if not isinstance(error, ArgumentError):
            raise CommandError(f"The database URL is refused: {error}", ExitCode.USAGE) from error
        raise CommandError(
            "The database URL is refused; it is of the form sqlite:///FILE or "
            "postgresql+psycopg://USER@HOST/DATABASE.",
            ExitCode.USAGE,
        ) from error
    if not silent:
        err.print(escape(f"History: {store.name}"), style="dim", soft_wrap=True)
    try:
        yield store
    finally:
        store.close()


def make_default_place(settings: "Settings") -> None:
    """Make the default directory of the history, if the settings name no other.

    For commands that write alone: an empty directory of root's in the system's place would be
    taken for the history of a service, and other users' commands refused.
    """
    if settings.is_default_history:
        places.data_directory().mkdir(mode=0o700, parents=True, exist_ok=True)


@contextmanager
def ready(
    settings: "Settings", *, upgrade: bool | None = None, silent: bool = False
) -> "Iterator[Store]":
    """Open the store of the settings, with a current schema.

    An embedded SQLite file belongs to this machine alone and is upgraded on the way; a
    PostgreSQL database may serve other machines and is upgraded only when ``upgrade`` says so.

    Raises:
        SchemaOutdatedError: the schema is not current and was not to be upgraded.
    """
    with opened(settings, silent=silent) as store:
        upgrades = is_embedded(settings) if upgrade is None else upgrade
        if upgrades:
            make_default_place(settings)
        if upgrades and store.upgrade() and not silent:
            err.print("The history is new and empty.", style="dim")
        store.check()
        yield store


def surplus_of(store: "Store", settings: "Settings") -> list[str]:
    """Return warnings about more clusters than are served; none for a store without a schema."""
    from service.store import SchemaOutdatedError, StoreUnavailableError
    from service.worker.cluster_limit import surplus_sentence

    try:
        number = len(store.past_runs.clusters())
    except (SchemaOutdatedError, StoreUnavailableError):
        return []
    surplus = surplus_sentence(number, settings.max_clusters)
    return [surplus] if surplus else []


def admitting(store: "Store", settings: "Settings") -> "Callable[[Completion], Completion]":
    """Return a function that passes runs on, and refuses those of too many clusters.

    Raises:
        TooManyClustersError: when such a run comes.
    """
    from service.worker.cluster_limit import ClusterLimit

    clusters = frozenset(store.past_runs.clusters())
    limit = ClusterLimit(lambda: clusters, settings.max_clusters)

    def admit(run: "Completion") -> "Completion":
        limit.admit(run.submission.cluster)
        return run

    return admit


def is_embedded(settings: "Settings") -> bool:
    """Return whether the store is an SQLite file."""
    return settings.database_url.get_secret_value().startswith("sqlite")
