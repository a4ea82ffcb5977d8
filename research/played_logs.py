"""Options and parts of scripts that play each log once."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import typer

from predictors.jobs import Completion
from simulator.scheduling.parallel import in_parallel
from simulator.traces.completions import usable_runs
from terminal.console import CommandError, ExitCode, err, sentence

Result = TypeVar("Result")

Traces = Annotated[
    list[Path], typer.Argument(metavar="TRACE...", help="SWF files, also gzip or xz.")
]


class LogPart(NamedTuple):
    """A log that is played once.

    Attributes:
        trace: path of the log.
        limit: number of jobs after cleaning, or None for all.
        options: of the script, such as a method.
    """

    trace: str
    limit: int | None
    options: Any = None

    def runs(self) -> list[Completion]:
        """Return the jobs of the log that can be learned from.

        Raises:
            NoJobError: there is none.
        """
        return usable_runs(self.trace, self.limit)


def log_parts(paths: Sequence[Path], limit: int | None, options: Any = None) -> list[LogPart]:
    """Return a part for each log, with the same options.

    Raises:
        CommandError: there is no such file.
    """
    for path in paths:
        if not path.exists():
            raise CommandError(f"There is no file {path}.", ExitCode.USAGE)
    return [LogPart(str(path), limit, options) for path in paths]


def play_logs(
    play: Callable[[LogPart], Result],
    parts: Sequence[LogPart],
    *,
    processes: int | None,
    distributed: str | None,
) -> Iterator[tuple[LogPart, Result]]:
    """Yield the logs with their results, in their order."""
    results = in_parallel(play, parts, processes=processes, distributed=distributed)
    yield from zip(parts, results, strict=True)


def run_script(main: Callable[..., None]) -> None:
    """Run a script's command; an expected failure is one sentence and an exit code."""
    try:
        typer.run(main)
    except CommandError as error:
        err.print(sentence(error), soft_wrap=True, markup=False)
        raise SystemExit(error.code) from error
    except (OSError, ValueError) as error:
        if (code := getattr(type(error), "exit_code", None)) is None:
            raise
        err.print(sentence(error), soft_wrap=True, markup=False)
        raise SystemExit(int(code)) from error
