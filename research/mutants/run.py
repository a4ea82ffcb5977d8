"""Counts the small mistakes in the code that the tests notice: `make mutants`.

Draws mutants of the areas where a mistake costs a user (areas.py), equally many of each, and puts
one after another into a copy of the working tree; compiled code is compiled anew with its mistake.
First the tests that are named as the mutated file run, then all tests of its area. A mutant that no
test of the area notices has survived, also where an acceptance test would have noticed it: the
score is a lower bound. What no test can notice is covered by a rule of equivalents.py.

At the end the tests that killed a mutant run once without any. A test that fails there proves
nothing, and mutants that only such a test killed are not counted.
"""

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Queue

from areas import AREAS, Area, files, nearest
from equivalents import RULES, reason
from mutations import Mutant, chosen

ROOT = Path(__file__).resolve().parents[2]
TIME_LIMIT = 600
"""Seconds for one run of tests; a mutant that makes them hang is noticed."""


FATES = ("killed", "hung", "survived", "equivalent", "unproven")


@dataclass(frozen=True)
class Result:
    """Fate of a mutant: one of FATES, and the test that noticed it."""

    area: Area
    mutant: Mutant
    fate: str
    test: str = ""


class Copy:
    """A copy of the working tree, in which one mutant at a time is tried."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        # With what is compiled already: of a copy it holds as well. Tests read docs, too.
        leave = shutil.ignore_patterns(".*")
        shutil.copytree(ROOT, folder, ignore=leave, symlinks=True)
        self._run([sys.executable, "-m", "service.cli", "warm-up"], 900)

    def check(self, tests: list[str]) -> None:
        """Refuse a copy in which tests fail before they begin: they would kill every mutant."""
        code, output = self.tests(["--collect-only", *tests])
        if code != 0:
            raise SystemExit(f"Tests cannot be collected without any mutant:\n{output[-3000:]}")

    def tried(self, area: Area, mutant: Mutant) -> Result:
        """Whether a test notices `mutant`."""
        file = self.root / mutant.path
        original = file.read_text("utf-8")
        try:
            file.write_text(mutant.source, "utf-8")
            return self._judged(area, mutant)
        finally:
            file.write_text(original, "utf-8")

    def _judged(self, area: Area, mutant: Mutant) -> Result:
        near = nearest(self.root, area, mutant.path)
        for tests in ([*near], [*area.tests, *(f"--deselect={test}" for test in near)]):
            if not tests:
                continue
            code, output = self.tests(["-x", *tests])
            if code is None:
                return Result(area, mutant, "hung")
            if code not in {0, 5}:
                return Result(area, mutant, "killed", next(iter(_failed(output)), ""))
        return Result(area, mutant, "survived")

    def tests(self, arguments: list[str]) -> tuple[int | None, str]:
        """Return the exit code of pytest, None if it hung, and what it printed."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:randomly",
            "-p",
            "no:cacheprovider",
        ]
        return self._run([*command, "--tb=line", "-rfE", *arguments], TIME_LIMIT)

    def _run(self, command: list[str], limit: float) -> tuple[int | None, str]:
        paths = f"{self.root}{os.pathsep}{self.root / 'tests' / 'support'}"
        process = subprocess.Popen(
            command,
            cwd=self.root,
            env=os.environ | {"PYTHONPATH": paths},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            return None, process.communicate()[0]
        return process.returncode, output


def main() -> None:
    """Try the drawn mutants, and print a table of their fates."""
    asked = _arguments()
    deadline = time.monotonic() + asked.minutes * 60
    areas = [area for area in AREAS if asked.area in {None, area.name}]
    drawn = [
        (area, mutant)
        for area in areas
        for mutant in chosen(ROOT, files(ROOT, area), asked.count // len(areas), asked.seed)
    ]
    random.Random(asked.seed).shuffle(drawn)  # noqa: S311 - a draw
    with tempfile.TemporaryDirectory(prefix="walltimed-mutants-") as folder:
        if (ROOT.parent / "shared").exists():  # real logs and payloads, which some tests read
            Path(folder, "shared").symlink_to((ROOT.parent / "shared").resolve())
        copies: Queue[Copy] = Queue()
        for number in range(asked.processes):
            copies.put(copy := Copy(Path(folder) / str(number)))
            copy.check(sorted({tests for area in areas for tests in area.tests}))

        def judge(area: Area, mutant: Mutant) -> Result | None:
            if reason(mutant) is not None:
                return Result(area, mutant, "equivalent")
            copy = copies.get()
            try:
                if time.monotonic() > deadline:
                    return None
                result = copy.tried(area, mutant)
            finally:
                copies.put(copy)
            _tell(result)
            return result

        with ThreadPoolExecutor(asked.processes) as pool:
            tried = list(pool.map(judge, *zip(*drawn, strict=True)))
        results = [result for result in tried if result]
        failing = _failing_anyway(copies.get(), results)
    results = [replace(r, fate="unproven") if r.test in failing else r for r in results]
    _report(areas, results, len(drawn))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=120, help="mutants in all")
    parser.add_argument("--seed", type=int, default=1, help="of the draw")
    parser.add_argument("--minutes", type=float, default=55, help="no mutant is begun after them")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--area", choices=[area.name for area in AREAS], help="of this one only")
    return parser.parse_args()


def _tell(result: Result) -> None:
    mutant = result.mutant
    print(f"{result.fate:<9} {mutant.path}:{mutant.line} {result.test}", flush=True)
    if result.fate == "survived":
        print(f"  - {mutant.before}\n  + {mutant.after}", flush=True)


def _failed(output: str) -> list[str]:
    """The tests that failed, by what pytest printed."""
    return re.findall(r"^(?:FAILED|ERROR) (\S+\.py(?:::.+?)?)(?: - .*)?$", output, re.MULTILINE)


def _failing_anyway(copy: Copy, results: list[Result]) -> set[str]:
    """The tests that killed a mutant, and fail without any."""
    killers = sorted({result.test for result in results if "::" in result.test})
    return set(_failed(copy.tests(killers)[1])) if killers else set()


def _report(areas: list[Area], results: list[Result], drawn: int) -> None:
    print(f"\n{len(results)} of {drawn} mutants tried\n")
    print(f"{'area':<20}" + "".join(f"{fate:>11}" for fate in FATES) + f"{'score':>8}")
    for name in [*(area.name for area in areas), "all"]:
        fates = Counter(r.fate for r in results if name in {"all", r.area.name})
        noticed = fates["killed"] + fates["hung"]
        judged = noticed + fates["survived"]
        score = f"{100 * noticed / judged:.1f}%" if judged else "-"
        print(f"{name:<20}" + "".join(f"{fates[fate]:>11}" for fate in FATES) + f"{score:>8}")
    print("\nscore: killed or hung, of these and the survivors")
    for line in _rules_without_a_line():
        print(f"equivalents.py: no line of the source matches {line!r} any more")


def _rules_without_a_line() -> list[str]:
    """Return the patterns of rules that cover nothing since the source was changed."""
    paths = {path for area in AREAS for path in files(ROOT, area)}
    texts = [(path, (ROOT / path).read_text("utf-8")) for path in sorted(paths)]
    return [rule.line for rule in RULES if not rule.matches_a_line(texts)]


if __name__ == "__main__":
    main()
