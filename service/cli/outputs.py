"""The paths that a command is to write, checked before it works."""

import os
from pathlib import Path

from service.cli.console import CommandError, ExitCode

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
