"""The common parts of all commands: output for people and machines, exit codes, errors."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import typer
from rich.console import Console
from rich.markup import escape

from terminal.exit_codes import ExitCode as ExitCode  # noqa: PLC0414 - beside CommandError

out = Console(highlight=False)
"""Results, on standard output."""

err = Console(stderr=True, highlight=False)
"""Progress, warnings and errors, on standard error."""


class CommandError(Exception):
    """A failure that one sentence explains; any code below a command may raise it."""

    def __init__(self, message: str, code: ExitCode = ExitCode.FAILED) -> None:
        """Fail with ``message`` on standard error and ``code`` as the exit code."""
        super().__init__(message)
        self.code = code


SCHEMA = 1
"""Version of the JSON that commands print; docs/schemas has one file for each command."""


def print_json(value: Any) -> None:
    """Write an object as indented JSON with the version of its schema, never coloured."""
    document = {"schema": SCHEMA, **msgspec.to_builtins(value)}
    text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
    sys.stdout.write(text + "\n")


def cell(value: Any) -> Any:
    """Return a value that no spreadsheet evaluates as a formula: users choose names of jobs."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value


STANDARD_OUTPUT = "-"


def check_file(path: str | Path | None) -> None:
    """Refuse a file that cannot be written; ``-`` is standard output, and None is no file.

    Raises:
        CommandError: the message says what is in the way.
    """
    if path is None or str(path) == STANDARD_OUTPUT:
        return
    file = Path(path)
    if file.is_dir():
        raise CommandError(f"{file} is a directory; name a file to write.", ExitCode.USAGE)
    if not file.parent.is_dir():
        raise CommandError(
            f"{file} cannot be written: there is no directory {file.parent}.", ExitCode.USAGE
        )
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise CommandError(f"{file} cannot be written: permission denied.", ExitCode.USAGE)


def check_alone(path: str | None, holds: str, *, as_json: bool) -> None:
    """Refuse to write a file to standard output where JSON is to be printed.

    Raises:
        CommandError: the message names what the file holds, as ``holds`` says it.
    """
    if as_json and path == STANDARD_OUTPUT:
        raise CommandError(
            f"--json needs a file for {holds}, which would be on standard output too.",
            ExitCode.USAGE,
        )


def check_directory(path: Path | None) -> None:
    """Refuse a directory that can be neither made nor written; None is no directory.

    Raises:
        CommandError: the message says what is in the way.
    """
    if path is None:
        return
    if path.exists() and not path.is_dir():
        raise CommandError(f"{path} is a file; name a directory to write.", ExitCode.USAGE)
    there = next(each for each in (path, *path.absolute().parents) if each.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise CommandError(f"{path} cannot be written: {there} refuses it.", ExitCode.USAGE)


EXTRAS = {
    "distributed": "distributed",
    "matplotlib": "reports",
    "pandas": "tables",
    "pyarrow": "tables",
}
"""The extra that brings each package."""


def need(package: str, *, for_: object = True) -> None:
    """Refuse a command before its work if a package is missing.

    Args:
        package: package that is imported later.
        for_: value of the option that needs it; nothing is checked if it is false.

    Raises:
        CommandError: the package is not installed; the message names its extra.
    """
    if for_ and find_spec(package) is None:
        raise CommandError(missing(package))


def missing(package: str) -> str:
    """Return the sentence that names what to install for a missing package.

    The package itself and not the extra: no index has a release of walltimed, so a name like
    ``walltimed[reports]`` would fetch nothing, or something of others.
    """
    return (
        f"This needs {package}, which is not installed (extra {EXTRAS[package]}): "
        f"{sys.executable} -m pip install {package}"
    )


def sentence(error: BaseException) -> str:
    """Return the error in one line; for a file that cannot be opened, the system's message."""
    if isinstance(error, ModuleNotFoundError) and error.name in EXTRAS:
        return missing(error.name)
    if isinstance(error, OSError) and error.strerror:
        name = f"{error.filename}: " if error.filename else ""
        return f"{name}{error.strerror}."
    return " ".join(str(error).split())


def exit_code_of(error: BaseException) -> ExitCode | None:
    """Return the exit code of ``error``, or None if the error is a bug.

    Expected errors name it: ``exit_code`` of their class.
    """
    if isinstance(error, CommandError):
        return error.code
    if isinstance(error, ModuleNotFoundError) and error.name in EXTRAS:
        return ExitCode.FAILED
    if (code := getattr(type(error), "exit_code", None)) is not None:
        return ExitCode(code)
    if isinstance(error, ConnectionError):
        return ExitCode.UNAVAILABLE
    return ExitCode.USAGE if isinstance(error, OSError) else None


def print_failure(error: BaseException) -> int:
    """Print an expected failure as a sentence, and return its exit code; a bug is raised again."""
    if isinstance(error, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    code = exit_code_of(error)
    if code is None:
        raise error
    print_error(sentence(error))
    return code


def run_for_machines(app: typer.Typer) -> int:
    """Run a command, print an expected failure as JSON, and return the exit code.

    The sentence is printed on standard error, too, where people look.
    """
    try:
        # Gives the exit code of typer.Exit, and None from a command that came to its end.
        return int(app(standalone_mode=False) or ExitCode.OK)
    except (KeyboardInterrupt, typer.Abort):
        return tell("The command was interrupted.", ExitCode.INTERRUPTED)
    except Exception as error:
        message = getattr(error, "format_message", None)  # of a wrong option, from the parser
        code = ExitCode.USAGE if message else exit_code_of(error)
        if code is None:
            raise
        return tell(message() if message else sentence(error), code)


def tell(detail: str, code: ExitCode) -> int:
    """Print the failure for machines and for people, and return the exit code."""
    document: dict[str, Any] = {
        "error": code.name.lower(),
        "detail": detail,
        "exit_code": int(code),
    }
    print_json(document)
    print_error(detail)
    return code


def print_error(detail: str) -> None:
    """Print a failure on standard error."""
    err.print(f"[red]error:[/red] {escape(detail)}", soft_wrap=True)
