"""Start-up as a whole: from the command line to the service, and what an idle worker holds.

    .venv/bin/python benchmarks/startup.py [--history 0 100000 1000000] [--first]

Processor time of `walltimed --version`; from the start of `walltimed serve` to ready, with an empty
history, after a warm-up, and (with `--first`) when everything has to be compiled; then, for each
length of the history, the time to ready and the memory of the worker. The container's times are
printed by `deploy/tests/test_image.py`, those of `make demo` by `time make demo EXIT=1` in a
fresh clone.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import scaling
from command_line import CASES, processor_seconds
from harness import prepared, the_service


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Variables that the started service sees."""
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]


class Start(NamedTuple):
    """Cost of a start until the service is ready.

    Attributes:
        seconds: from the command to ready.
        processor_seconds: processor time until then.
        megabytes: that the worker then holds.
    """

    seconds: float
    processor_seconds: float
    megabytes: float


def start(file: Path) -> Start:
    """Start a service on a history until it is ready, then end it."""
    began = time.perf_counter()
    with the_service(file, pinned=False) as server:
        seconds, process = time.perf_counter() - began, server.process_id
        return Start(seconds, scaling.processor_seconds(process), scaling.sizes_of(process)[0])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--history", type=int, nargs="+", default=[0, 100_000, 1_000_000])
    parser.add_argument("--first", action="store_true", help="also with nothing compiled")
    options = parser.parse_args()
    for name in ("walltimed --version", "walltimed --help"):
        print(
            f"{name}: {min(processor_seconds(*CASES[name]) for _ in range(3)):.3f} s of processor"
        )
    with tempfile.TemporaryDirectory() as directory:
        if options.first:
            # Another name of the processor: what was compiled for this one does not fit.
            with environment(NUMBA_CPU_NAME="generic", NUMBA_CACHE_DIR=f"{directory}/cache"):
                for which in ("first", "second"):
                    begun = start(Path(directory) / "compiling.sqlite3")
                    print(
                        f"serve, {which} time, nothing compiled before: "
                        f"ready after {begun.seconds:.1f} s"
                    )
        for runs in options.history:
            file = Path(directory) / f"{runs}.sqlite3"
            prepared(file, runs)
            start(file)
            starts = [start(file) for _ in range(3)]
            least = Start(*map(min, zip(*starts, strict=True)))
            print(
                f"serve, {runs:,} runs: ready after {least.seconds:.2f} s, "
                f"{least.processor_seconds:.2f} s of processor, "
                f"idle worker {least.megabytes:.0f} MB"
            )


if __name__ == "__main__":
    main()
