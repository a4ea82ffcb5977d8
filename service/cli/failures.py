"""Run a command line: an expected failure is one sentence, or a JSON object, and an exit code."""

from typing import Any

import typer
from rich.markup import escape

from terminal.console import EXTRAS, CommandError, ExitCode, err, print_json, sentence


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
