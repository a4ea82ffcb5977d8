"""``walltimed config`` and ``check-config``: the settings, and whether ``serve`` would start."""

import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct
from rich.markup import escape

from service.cli.options import (
    DatabaseUrl,
    check_parameters,
    is_embedded,
    load_settings,
    opened,
    surplus_of,
)
from service.settings import HISTORY, SYSTEM_DIRECTORY, Settings
from terminal.console import CommandError, ExitCode, check_file, out, print_json
from terminal.options import AsJson, ConfigFile

if TYPE_CHECKING:
    from service.store import Store


class Setting(Struct, frozen=True, kw_only=True):
    """One setting: ``value`` is in force, and came from ``source``."""

    name: str
    environment: str
    value: Any
    default: Any
    source: str
    description: str


def config(
    *,
    file: ConfigFile = None,
    as_toml: Annotated[
        bool, typer.Option("--toml", help="Print a settings file to fill in, with the defaults.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print every setting with its meaning, its present value and the source of the value.

    Passwords are never printed.

    For example:

        walltimed config
        walltimed config --toml > walltimed.toml
        WALLTIMED_CONFIG=walltimed.toml WALLTIMED_PORT=9000 walltimed config --json
    """
    if as_toml and as_json:
        raise CommandError("Choose --toml or --json, not both.", ExitCode.USAGE)
    settings = list(settings_in_force(load_settings(config=file)))
    if as_json:
        print_json({"settings": settings})
    elif as_toml:
        typer.echo("\n".join(template(settings)))
    else:
        for setting in settings:
            out.print(escape("\n".join(lines(setting))), soft_wrap=True)
        out.print(f"\n{ENVIRONMENT}", soft_wrap=True)


def settings_in_force(settings: Settings) -> Iterator[Setting]:
    """Yield every setting in the order of its class, without secrets."""
    in_file = names_in_file(settings)
    values = settings.model_dump(mode="json")
    defaults = Settings.model_construct().model_dump(mode="json")
    for name, field in Settings.model_fields.items():
        environment = f"WALLTIMED_{name.upper()}"
        yield Setting(
            name=name,
            environment=environment,
            value=without_password(settings) if name == "database_url" else values[name],
            default=PLAIN_DEFAULTS.get(name, defaults[name]),
            source=source_of(name, environment, in_file),
            description=field.description or "",
        )


PLAIN_DEFAULTS = {"database_url": f"sqlite:///{SYSTEM_DIRECTORY / HISTORY}"}
"""Defaults that depend on the user, as they are for the service's own."""


def names_in_file(settings: Settings) -> frozenset[str]:
    """Return the names of the settings in the settings file, if there is one."""
    if settings.config is None:
        return frozenset()
    return frozenset({"config"}) | frozenset(tomllib.loads(settings.config.read_text()))


def source_of(name: str, environment: str, in_file: frozenset[str]) -> str:
    """Return the source of a value; the environment has priority over the file."""
    if environment in os.environ:
        return "environment"
    return "file" if name in in_file else "default"


def without_password(settings: Settings) -> str:
    """Return the database URL with stars for its passwords; all of it, if it is malformed."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    from service.store import without_passwords

    try:
        url = make_url(settings.database_url.get_secret_value())
    except (ArgumentError, ValueError):
        return str(settings.database_url)
    return without_passwords(url)


def template(settings: list[Setting]) -> Iterator[str]:
    """Yield a TOML file in which every setting is described and commented out at its default."""
    for setting in settings:
        if setting.name == "config":
            continue
        default = "" if setting.default is None else setting.default
        value = "{}" if default == {} else json.dumps(default)
        yield f"# {setting.description}\n# {setting.name} = {value}\n"


ENVIRONMENT = "The environment variable of a setting is WALLTIMED_ and its name in capitals."

WIDTH = 78


def lines(setting: Setting) -> list[str]:
    """Return a setting with value, source and meaning as lines of 80 columns."""
    value = "(none)" if setting.value is None else json.dumps(setting.value)
    indent = "    "
    meaning = wrap(setting.description, WIDTH, initial_indent=indent, subsequent_indent=indent)
    return [f"{setting.name} = {value}  [{setting.source}]", *meaning]


def check_config(
    *, database_url: DatabaseUrl = None, file: ConfigFile = None, as_json: AsJson = False
) -> None:
    """Check whether `walltimed serve` would start, and change nothing.

    Checks every setting, the methods and their parameters, and the history store. The exit code
    is 2 for a wrong setting or a missing token, 4 for a store that cannot be reached, and 1 for a
    schema that must be upgraded or is newer.

    For example:

        walltimed check-config --config /etc/walltimed/walltimed.toml
    """
    settings = load_settings(database_url=database_url, config=file)
    check_parameters(settings)
    check_file(settings.unix_socket)
    with opened(settings) as store:
        check_store(store, settings)
        warnings = surplus_of(store, settings)
    if as_json:
        print_json({"config": "good", "warnings": warnings})
        return
    out.print("walltimed would start with these settings.")
    for warning in warnings:
        out.print(f"But: {warning}", soft_wrap=True)


def check_store(store: "Store", settings: Settings) -> None:
    """Refuse a store that `serve` would refuse; `serve` makes or upgrades an SQLite file itself.

    Raises:
        StoreError: the store cannot be reached or used.
        CommandError: no file can be made where it is to be.
        NotProtectedError: calls from elsewhere would need no token.
    """
    from service.auth import check_protected
    from service.store import SchemaOutdatedError

    if not is_embedded(settings):
        store.check()
    elif not Path(store.name).exists():
        check_place(Path(store.name).parent, can_be_made=settings.is_default_history)
        check_protected(settings.guarded_host, list)
        return
    else:
        try:
            store.check()
        except SchemaOutdatedError:
            return
    check_protected(settings.guarded_host, store.tokens.read_all)


def check_place(directory: Path, *, can_be_made: bool) -> None:
    """Refuse a directory in which no history can be made; ``can_be_made`` allows a missing one.

    Raises:
        CommandError: the message names it.
    """
    place = directory
    while can_be_made and not place.exists():
        place = place.parent
    if not os.access(place, os.W_OK):
        raise CommandError(f"No history can be made in {directory}.", ExitCode.UNAVAILABLE)
