"""Processor time of compiling all methods and policies.

    python benchmarks/compiling.py [--literal-types]

Everything is compiled into an empty directory. With --literal-types parts are compiled anew for
each constant that they are called with, as numba does by itself.
"""

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from predictors import compiled
from service.cli.warming import METHODS, OTHERS


def measure() -> None:
    """Compile each part of a warm-up, and print its functions and seconds."""
    began = time.process_time()
    for part, compile_part in (METHODS | OTHERS).items():
        before, at = compiled.compilations(), time.process_time()
        compile_part()
        functions = compiled.compilations() - before
        print(f"{part:<28}{functions:>6}{time.process_time() - at:>8.1f} s")
    print(f"{'all':<28}{compiled.compilations():>6}{time.process_time() - began:>8.1f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--literal-types", action="store_true")
    with TemporaryDirectory() as directory:
        empty = Path(directory)
        compiled.roots_of = lambda source: [empty / source.stem]
        if parser.parse_args().literal_types:
            compiled.with_plain_types = lambda template: template
        measure()
