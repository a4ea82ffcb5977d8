"""Measures the start of the service, until it is ready, with a long history in the store.

    .venv/bin/python benchmarks/starting.py [--history 1000000] [--rounds 5]

A round has adopted a forest. What only loads the same modules is measured in turn, so that the
difference is what the history costs: opening the store, reading what can still change an answer,
and learning from it.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median

from harness import CLUSTER, prepared, the_service

from predictors.tuning.plan import TuningPlan
from service.settings import Settings
from service.store import open_store
from service.worker.tuning_rounds import run_due_rounds

MOST_SECONDS = 2.0
"""Beyond the imports."""


def seconds(action: Callable[[], None]) -> float:
    """Duration of a start in seconds."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def load_modules() -> None:
    """Start Python and import the service, the command line included, as `walltimed serve` does."""
    subprocess.run([sys.executable, "-c", "import service.cli.serve, service.http.app"], check=True)


def start(file: Path) -> float:
    """Seconds until the service says that it is ready; then it is stopped."""
    began = time.perf_counter()
    with the_service(file, pinned=False):
        return time.perf_counter() - began


def adopt_forest(file: Path) -> None:
    """Run a round that learns a forest from the newest completions.

    Raises:
        SystemExit: the round adopts none.
    """
    plan = TuningPlan(subjects=("forest",))
    with closing(open_store(f"sqlite:///{file}")) as store:
        for _ in run_due_rounds(store, Settings(), plan):
            pass
        if "forest" not in store.tunings.active().get(CLUSTER, {}):
            raise SystemExit("No round has adopted a forest.")


def main() -> None:
    """Measure both in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--history", type=int, default=1_000_000, help="completions, 4,000 at least"
    )
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "history.sqlite3"
        prepared(file, options.history)
        adopt_forest(file)
        load_modules()
        pairs = [(seconds(load_modules), start(file)) for _ in range(options.rounds)]
    imports, ready = (median(side) for side in zip(*pairs, strict=True))
    beyond = median(whole - part for part, whole in pairs)
    verdict = "reached" if beyond <= MOST_SECONDS else "missed"
    print(f"history of {options.history:,} completions, medians of {options.rounds} starts")
    print(f"imports {imports:.2f} s, ready after {ready:.2f} s")
    print(f"beyond the imports {beyond:.2f} s; goal {MOST_SECONDS:.0f} s {verdict}")


if __name__ == "__main__":
    main()
