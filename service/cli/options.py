"""Settings and the history store, as commands see them.

Options win over the environment, which wins over the file.
"""

import os
import re
from contextlib import contextmanager
from tomllib import TOMLDecodeError
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from predictors.parameters import suggestion, unknown
from terminal.console import CommandError, ExitCode, err
from terminal.words import LONGEST_NAME, PRINTABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from predictors.tuning.plan import TuningPlan
    from service.auth import Pseudonyms
    from service.settings import Settings
    from service.store import ReportedCompletion, Store

DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        "-d",
        metavar="URL",
        help="History store; default: WALLTIMED_DATABASE_URL.",
    ),
]
LONGEST_SECONDS = 86_400.0
"""The largest waiting time of an option: sockets and clocks take no infinite time."""

MOST_DAYS = 36_525.0
"""The longest period of an option that looks back: a century."""


def load_settings(**options: Any) -> "Settings":
    """Return the settings, with the options that are not None.

    Raises:
        CommandError: a setting is unknown or out of range; the message names each one.
    """
    from pydantic import ValidationError
    from pydantic_settings import SettingsError

    from service.settings import Settings

    refuse_misspelt(os.environ, Settings.model_fields)
    values = {name: value for name, value in options.items() if value is not None}
    try:
        return Settings(**values)
    except ValidationError as error:
        problems = " ".join(problem_of(each, Settings.model_fields) for each in error.errors())
        raise CommandError(f"Settings refused: {problems}", ExitCode.USAGE) from None
    except SettingsError as error:
        raise CommandError(f"Settings refused: {error}.", ExitCode.USAGE) from None
    except TOMLDecodeError as error:
        raise CommandError(f"The settings file is not TOML: {error}.", ExitCode.USAGE) from None
    except UnicodeDecodeError as error:
        sentence = f"The settings file is not TOML, which is UTF-8: {error}."
        raise CommandError(sentence, ExitCode.USAGE) from None


PREFIX = "WALLTIMED_"

NEARLY = 0.8
"""Similarity from which a variable counts as misspelt: other programs may use the prefix."""


def refuse_misspelt(environment: "Iterable[str]", settings: "Iterable[str]") -> None:
    """Refuse variables of the environment that are nearly a setting.

    Raises:
        CommandError: the message names the setting that was probably meant.
    """
    variables = [f"{PREFIX}{name.upper()}" for name in settings]
    for variable in environment:
        if not variable.startswith(PREFIX) or variable in variables or variable in OTHER_VARIABLES:
            continue
        guess = suggestion(variable, variables, similarity=NEARLY)
        if guess is not None:
            raise CommandError(
                f"The environment variable {variable} is no setting; did you mean {guess}?",
                ExitCode.USAGE,
            )


CLIENTS = ("URL", "TOKEN", "TOKEN_FILE", "CLUSTER", "LIB")
"""Variables that commands for users, the replay and Open OnDemand read."""

OTHER_VARIABLES = frozenset(
    f"{PREFIX}{name}" for name in (*CLIENTS, "PUBLISH", "DATABASE_PASSWORD", "SERVICE_HOST")
)
"""Variables of clients and of other programs."""


def problem_of(problem: "Mapping[str, Any]", settings: "Iterable[str]") -> str:
    """Return a problem that pydantic found, as a sentence."""
    name = ".".join(map(str, problem["loc"]))
    if problem["type"] == "extra_forbidden":
        return unknown("setting", name, settings)
    return f"{name}: {problem['msg']}."


def names_of(settings: "Settings") -> "Pseudonyms":
    """Return the pseudonyms that replace names of users in the history.

    Raises:
        CommandError: the key cannot be used.
    """
    from service.auth import PseudonymKeyError, read_pseudonyms

    try:
        return read_pseudonyms(settings.pseudonym_key_file)
    except PseudonymKeyError as error:
        raise CommandError(str(error), ExitCode.USAGE) from error


