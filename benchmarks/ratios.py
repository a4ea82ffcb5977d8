"""One JSON for a run of a benchmark, and a page of ratios over commits from what is kept.

    make benchmark BENCHMARK="serving --rounds 3"
    .venv/bin/python benchmarks/ratios.py run benchmarks/serving.py --rounds 3
    .venv/bin/python benchmarks/ratios.py page build/ratios.html

A run prints what it prints on standard error, and on standard output a line of JSON: benchmark,
arguments, commit, machine, and the ratios of its tables. ``make benchmark`` keeps the line of a run
that succeeds in results/runs.jsonl, and draws the page anew. Machines differ, and so does one
machine from hour to hour; both sides of a ratio were measured in turns. The page has the ratios of
results/runs.jsonl, and those of the tables that results/*.txt had at each commit.
"""

import html
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
RUNS = "results/runs.jsonl"
KEPT = ("results/serving.txt", "results/store.txt", "results/ingesting.txt")
"""Texts that begin with a table of ratios."""

WIDTH, HEIGHT, EDGE = 640, 150, 34
HEAD = """\
<!doctype html><html lang="en"><meta charset="utf-8"><title>Ratios over commits</title>
<style>body{font:16px sans-serif;max-width:44em;margin:2em auto;padding:0 1em}
svg{width:100%;height:auto}text{font-size:11px;fill:#444}</style>
<h1>Ratios over commits</h1><p>Each ratio compares two sides that were measured in turns on one
machine, the first by the second; the benchmark names them. The grey line is at 1.</p>"""

ROW = re.compile(r"^(\S.*?)\s{2,}.*?\b(\d[\d,]*\.\d+)x?$")
TIMES = re.compile(r"(?<![=>] )\b(\d[\d,]*\.\d+)x(?!\w)")
"""A ratio in a table with several columns of them."""

SENTENCE = re.compile(r"^ratio (\d[\d,]*\.\d+) \(median of \d+\)")


class Point(NamedTuple):
    """A ratio that was measured at a commit.

    Attributes:
        time: of the run or of the commit, in Unix seconds.
    """

    benchmark: str
    name: str
    commit: str
    time: float
    ratio: float


def ratios_of(text: str) -> dict[str, float]:
    """Return the ratios of the tables whose last column is called ratio, by row.

    A text may hold older runs below: the first table that has a row counts. A line of one word
    before a table, such as ``SQLite``, becomes a part of the names of its rows. A line such as
    ``ratio 1.02 (median of 5)`` is a ratio, too.
    """
    found: dict[str, float] = {}
    title, in_table = "", False
    for line in text.splitlines():
        row = _row(line.rstrip())
        if line.rstrip().endswith(" ratio"):
            in_table = True
        elif sentence := SENTENCE.match(line):
            found.setdefault("ratio", _number(sentence[1]))
        elif in_table and row:
            for name, ratio in row.items():
                found.setdefault(f"{title}{name}", ratio)
        elif line.startswith("$ ") and found:
            break
        else:
            in_table = in_table and bool(line.strip())
            title = f"{line.strip()}: " if re.fullmatch(r"\w+", line.strip()) else title
    return found


