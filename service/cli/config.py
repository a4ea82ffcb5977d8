"""``walltimed config``: every setting with its meaning, its value and the value's source."""

import json
import os
import tomllib
from collections.abc import Iterator
from textwrap import wrap
from typing import Annotated, Any

import typer
from msgspec import Struct
from rich.markup import escape

from service import places
from service.cli.options import load_settings
from service.settings import Settings
from simulator.cli.console import CommandError, ExitCode, out, print_json
from simulator.cli.options import AsJson, ConfigFile


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
    """Every setting in the order of its class, with secrets hidden."""
    in_file = names_in_file(settings)
    shown = settings.model_dump(mode="json")
    defaults = Settings.model_construct().model_dump(mode="json")
    for name, field in Settings.model_fields.items():
        environment = f"WALLTIMED_{name.upper()}"
        yield Setting(
            name=name,
            environment=environment,
            value=without_password(settings) if name == "database_url" else shown[name],
            default=PLAIN_DEFAULTS.get(name, defaults[name]),
            source=source_of(name, environment, in_file),
            description=field.description or "",
        )


PLAIN_DEFAULTS = {"database_url": f"sqlite:///{places.SYSTEM_DIRECTORY / places.HISTORY}"}
"""Defaults that depend on the user, as they are for the service's own."""


def names_in_file(settings: Settings) -> frozenset[str]:
    """The settings that the file names, if there is one."""
    if settings.config is None:
        return frozenset()
    return frozenset({"config"}) | frozenset(tomllib.loads(settings.config.read_text()))


def source_of(name: str, environment: str, in_file: frozenset[str]) -> str:
    """The source of the value in force; the environment wins over the file."""
    if environment in os.environ:
        return "environment"
    return "file" if name in in_file else "default"


def without_password(settings: Settings) -> str:
    """The database URL, its passwords replaced by stars; all of it when it is no URL."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    from service.store import without_passwords

    try:
        url = make_url(settings.database_url.get_secret_value())
    except (ArgumentError, ValueError):
        return str(settings.database_url)
    return without_passwords(url)


def template(settings: list[Setting]) -> Iterator[str]:
    """A TOML file in which every setting is described and commented out at its default."""
    for setting in settings:
        if setting.name == "config":
            continue
        default = "" if setting.default is None else setting.default
        value = "{}" if default == {} else json.dumps(default)
        yield f"# {setting.description}\n# {setting.name} = {value}\n"


ENVIRONMENT = "The environment variable of a setting is WALLTIMED_ and its name in capitals."

WIDTH = 78


def lines(setting: Setting) -> list[str]:
    """A setting with its value and where this is from, and its meaning below, in 80 columns."""
    value = "(none)" if setting.value is None else json.dumps(setting.value)
    indent = "    "
    meaning = wrap(setting.description, WIDTH, initial_indent=indent, subsequent_indent=indent)
    return [f"{setting.name} = {value}  [{setting.source}]", *meaning]
