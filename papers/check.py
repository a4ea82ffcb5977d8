"""Makes the figures and tables of papers/README.md again, and compares them with the kept ones."""

import re
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, NamedTuple

import typer

from papers.studies import STUDIES
from terminal.console import out
from terminal.progress import progress_bar

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "papers" / "README.md"
KEPT = ROOT / "results" / "papers"


def commands() -> Mapping[tuple[str, ...], list[str]]:
    """Return the page's commands without figures and tables, each with those it is asked for."""
    found: dict[tuple[str, ...], list[str]] = {}
    for text in re.findall(r"`python -m papers ([a-z][^`]+)`", PAGE.read_text("utf-8")):
        exhibits = re.findall(r"--((?:figure|table) \w+)", text)
        bare = shlex.split(re.sub(r"--(figure|table) \w+", "", text))
        found.setdefault(tuple(bare), []).extend(exhibits)
    return found


def make(command: Sequence[str], exhibits: Sequence[str], logs: Path, output: Path) -> None:
    """Make exhibits, given as ``figure 1`` or ``table 2``, by one command."""
    placed = [re.sub(r"^traces\b", str(logs.absolute()), word) for word in command]
    asked = [word for exhibit in exhibits for word in f"--{exhibit}".split()]
    given = [sys.executable, "-m", "papers", *placed, *asked, "--output", str(output.absolute())]
    subprocess.run(  # noqa: S603 - the project's own command
        given, cwd=ROOT, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def link_logs(logs: Path, directory: Path) -> None:
    """Link the logs that the kept exhibits were made with; of others, such as FH2, none are."""
    for name in {each for study in STUDIES.values() for each in (*study.logs, *study.further_logs)}:
        if (logs / name).exists():
            (directory / name).symlink_to((logs / name).absolute())


def differs(path: Path) -> str | None:
    """Return why an exhibit is not as it is kept; None if it is the same."""
    kept = KEPT / path.name
    if not path.exists():
        return None if not kept.exists() else f"{path.stem} was not made"
    if not kept.exists():
        return f"{path.stem} is not kept"
    return None if path.read_bytes() == kept.read_bytes() else f"{path.stem} differs"


def check(
    logs: Annotated[Path, typer.Argument(metavar="DIRECTORY", help="Directory of the logs.")],
    *,
    output: Annotated[Path, typer.Option(metavar="DIR", help="Where they are written.")] = (
        ROOT / "build" / "papers"
    ),
    only: Annotated[
        list[str], typer.Option(metavar="NAME", help="A study, or an exhibit such as xu-figure-1.")
    ] = [],  # noqa: B006 - typer copies it
) -> None:
    """Make every figure and table of papers/README.md again, and compare it with the kept one.

    Exhibits that the page's commands ask of one study with the same options are made by one
    command; a line for each says in how much time what came out. Every number of a CSV is compared
    with that in results/papers.

    For example:

        python -m papers check traces --only tang
    """
    output.mkdir(parents=True, exist_ok=True)
    wrong, began = [], time.monotonic()
    wanted = {command: wanted_of(command, names, only) for command, names in commands().items()}
    with TemporaryDirectory() as linked, progress_bar("exhibits") as progress:
        link_logs(logs, Path(linked))
        task = progress.add_task("", total=sum(map(len, wanted.values())))
        for command, names in wanted.items():
            if names:
                progress.update(task, description=command[0])
                paths = {name: output / f"{exhibit_of(command, name)}.csv" for name in names}
                found = _make_again(command, paths, Path(linked), output)
                progress.advance(task, len(names))
                progress.stop()  # a line goes to another stream
                found.show()
                progress.start()
                wrong += found.different
    out.print(f"{time.monotonic() - began:6.0f} s in all")
    if wrong:
        raise typer.Exit(1)


def exhibit_of(command: Sequence[str], name: str) -> str:
    """Return the name of an exhibit, such as ``xu-figure-1``."""
    return f"{command[0]}-{name.replace(' ', '-')}"


def wanted_of(command: Sequence[str], names: Sequence[str], only: Sequence[str]) -> list[str]:
    """Return the exhibits of a command that are asked for; all without ``only``."""
    if not only or command[0] in only:
        return [*names]
    return [name for name in names if exhibit_of(command, name) in only]


class MadeAgain(NamedTuple):
    """The exhibits of a command, beside those that are kept."""

    command: Sequence[str]
    made: int
    different: list[str]
    seconds: float

    def show(self) -> None:
        """Print a line, and one for each exhibit that differs."""
        out.print(
            f"{self.seconds:6.0f} s  {self.made - len(self.different)} of {self.made} the same "
            f" {shlex.join(self.command)}"
            + "".join(f"\n          {reason}" for reason in self.different),
            soft_wrap=True,
            markup=False,
        )


def _make_again(
    command: Sequence[str], paths: Mapping[str, Path], logs: Path, output: Path
) -> MadeAgain:
    """Make the exhibits of a command, and compare them with those that are kept."""
    started = time.monotonic()
    for path in paths.values():
        path.unlink(missing_ok=True)
    make(command, list(paths), logs, output)
    found = [reason for path in paths.values() if (reason := differs(path))]
    made = sum(path.exists() for path in paths.values())
    return MadeAgain(command, made, found, time.monotonic() - started)