def _row(line: str) -> dict[str, float]:
    """Return the ratios of a row of a table, by the row's name; empty for another line."""
    name, _, rest = line.partition("  ")
    several = TIMES.findall(rest)
    if name and len(several) > 1:
        return {f"{name}, {place}": _number(each) for place, each in enumerate(several, 1)}
    row = ROW.match(line)
    return {row[1]: _number(row[2])} if row else {}


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def git(*words: str, root: Path = ROOT) -> str:
    """Return what git prints."""
    command = ["git", "-C", str(root), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def run(script: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Run a benchmark, print its record as JSON, and return it."""
    began = time.time()
    command = [sys.executable, script, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    sys.stderr.write(done.stdout)
    record = {
        "benchmark": Path(script).stem,
        "arguments": list(arguments),
        "commit": git("rev-parse", "--short=8", "HEAD").strip(),
        "changed": bool(git("status", "--porcelain", "--untracked-files=no").strip()),
        "time": round(began),
        "seconds": round(time.time() - began, 1),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "load": os.getloadavg()[0],
        "exit_code": done.returncode,
        "ratios": ratios_of(done.stdout),
        "lines": done.stdout.splitlines(),
    }
    print(json.dumps(record))
    return record


def keep(record: Mapping[str, Any], root: Path) -> None:
    """Add a run that succeeded to what is kept, and draw the page anew."""
    if record["exit_code"]:
        print("The run failed: it is not kept.", file=sys.stderr)
        return
    with (root / RUNS).open("a") as file:
        file.write(json.dumps(record) + "\n")
    print(f"Kept in {RUNS}.", file=sys.stderr)
    write_page(root, root / "build" / "ratios.html")


def write_page(root: Path, output: Path) -> None:
    """Write the page."""
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(page(root))
    print(f"The page is {output}.", file=sys.stderr)


def kept_points(root: Path) -> Iterator[Point]:
    """Yield the ratios that are kept: runs, and tables of the texts at each commit."""
    runs = root / RUNS
    for line in runs.read_text().splitlines() if runs.exists() else ():
        record = json.loads(line)
        for name, ratio in record["ratios"].items():
            yield Point(record["benchmark"], name, record["commit"], record["time"], ratio)
    for path in KEPT:
        for entry in git("log", "--format=%h %ct", "--", path, root=root).splitlines():
            commit, seconds = entry.split()
            if git("ls-tree", "--name-only", commit, path, root=root):
                text = git("show", f"{commit}:{path}", root=root)
                for name, ratio in ratios_of(text).items():
                    yield Point(Path(path).stem, name, commit, float(seconds), ratio)


def page(root: Path) -> str:
    """Return the page: a picture for each ratio, by commit."""
    series: dict[tuple[str, str], list[Point]] = {}
    for point in sorted(kept_points(root), key=lambda each: each.time):
        series.setdefault((point.benchmark, point.name), []).append(point)
    parts = [HEAD]
    for benchmark in sorted({benchmark for benchmark, _ in series}):
        parts.append(f"<h2>{html.escape(benchmark)}</h2>")
        for (of, name), points in series.items():
            if of == benchmark:
                parts.append(f"<h3>{html.escape(name)}</h3>{picture(points)}")
    return "\n".join(parts) + "\n</html>\n"


def picture(points: Sequence[Point]) -> str:
    """Return a curve of ratios in the order of time, with the commit below each point."""
    top = 1.3 * max(1.0, *(point.ratio for point in points))
    step = (WIDTH - 2 * EDGE) / max(1, len(points) - 1)
    places = [
        (EDGE + step * number, (HEIGHT - EDGE) * (1 - point.ratio / top))
        for number, point in enumerate(points)
    ]
    one = (HEIGHT - EDGE) * (1 - 1 / top)
    curve = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    marks = "".join(
        f"<circle cx='{x:.1f}' cy='{y:.1f}' r='3' fill='#1f5fa8'/>"
        f"<text x='{x:.1f}' y='{max(11, y - 7):.1f}' text-anchor='middle'>{point.ratio:g}</text>"
        f"<text x='{x:.1f}' y='{HEIGHT - 8}' text-anchor='middle'>"
        f"{html.escape(point.commit)}</text>"
        for (x, y), point in zip(places, points, strict=True)
    )
    return (
        f"<svg viewBox='0 0 {WIDTH} {HEIGHT}' role='img'>"
        f"<line x1='{EDGE}' x2='{WIDTH - EDGE}' y1='{one:.1f}' y2='{one:.1f}' stroke='#999'/>"
        f"<polyline points='{curve}' fill='none' stroke='#1f5fa8'/>{marks}</svg>"
    )


def main() -> None:
    """Run a benchmark, or write the page."""
    match sys.argv[1:]:
        case ["run", script, *arguments]:
            sys.exit(run(script, arguments)["exit_code"])
        case ["keep", name, *arguments]:
            record = run(f"benchmarks/{name}.py", arguments)
            keep(record, ROOT)
            sys.exit(record["exit_code"])
        case ["page", output]:
            write_page(ROOT, Path(output))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
