"""Makes the figures and tables of docs/papers.md anew, and compares them with the kept ones.

    .venv/bin/python research/papers.py LOGS [--only tang] [--only xu-figure-1]

LOGS is the directory of the logs. Figures and tables that a page's commands ask of one study with
the same options are made by one command. Every number of a CSV is compared with that in
results/papers; a line for each command says in how much time what came out.
"""

import argparse
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "papers.md"
KEPT = ROOT / "results" / "papers"
WALLTIMED = Path(sys.executable).with_name("walltimed")


def commands() -> Mapping[tuple[str, ...], list[str]]:
    """The commands of the page without figures and tables, with those they are asked for."""
    found: dict[tuple[str, ...], list[str]] = {}
    for text in re.findall(r"`walltimed experiment ([a-z][^`]+)`", PAGE.read_text("utf-8")):
        exhibits = re.findall(r"--((?:figure|table) \d+)", text)
        bare = shlex.split(re.sub(r"--(figure|table) \d+", "", text))
        found.setdefault(tuple(bare), []).extend(exhibits)
    return found


def run(command: Sequence[str], exhibits: Sequence[str], logs: Path, output: Path) -> None:
    """Make exhibits, given as ``figure 1`` or ``table 2``, by one command."""
    name, *rest = command
    placed = [re.sub(r"^traces\b", str(logs), word) for word in rest]
    asked = [word for exhibit in exhibits for word in f"--{exhibit}".split()]
    given = [str(WALLTIMED), "experiment", name, *placed, *asked, "--output", str(output)]
    subprocess.run(given, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def differs(path: Path) -> str | None:
    """Why an exhibit is not as it is kept; None if it is the same."""
    kept = KEPT / path.name
    if not path.exists():
        return None if not kept.exists() else f"{path.stem} was not made"
    if not kept.exists():
        return f"{path.stem} is not kept"
    return None if path.read_bytes() == kept.read_bytes() else f"{path.stem} differs"


def main() -> int:
    """Make and compare them; returns 1 where one differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("logs", type=Path)
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "papers")
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    wrong, began = [], time.monotonic()
    for command, exhibits in commands().items():
        paths = {
            exhibit: options.output / f"{command[0]}-{exhibit.replace(' ', '-')}.csv"
            for exhibit in exhibits
        }
        if options.only and command[0] not in options.only:
            paths = {name: path for name, path in paths.items() if path.stem in options.only}
        if not paths:
            continue
        started = time.monotonic()
        run(command, list(paths), options.logs, options.output)
        found = [reason for path in paths.values() if (reason := differs(path))]
        made = sum(path.exists() for path in paths.values())
        print(
            f"{time.monotonic() - started:6.0f} s  {made - len(found)} of {made} the same "
            f" {shlex.join(command)}" + "".join(f"\n          {reason}" for reason in found),
            flush=True,
        )
        wrong += found
    print(f"{time.monotonic() - began:6.0f} s in all")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