def check_cluster(name: str) -> None:
    """Refuse the name of a cluster that no call of the service could mention.

    Raises:
        CommandError: it is empty, too long, or has control characters.
    """
    has_surrogates = any("\ud800" <= character <= "\udfff" for character in name)
    if not 1 <= len(name) <= LONGEST_NAME or has_surrogates or not re.fullmatch(PRINTABLE, name):
        sentence = f"--cluster needs a name of 1 to {LONGEST_NAME} printable characters."
        raise CommandError(sentence, ExitCode.USAGE)


def check_parameters(settings: "Settings") -> None:
    """Refuse unknown methods, unknown parameters and an unusable key.

    Raises:
        CommandError: the message names the parameter or the file.
    """
    from predictors.registry import create

    names_of(settings)
    for method in {settings.method, *settings.predictors, *settings.shadow_methods}:
        try:
            create(method, **settings.predictors.get(method, {}))
        except ValueError as error:
            raise CommandError(f"Method {method}: {error}", ExitCode.USAGE) from error
    tuning_plan(settings)


def tuning_plan(settings: "Settings") -> "TuningPlan":
    """Return the plan of tuning in the settings.

    Raises:
        CommandError: the message names the part that is unknown or out of range.
    """
    from predictors.tuning.plan import GONE, TuningPlan

    for name in settings.tuning_plan:
        if name in GONE:
            raise CommandError(
                f"Setting tuning_plan: {name} is no part of a plan any more: {GONE[name]}. "
                "Leave it out.",
                ExitCode.USAGE,
            )
        if name not in TuningPlan.__struct_fields__:
            sentence = unknown("part of a plan", name, TuningPlan.__struct_fields__)
            raise CommandError(f"Setting tuning_plan: {sentence}", ExitCode.USAGE)
    try:
        return TuningPlan(**settings.tuning_plan)
    except (TypeError, ValueError) as error:
        raise CommandError(f"The plan of tuning is refused: {error}", ExitCode.USAGE) from error


def address_of(settings: "Settings") -> str:
    """Return the address of a service with these settings, for callers on its machine."""
    if settings.unix_socket is not None:
        return f"unix:{settings.unix_socket}"
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104
    return f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"


@contextmanager
def opened(settings: "Settings", *, silent: bool = False) -> "Iterator[Store]":
    """Open the store of the settings, and close it at the end; the schema is not checked.

    Its name is printed on standard error, unless ``silent``.

    Raises:
        CommandError: the database URL names no store.
        NotYoursError: no history was named, and the machine's service has another one.
    """
    from sqlalchemy.exc import ArgumentError

    from service.settings import check_own_history
    from service.store import open_store

    if settings.is_default_history:
        check_own_history()
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
    from service.settings import data_directory

    if settings.is_default_history:
        data_directory().mkdir(mode=0o700, parents=True, exist_ok=True)


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
    from service.worker.writer import surplus_sentence

    try:
        number = len(store.past_runs.clusters())
    except (SchemaOutdatedError, StoreUnavailableError):
        return []
    surplus = surplus_sentence(number, settings.max_clusters)
    return [surplus] if surplus else []


def storable(
    store: "Store", settings: "Settings", names: "Pseudonyms"
) -> "Callable[[ReportedCompletion], ReportedCompletion]":
    """Return a function from a run to what is stored of it: pseudonyms in place of names.

    Raises:
        TooManyClustersError: by the function, for a run of one cluster too many.
    """
    from service.worker.writer import ClusterLimit

    clusters = frozenset(store.past_runs.clusters())
    limit = ClusterLimit(lambda: clusters, settings.max_clusters)

    def admitted(report: "ReportedCompletion") -> "ReportedCompletion":
        limit.admit(report.completion.submission.cluster)
        return names.report(report)

    return admitted


def is_embedded(settings: "Settings") -> bool:
    """Return whether the store is an SQLite file."""
    return settings.database_url.get_secret_value().startswith("sqlite")
