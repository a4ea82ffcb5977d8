"""Processor time of what an administrator types most: version, help and completion.

Prints the least of some runs in seconds, and the same of an interpreter that does nothing, because
both grow on a machine that is busy.

    python benchmarks/command_line.py
"""

import os
import resource
import subprocess
import sys
from pathlib import Path

WALLTIMED = Path(sys.executable).with_name("walltimed")
RUNS = 7
BOUND_SECONDS = 0.25


def completing(line: str) -> dict[str, str]:
    """The environment in which bash asks for completions of ``line``."""
    words = str(line.count(" "))
    return {"_WALLTIMED_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": words}


CASES: dict[str, tuple[list[str], dict[str, str]]] = {
    "python -c pass": ([sys.executable, "-c", "pass"], {}),
    "python -c 'import typer'": ([sys.executable, "-c", "import typer"], {}),
    "walltimed --version": ([str(WALLTIMED), "--version"], {}),
    "walltimed --help": ([str(WALLTIMED), "--help"], {}),
    "walltimed se<TAB>": ([str(WALLTIMED)], completing("walltimed se")),
    "walltimed serve --<TAB>": ([str(WALLTIMED)], completing("walltimed serve --")),
}


def processor_seconds(command: list[str], environment: dict[str, str]) -> float:
    """Processor time of the child in seconds, its start included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=os.environ | environment, stdout=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure and print."""
    for name, (command, environment) in CASES.items():
        least = min(processor_seconds(command, environment) for _ in range(RUNS))
        verdict = "" if least <= BOUND_SECONDS else f"  more than {BOUND_SECONDS} s"
        print(f"{name:26} {least:6.3f} s{verdict}")


if __name__ == "__main__":
    main()
