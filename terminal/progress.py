"""Progress of long work on standard error: a bar on a terminal, a line a minute in a log."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread

from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from terminal.console import err
from terminal.words import duration

SECONDS_A_LINE = 60.0
"""Seconds between two lines of a log."""


class CountColumn(ProgressColumn):
    """Steps so far, such as ``1,200 of 54,009 jobs``, and their speed."""

    def __init__(self, unit: str) -> None:
        """Name what is counted, in the plural."""
        super().__init__()
        self.unit = unit

    def render(self, task: Task) -> Text:
        """Return the steps so far with the recent speed, or the mean speed of a finished task."""
        speed = task.finished_speed or task.speed
        rate = f"{speed:,.0f} {self.unit}/s" if speed and speed >= 1 else ""
        return Text(f"{counted(task, self.unit)}  {rate}".strip())


class RestColumn(ProgressColumn):
    """Time that is left at the mean speed so far: long steps have no recent speed."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        """Return the time that is left, such as ``about 3 min left``."""
        return Text(rest(task))


def counted(task: Task, unit: str) -> str:
    """Return the steps so far, such as ``1,200 of 54,009 jobs``; empty if none are counted."""
    if task.total is None:
        return f"{task.completed:,.0f} {unit}" if task.completed else ""
    return f"{task.completed:,.0f} of {task.total:,.0f} {unit}"


def rest(task: Task) -> str:
    """Return the time that is left at the mean speed so far; empty while it is not known."""
    if not task.total or not task.completed or task.elapsed is None or task.finished:
        return ""
    left = task.elapsed * (task.total - task.completed) / task.completed
    return f"about {duration(left)} left"


def line_of(task: Task, unit: str) -> str:
    """Return the state of a task in a line of a log."""
    parts = [counted(task, unit), f"after {duration(task.elapsed)}", rest(task)]
    described = f"{task.description}: " if task.description else ""
    return described + ", ".join(part for part in parts if part)


class Bar(Progress):
    """A progress bar that vanishes when it is done; where there is no terminal, lines of a log.

    Args:
        unit: what is counted, in the plural; empty where nothing is.
        quiet: whether nothing is shown.
    """

    def __init__(self, unit: str, *, quiet: bool) -> None:
        name, elapsed = TextColumn("{task.description}"), TimeElapsedColumn()
        counts = (BarColumn(), CountColumn(unit), elapsed, RestColumn())
        columns: Sequence[ProgressColumn] = counts if unit else (SpinnerColumn(), elapsed)
        super().__init__(
            name,
            *columns,
            console=err,
            transient=True,
            redirect_stdout=False,
            disable=quiet or not err.is_terminal,
        )
        self._unit = unit
        self._logs = not quiet and not err.is_terminal
        self._ended = Event()
        self._writer: Thread | None = None

    def lines(self) -> list[str]:
        """Return a line for each task that is under way."""
        return [line_of(task, self._unit) for task in self.tasks if not task.finished]

    def start(self) -> None:
        """Begin to show the bar, or to write lines."""
        super().start()
        if self._logs:
            self._ended.clear()
            self._writer = Thread(target=self._write_lines, daemon=True)
            self._writer.start()

    def stop(self) -> None:
        """End the bar, or the lines."""
        self._ended.set()
        if self._writer:
            self._writer.join()
        super().stop()

    def _write_lines(self) -> None:
        """Write the lines again and again until the end."""
        while not self._ended.wait(SECONDS_A_LINE):
            for line in self.lines():
                err.print(line, soft_wrap=True)


def progress_bar(unit: str, *, quiet: bool = False) -> Bar:
    """Return a progress bar on standard error that counts ``unit`` and vanishes when it is done."""
    return Bar(unit, quiet=quiet)


@contextmanager
def waiting(description: str, *, quiet: bool = False) -> Iterator[None]:
    """Show work whose steps are not known, with the time since its begin."""
    with progress_bar("", quiet=quiet) as progress:
        progress.add_task(escape(description), total=None)
        yield
