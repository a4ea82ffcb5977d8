"""The exit codes of commands, which error classes name as ``exit_code``."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The meaning of every command's exit code."""

    OK = 0
    FAILED = 1
    USAGE = 2
    PARTIAL = 3
    UNAVAILABLE = 4
    INTERRUPTED = 130
