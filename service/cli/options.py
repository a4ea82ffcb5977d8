"""Settings as commands see them: options win over the environment, which wins over the file."""

from pathlib import Path
from tomllib import TOMLDecodeError
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.console import CommandError, ExitCode

if TYPE_CHECKING:
    from service.pseudonyms import Pseudonyms
    from service.settings import Settings

DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        "-d",
        metavar="URL",
        help="History store; default: WALLTIMED_DATABASE_URL.",
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="TOML file; default: WALLTIMED_CONFIG."),
]


def load_settings(**options: Any) -> "Settings":
    """The settings in force, with every option that was given on the command line.

    Raises:
        CommandError: a setting is unknown or out of range; the message names each one.
    """
    from pydantic import ValidationError
    from pydantic_settings import SettingsError

    from service.settings import Settings

    given = {name: value for name, value in options.items() if value is not None}
    try:
        return Settings(**given)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()
        )
        raise CommandError(f"Settings refused: {problems}.", ExitCode.USAGE) from None
    except SettingsError as error:
        raise CommandError(f"Settings refused: {error}.", ExitCode.USAGE) from None
    except TOMLDecodeError as error:
        raise CommandError(f"The settings file is not TOML: {error}.", ExitCode.USAGE) from None


def names_of(settings: "Settings") -> "Pseudonyms":
    """The pseudonyms that replace the names of people in the history.

    Raises:
        CommandError: the key cannot be used.
    """
    from service.pseudonyms import PseudonymKeyError, read_pseudonyms

    try:
        return read_pseudonyms(settings.pseudonym_key_file)
    except PseudonymKeyError as error:
        raise CommandError(str(error), ExitCode.USAGE) from error


def check_parameters(settings: "Settings") -> None:
    """Refuse unknown methods, unknown parameters and an unusable key.

    Raises:
        CommandError: the message names the parameter or the file.
    """
    from predictors.registry import create
    from predictors.tuning.plan import TuningPlan

    names_of(settings)
    for method in {settings.method, *settings.predictors}:
        try:
            create(method, **settings.predictors.get(method, {}))
        except ValueError as error:
            raise CommandError(f"Method {method}: {error}", ExitCode.USAGE) from error
    try:
        TuningPlan(**settings.tuning_plan)
    except (TypeError, ValueError) as error:
        raise CommandError(f"Setting tuning_plan: {error}", ExitCode.USAGE) from error
