"""Commands under ``--json``: what goes wrong is JSON too."""

from typing import Any

import typer
from rich.markup import escape

from service.cli.console import ExitCode, err, print_json
from service.cli.failures import exit_code_of, sentence


def run_for_machines(app: typer.Typer) -> int:
    """Run a command; an expected failure is an object on standard output. Gives the exit code.

    The sentence is printed on standard error, too, where people look.
    """
    try:
        # Gives the exit code of typer.Exit, and None from a command that came to its end.
        return int(app(standalone_mode=False) or ExitCode.OK)
    except (KeyboardInterrupt, typer.Abort):
        return tell("The command was interrupted.", ExitCode.INTERRUPTED)
    except Exception as error:
        told = getattr(error, "format_message", None)  # a wrong option, told by the parser
        code = ExitCode.USAGE if told else exit_code_of(error)
        if code is None:
            raise
        return tell(told() if told else sentence(error), code)


def tell(detail: str, code: ExitCode) -> int:
    """Print the failure for machines and for people; gives the exit code."""
    document: dict[str, Any] = {
        "error": code.name.lower(),
        "detail": detail,
        "exit_code": int(code),
    }
    print_json(document)
    err.print(f"[red]error:[/red] {escape(detail)}", soft_wrap=True)
    return code
