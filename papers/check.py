"""Makes the figures and tables of papers/README.md again, and compares them with the kept ones."""

import re
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from papers.studies import STUDIES
from terminal.console import out

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
    with TemporaryDirectory() as linked:
        link_logs(logs, Path(linked))
        for command, exhibits in commands().items():
            paths = {
                exhibit: output / f"{command[0]}-{exhibit.replace(' ', '-')}.csv"
                for exhibit in exhibits
            }
            if only and command[0] not in only:
                paths = {name: path for name, path in paths.items() if path.stem in only}
            if paths:
                wrong += _compare(command, paths, Path(linked), output)
    out.print(f"{time.monotonic() - began:6.0f} s in all")
    if wrong:
        raise typer.Exit(1)


def _compare(
    command: Sequence[str], paths: Mapping[str, Path], logs: Path, output: Path
) -> list[str]:
    """Make the exhibits of a command, print a line, and return what differs."""
    started = time.monotonic()
    for path in paths.values():
        path.unlink(missing_ok=True)
    make(command, list(paths), logs, output)
    found = [reason for path in paths.values() if (reason := differs(path))]
    made = sum(path.exists() for path in paths.values())
    out.print(
        f"{time.monotonic() - started:6.0f} s  {made - len(found)} of {made} the same "
        f" {shlex.join(command)}" + "".join(f"\n          {reason}" for reason in found),
        soft_wrap=True,
        markup=False,
    )
    return found
