"""Plays logs under configurations through real Slurms, and prints how near the twin is.

    python research/fast_motion/likeness_table.py TRACES DIR [--root /opt/walltimed-test/slurm-sid]

Each row is two plays of five to ten minutes; those that are in DIR already are not made again, so
that the command goes on where it was ended. It needs two cores that are otherwise idle. --only
takes a part of a row's name; --table prints what there is.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from recorded_plays import Likeness
from slurm_play import PLAYS, comparisons

HERE = Path(__file__).parent


class LogWindow(NamedTuple):
    """A window of a log, and the nodes it is played on.

    Attributes:
        log: name of the file, or options of ``walltimed synth``.
        first_day: first day of the window.
        days: length of the window.
        nodes: lines of slurm.conf.
        share: nodes of the partition that shares nodes with the default one.
        queue: name of that partition, a queue of the log.
    """

    log: str | Sequence[str]
    first_day: float
    days: float
    nodes: str
    share: str
    queue: str


SYNTH = ["--jobs", "4000", "--seed", "7", "--processors", "64", "--load", "0.9", "--interactive"]

WINDOWS = {
    "synth": LogWindow(SYNTH, 4, 1.5, "NodeName=n[0-63] CPUs=1", "n[32-63]", "interactive"),
    "sp2-short": LogWindow(
        "SDSC-SP2-1998-4.2-cln.swf.gz", 113, 1.5, "NodeName=n[0-127] CPUs=1", "n[64-127]", "express"
    ),
    "sp2-long": LogWindow(
        "SDSC-SP2-1998-4.2-cln.swf.gz", 380, 3, "NodeName=n[0-127] CPUs=1", "n[64-127]", "express"
    ),
    "cm5": LogWindow(
        "LANL-CM5-1994-4.1-cln.swf.gz", 200, 1.5, "NodeName=n[0-31] CPUs=32", "n[16-31]",
        "development",
    ),
}  # fmt: skip

ALL = "PartitionName=all Nodes=ALL Default=YES OverSubscribe=EXCLUSIVE PriorityJobFactor=1"

PRIORITIES = """\
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightJobSize=500
PriorityWeightPartition=2000
PriorityMaxAge=1-0
"""

CONFIGURATIONS = {
    "fifo": f"PriorityType=priority/basic\n{ALL}\n",
    "shared": f"{PRIORITIES}{ALL}\n"
    "PartitionName={queue} Nodes={share} OverSubscribe=EXCLUSIVE PriorityJobFactor=10\n",
    "soft": f"SchedulerParameters=time_min_as_soft_limit\nPriorityType=priority/basic\n{ALL}\n",
}

COMMON = "SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nKillWait=30\nOverTimeLimit=5\n"

SOFT_METHOD = "max-usage"


class Row(NamedTuple):
    """A row of the table: what is played, and on which Slurm."""

    window: str
    configuration: str
    release: str

    @property
    def name(self) -> str:
        """Name of the row, and of its directory."""
        return "-".join(self)


def rows() -> Iterator[Row]:
    """Yield the rows, those that are most needed first."""
    for window in WINDOWS:
        yield Row(window, "fifo", "installed")
        yield Row(window, "shared", "installed")
        yield Row(window, "soft", "later")
    for window in WINDOWS:
        yield Row(window, "fifo", "later")
        yield Row(window, "shared", "later")


def log_of(window: LogWindow, traces: Path, directory: Path) -> Path:
    """Return the file of a log, which is made where it is synthetic."""
    if isinstance(window.log, str):
        return traces / window.log
    file = directory / "synthetic.swf.gz"
    if not file.exists():
        command = [sys.executable, "-m", "service.cli", "synth", *window.log, "-o", str(file)]
        subprocess.run(command, check=True)
    return file


def play(row: Row, options: argparse.Namespace) -> None:
    """Make the plays of a row that are not there yet."""
    window = WINDOWS[row.window]
    directory: Path = options.output / row.name
    directory.mkdir(parents=True, exist_ok=True)
    conf = directory / "slurm.conf"
    partitions = CONFIGURATIONS[row.configuration].format(queue=window.queue, share=window.share)
    conf.write_text(f"{COMMON}{window.nodes}\n{partitions}")
    command = [
        sys.executable, str(HERE / "slurm_play.py"),
        str(log_of(window, options.traces, options.output)), "--from", str(window.first_day),
        "--days", str(window.days), "--conf", str(conf), "-o", str(directory),
        "--most-jobs", "320", *options.more,
    ]  # fmt: skip
    if row.release == "later":
        command += ["--root", str(options.root)]
    if row.configuration == "soft":
        command += ["--time-min", SOFT_METHOD]
    print(f"\n{row.name}", flush=True)
    subprocess.run(command, check=False)


def print_table(directory: Path) -> None:
    """Print the likeness of all plays that there are, and whether it reaches the goals."""
    print(Likeness.HEADS)
    for row in rows():
        file = directory / row.name / "play.json"
        if not file.exists() or not set(PLAYS) <= set(notes := json.loads(file.read_text())):
            continue
        print(f"{row.name}, Slurm {notes[PLAYS[0]]['slurm']}")
        pairs = dict(comparisons(file.parent))
        for name, likeness in pairs.items():
            print(likeness.row(f"  {name}"))
        print(f"  twin {verdict(pairs)}")


def verdict(pairs: dict[str, Likeness]) -> str:
    """Return the twin's distance to the real one beside the real one's noise, on both plays."""
    noise = pairs["first, second play"]
    twins = [pairs[f"{name} play, twin"] for name in PLAYS]
    median = max(each.median for each in twins) / max(noise.median, 1)
    p90 = max(each.p90 for each in twins) / max(noise.p90, 1)
    mean = max(abs(each.other_wait / max(each.wait, 1) - 1) for each in twins)
    return f"at {median:.1f} and {p90:.1f} times the noise (median, p90); means within {mean:.1%}"


def main() -> None:
    """Make what is missing, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("traces", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--root", type=Path, default=Path("/opt/walltimed-test/slurm-sid"))
    parser.add_argument("--only", default="", metavar="PART")
    parser.add_argument("--table", action="store_true", help="make nothing")
    options, options.more = parser.parse_known_args()
    for row in rows() if not options.table else ():
        if options.only in row.name:
            play(row, options)
    print_table(options.output)


if __name__ == "__main__":
    main()
