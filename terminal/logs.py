"""Structured logs: a sentence and fields, one record a line."""

import logging
import os
import sys
from collections.abc import MutableMapping
from time import monotonic
from typing import Any, Protocol

import structlog


class LogSettings(Protocol):
    """The settings of logs, which those of the service contain."""

    @property
    def log_level(self) -> str:
        """The lowest severity of written log records."""
        ...

    @property
    def log_format(self) -> str:
        """``json``, ``console``, or ``auto``: for people on a terminal, else JSON."""
        ...


_CONTROL = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | {
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}

_SHARED: tuple[structlog.typing.Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
)


def one_line(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Escape control characters, so that no text of a caller looks like a record of the service."""
    return {
        key: value.translate(_CONTROL) if isinstance(value, str) and key != "exception" else value
        for key, value in event.items()
    }


_PRIORITIES = (
    (logging.CRITICAL, 2),
    (logging.ERROR, 3),
    (logging.WARNING, 4),
    (logging.INFO, 6),
    (logging.NOTSET, 7),
)


SPARSE_SECONDS = 10.0
"""Seconds between two records of a sentence that any caller can provoke."""


class Throttle:
    """Counts events, and allows one record of each kind in some seconds.

    A method that fails may fail at every run of a history: a traceback for each of a million runs
    would fill the disk, and take longer than learning does.

    Args:
        seconds: between two records of one kind.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._counts: dict[tuple[str, ...], tuple[int, float]] = {}

    def count(self, *kind: str) -> int:
        """Count an event; return the number since the last record, 0 if it is too early for one."""
        times, next_at = self._counts.get(kind, (0, 0.0))
        now = monotonic()
        if now < next_at:
            self._counts[kind] = times + 1, next_at
            return 0
        self._counts[kind] = 0, now + self._seconds
        return times + 1


class SparseLog:
    """A warning that is logged once in ten seconds, however often it is true."""

    def __init__(self, sentence: str) -> None:
        self._sentence = sentence
        self._throttle = Throttle(SPARSE_SECONDS)

    def warn(self, **fields: Any) -> None:
        """Log the warning now, or count it for the next record."""
        if times := self._throttle.count():
            structlog.get_logger().warning(self._sentence, times=times, **fields)


class JournalFormatter(structlog.stdlib.ProcessorFormatter):
    """Puts the severity before each line as ``<4>``, which the journal takes off and sorts by."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        priority = next(number for level, number in _PRIORITIES if record.levelno >= level)
        return f"<{priority}>{super().format(record)}"


def is_journal() -> bool:
    """Return whether standard error is systemd's journal (systemd.exec(5), JOURNAL_STREAM)."""
    device, _, inode = os.environ.get("JOURNAL_STREAM", "").partition(":")
    try:
        there = os.fstat(sys.stderr.fileno())
    except (OSError, ValueError):
        return False
    return (device, inode) == (str(there.st_dev), str(there.st_ino))


def configure(settings: LogSettings) -> None:
    """Send our records and those of the libraries to standard error in one format."""
    on_terminal = settings.log_format == "auto" and sys.stderr.isatty()
    ours: list[structlog.typing.Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.format_exc_info,
        one_line,
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
        if on_terminal or settings.log_format == "console"
        else structlog.processors.JSONRenderer(),
    ]
    handler = logging.StreamHandler(sys.stderr)
    formatter = JournalFormatter if is_journal() else structlog.stdlib.ProcessorFormatter
    handler.setFormatter(formatter(processors=ours, foreign_pre_chain=_SHARED))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.log_level.upper())
    logging.getLogger("alembic").setLevel(logging.WARNING)  # without the steps of migrations
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
