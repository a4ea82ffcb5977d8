"""Reads the logs of ``replay`` and ``simulate``, which are in the Standard Workload Format."""

import re
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from terminal.console import STANDARD_OUTPUT, CommandError, ExitCode
from terminal.files import name_of, read_beginning
from terminal.options import OnError

if TYPE_CHECKING:
    from simulator.traces.trace import Trace

BEGINNING = 4096
"""Bytes of a file by which its format is recognised."""

SIGNS = {
    "the JSON of sacct": r"\s*\{",
    "text of sacct": r"(.*[|,;^\t\x1f])?job(id|idraw)[|,;^\t\x1f]",
    "an accounting log of PBS": r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Za-z];",
}
"""Formats that ``walltimed import`` reads, and the beginnings of their files."""


def read_swf_log(file: str, on_error: OnError) -> "Trace":
    """Return a log.

    Raises:
        CommandError: the file is of another format, or has a malformed line.
    """
    from simulator.traces.swf import MalformedLineError, read_swf

    try:
        trace = read_swf(file, on_error=on_error.of_reader)
    except MalformedLineError as error:
        raise CommandError(
            other_format(file) or f"{name_of(file)}: {error}", ExitCode.USAGE
        ) from error
    if trace.rejects and not len(trace) and (found := other_format(file)):
        raise CommandError(found, ExitCode.USAGE)
    return trace


def other_format(file: str) -> str:
    """Return the format of a file that is no SWF log, and how to convert it; empty if unknown."""
    if file == STANDARD_OUTPUT:
        return ""
    beginning = read_beginning(file, BEGINNING).decode("utf-8-sig", "replace")
    kind = next(
        (kind for kind, sign in SIGNS.items() if re.match(sign, beginning, re.IGNORECASE)), None
    )
    if kind is None:
        return ""
    stem = Path(file).name.split(".")[0]
    store = f"-d sqlite:///{stem}.sqlite3"
    return (
        f"{file} is {kind}, and this command reads SWF. Convert it: walltimed import {store} "
        f"--cluster log {quote(file)}; walltimed export {store} --cluster log -o {stem}.swf.gz"
    )
