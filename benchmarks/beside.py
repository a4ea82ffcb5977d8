"""Compares the p99 of predictions over HTTP alone and beside other work, in turn."""

import argparse
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import cycle
from pathlib import Path
from statistics import median

from load import open_loop
from serving import OPEN_LOOP_RATE, Address, prepared, requests, the_service

HISTORY = 30_000

Work = Callable[[Address, str], AbstractContextManager[None]]
"""(address, token) -> work that goes on while it is entered."""


def p99_ratio(work: Work, options: argparse.Namespace, *, name: str) -> float:
    """The median ratio of p99 with ``work`` to p99 without; every round is printed."""
    ratios: list[float] = []
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "history.sqlite3"
        token = prepared(file, HISTORY)
        todo = requests(2000, HISTORY, token)
        with the_service(file) as service:

            def p99() -> float:
                times = open_loop(
                    service.address, cycle(todo), per_second=OPEN_LOOP_RATE, seconds=options.seconds
                )
                return times.percentile(99) * 1e3

            p99()
            for _ in range(options.rounds):
                without = p99()
                with work(service.address, token):
                    with_it = p99()
                ratios.append(with_it / without)
                print(f"p99 without {without:7.3f} ms, beside {name} {with_it:7.3f} ms", flush=True)
    print(f"ratio {median(ratios):.2f} (median of {len(ratios)})", end="")
    return median(ratios)


def options_of(description: str | None, *, rounds: int, seconds: float) -> argparse.Namespace:
    """The options of such a benchmark, with its defaults."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--seconds", type=float, default=seconds, help="of each measurement")
    return parser.parse_args()
