"""Plays logs under configurations through real Slurms, and prints how near the twin is.

    python research/fast_motion/likeness_table.py TRACES DIR [--root /opt/walltimed-test/slurm-sid]

Each row is two plays of five to eight minutes; those that are in DIR already are not made again, so
that the command goes on where it was ended. Two cores take up to four such commands at once, each
with rows of its own: --only takes a part of a row's name. --table prints what there is.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, Self

from recorded_plays import PLAYS, Likeness, RecordedPlay
from slurm_play import comparisons, said_of_installed, twins_of

from predictors.base import DEFAULT_METHOD
from simulator.scheduling.measures import bounded_slowdown
from simulator.traces.trace import Integers

HERE = Path(__file__).parent


class LogWindow(NamedTuple):
    """A window of a log, and the nodes it is played on.

    Attributes:
        log: name of the file.
        first_day: first day of the window.
        days: length of the window.
        nodes: lines of slurm.conf.
        share: nodes of the partition that shares nodes with the default one.
        queue: name of that partition, a queue of the log.
    """

    log: str
    first_day: float
    days: float
    nodes: str
    share: str
    queue: str


SP2, HPC2N = "SDSC-SP2-1998-4.2-cln.swf.gz", "HPC2N-2002-2.2-cln.swf.gz"
NODES_OF_SP2, NODES_OF_HPC2N = "NodeName=n[0-127] CPUs=1", "NodeName=n[0-119] CPUs=2"

WINDOWS = {
    "sp2-short": LogWindow(SP2, 113, 1.5, NODES_OF_SP2, "n[64-127]", "normal"),
    "sp2-long": LogWindow(SP2, 380, 3, NODES_OF_SP2, "n[64-127]", "express"),
    "hpc2n": LogWindow(HPC2N, 112, 3, NODES_OF_HPC2N, "n[60-119]", "fque"),
    "cm5": LogWindow(
        "LANL-CM5-1994-4.1-cln.swf.gz", 300, 3, "NodeName=n[0-31] CPUs=32", "n[16-31]",
        "scavenge_development",
    ),
    **{
        f"sp2-{day}": LogWindow(SP2, day, 3, NODES_OF_SP2, "n[64-127]", "express")
        for day in (284, 352, 548)
    },
    **{
        f"hpc2n-{day}": LogWindow(HPC2N, day, 3, NODES_OF_HPC2N, "n[60-119]", "fque")
        for day in (212, 416, 792)
    },
}  # fmt: skip

ALL = "PartitionName=all Nodes=ALL Default=YES OverSubscribe=EXCLUSIVE PriorityJobFactor=1"

PRIORITIES = """\
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightJobSize=500
PriorityWeightPartition=2000
PriorityMaxAge=1-0
"""

ORDER = f"PriorityType=priority/multifactor\n{ALL}\n"
"""Site factors order the queue."""

TODAY, REQUESTED, PREDICTED = "fifo", "order-by-request", "order-by-prediction"
SERVED = "order-by-service"

CONFIGURATIONS = {
    TODAY: f"PriorityType=priority/basic\n{ALL}\n",
    "shared": f"{PRIORITIES}{ALL}\n"
    "PartitionName={queue} Nodes={share} OverSubscribe=EXCLUSIVE PriorityJobFactor=10\n",
    "soft": f"SchedulerParameters=time_min_as_soft_limit\nPriorityType=priority/basic\n{ALL}\n",
    REQUESTED: ORDER,
    PREDICTED: ORDER,
    SERVED: f"{ORDER}PriorityWeightAge=604800\n",
}

COMMON = "SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nKillWait=30\nOverTimeLimit=5\n"

PREDICTIONS = {
    "soft": ("--time-min", "max-usage"),
    REQUESTED: ("--site-factor", "requested"),
    PREDICTED: ("--site-factor", DEFAULT_METHOD),
    SERVED: ("--installed", DEFAULT_METHOD),
}
"""What is predicted in a configuration, and by which method; a service runs no round here."""


class Row(NamedTuple):
    """A row of the table: what is played, and on which Slurm."""

    window: str
    configuration: str
    release: str

    @property
    def name(self) -> str:
        """Name of the row, and of its directory."""
        return "-".join(self)


CONFIGURATIONS_OF = {
    "installed": (TODAY, REQUESTED, PREDICTED, SERVED, "shared"),
    "later": (TODAY, REQUESTED, PREDICTED, "shared", "soft"),
}
"""What is played on each Slurm."""

ROWS = tuple(
    Row(window, configuration, release)
    for release, configurations in CONFIGURATIONS_OF.items()
    for configuration in configurations
    for window in WINDOWS
)


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
        str(options.traces / window.log), "--from", str(window.first_day),
        "--days", str(window.days), "--conf", str(conf), "-o", str(directory),
        "--most-jobs", "320", *PREDICTIONS.get(row.configuration, ()), *options.more,
    ]  # fmt: skip
    if row.release == "later":
        command += ["--root", str(options.root)]
    print(f"\n{row.name}", flush=True)
    subprocess.run(command, check=False)


def is_played(directory: Path) -> bool:
    """Whether a directory has both plays of a row."""
    file = directory / "play.json"
    return file.exists() and set(PLAYS) <= set(json.loads(file.read_text()))


def print_table(directory: Path) -> None:
    """Print the likeness of all plays that there are, and whether it reaches the goals."""
    print(Likeness.HEADS)
    for row in ROWS:
        if not is_played(directory / row.name):
            continue
        notes = json.loads((directory / row.name / "play.json").read_text())
        print(f"{row.name}, Slurm {notes[PLAYS[0]]['slurm']}")
        pairs = dict(comparisons(directory / row.name))
        for name, likeness in pairs.items():
            print(likeness.row(f"  {name}"))
        print(f"  twin {verdict(pairs)}")
        for name in PLAYS if "filter" in notes[PLAYS[0]] else ():
            print(f"  {name} play: {said_of_installed(notes[name])}")


def verdict(pairs: dict[str, Likeness]) -> str:
    """Return the twin's distance to the real one beside the real one's noise, on both plays."""
    noise = pairs["first, second play"]
    twins = [pairs[f"{name} play, twin"] for name in PLAYS]
    median = max(each.median for each in twins) / max(noise.median, 1)
    p90 = max(each.p90 for each in twins) / max(noise.p90, 1)
    mean = max(abs(each.other_wait / max(each.wait, 1) - 1) for each in twins)
    return f"at {median:.1f} and {p90:.1f} times the noise (median, p90); means within {mean:.1%}"


class Waits(NamedTuple):
    """Waits of a schedule: mean in minutes, mean bounded slowdown, longest in hours."""

    mean: float
    slowdown: float
    longest: float

    @classmethod
    def of(cls, play: RecordedPlay, start: Integers) -> Self:
        """Return the waits of a play's jobs that start at some times."""
        waits = start - play.submit
        slowdowns = bounded_slowdown(waits, play.end - play.start)
        return cls(float(waits.mean() / 60), float(slowdowns.mean()), float(waits.max() / 3600))

    def text(self) -> str:
        """Return the numbers of a row."""
        return f"{self.mean:10.1f}{self.slowdown:8.1f}{self.longest:7.1f} h"


def print_orders(directory: Path) -> None:
    """Print waits by the order of the queue, of each play and of its twin."""
    print(f"\n{'order of the queue':44}{'real':>16}{'':>11}{'twin':>16}")
    print(f"{'':44}" + 2 * f"{'mean, min':>10}{'slowd.':>8}{'longest':>9}")
    for row in sorted(ROWS, key=lambda row: (row.release, row.window)):
        is_ordered = row.configuration in {TODAY, REQUESTED, PREDICTED, SERVED}
        if not is_ordered or not is_played(directory / row.name):
            continue
        for name, play, starts in twins_of(directory / row.name):
            real, twin = Waits.of(play, play.start), Waits.of(play, starts)
            print(f"{f'{row.name}, {name}':44}{real.text()}{twin.text()}")


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
    for row in ROWS if not options.table else ():
        if options.only in row.name:
            play(row, options)
    print_table(options.output)
    print_orders(options.output)


if __name__ == "__main__":
    main()
