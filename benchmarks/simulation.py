"""Jobs per second of the simulator on whole real traces, one core, against its goals.

    python benchmarks/simulation.py [TRACES] [--json] [--in-the-loop]

TRACES is the directory with the logs of the Parallel Workloads Archive. With --in-the-loop only
the simulations whose scheduler asks a method are run. Time is that of the
processor, the best of three; compilation and reading are told apart. The peers' figures were
measured on a machine of this kind: pyss EASY 2,170 jobs/s on SDSC-SP2 and conservative 600,
Batsim 1,200, AccaSim 540, Alea 370.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from simulator.scheduling.estimates import Estimates
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import simulate, warm_up
from simulator.scheduling.workload import first_jobs, prepare
from simulator.traces.swf import read_swf

TRACES = Path(__file__).parents[2] / "shared/traces"

FILES = {
    "SDSC-SP2": "SDSC-SP2-1998-4.2-cln.swf.gz",
    "CTC-SP2": "CTC-SP2-1996-3.1-cln.swf.gz",
    "HPC2N": "HPC2N-2002-2.2-cln.swf.gz",
    "Curie": "CEA-Curie-2011-2.1-cln.swf.gz",
}


@dataclass(frozen=True)
class Case:
    """A simulation with its goal."""

    trace: str
    rules: Mapping[str, Any]
    estimates: str = "requested"
    limit: int | None = None
    jobs_per_second: float | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Measured:
    """Result of a simulation."""

    case: Case
    jobs: int
    seconds: float
    reached: bool
    rate: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", self.jobs / self.seconds)


EASY = {"policy": "easy"}
SJBF = {"policy": "easy-sjbf"}
CONSERVATIVE = {"policy": "conservative"}

CASES = [
    *(Case(trace, {"policy": "fcfs"}) for trace in FILES),
    Case("SDSC-SP2", EASY, jobs_per_second=170_000),
    Case("CTC-SP2", EASY),
    Case("HPC2N", EASY),
    Case("Curie", EASY, seconds=4.0),
    Case("SDSC-SP2", {**EASY, "events": "sequential"}),
    *(Case(trace, SJBF) for trace in FILES),
    Case("SDSC-SP2", {**EASY, "order": "wfp"}),
    Case("SDSC-SP2", EASY, estimates="max-usage", jobs_per_second=50_000),
    Case("SDSC-SP2", EASY, estimates="least-cost"),
    Case("SDSC-SP2", EASY, estimates="attention"),
    Case("CTC-SP2", EASY, estimates="max-usage"),
    Case("SDSC-SP2", CONSERVATIVE, jobs_per_second=50_000),
    Case("CTC-SP2", CONSERVATIVE, jobs_per_second=20_000),
    Case("HPC2N", CONSERVATIVE),
    Case("Curie", CONSERVATIVE),
    Case("SDSC-SP2", {**CONSERVATIVE, "compression": "keep"}),
    Case("SDSC-SP2", {**CONSERVATIVE, "compression": "replan"}),
    *(
        Case(
            "CTC-SP2",
            {"policy": "fcfs-pinned", "pinning": pinning},
            estimates=estimates,
            limit=5000,
            seconds=10.0,
        )
        for estimates in ("requested", "max-usage")
        for pinning in (3600, 7200)
    ),
]

MEMORY_GOAL = 150.0
"""MB above the imports, for EASY on Curie."""


def measure(case: Case, traces: Path) -> Measured:
    """Simulate three times; the best counts."""
    warm_up()
    workload = prepare(first_jobs(read_swf(traces / FILES[case.trace]), case.limit))
    times = []
    for _ in range(3):
        began = time.process_time()
        simulate(workload, Semantics(**case.rules), Estimates.named(case.estimates))
        times.append(time.process_time() - began)
    seconds = min(times)
    reached = len(workload) / seconds >= (case.jobs_per_second or 0) and seconds <= (
        case.seconds or seconds
    )
    return Measured(case, len(workload), seconds, reached)


def compile_seconds() -> tuple[float, float]:
    """Processor seconds of the first use with an empty cache, and with a filled one."""
    with TemporaryDirectory() as cache:
        code = (
            "import time; from pathlib import Path; from predictors import compiled; "
            f"compiled.roots_of = lambda source: [Path({cache!r}, source.stem)]; "
            "from simulator.scheduling.simulate import warm_up; "
            "began = time.process_time(); warm_up(); print(time.process_time() - began)"
        )
        runs = [
            subprocess.run(
                [sys.executable, "-c", code],
                env={"PATH": ""},
                capture_output=True,
                text=True,
                check=True,
            )
            for _ in range(2)
        ]
    return float(runs[0].stdout), float(runs[1].stdout)


def memory_of_easy_on_curie(traces: Path) -> tuple[float, float]:
    """MB above the imports: at the end, and at the most, reading included."""
    code = f"""
import re
from pathlib import Path
from simulator.scheduling.estimates import Estimates
from simulator.scheduling.simulate import simulate, warm_up
from simulator.scheduling.semantics import Semantics
from simulator.traces.swf import read_swf
from simulator.scheduling.workload import first_jobs, prepare

def resident(what):
    status = Path("/proc/self/status").read_text()
    return int(re.search(what + r":\\s+(\\d+)", status).group(1)) * 1024 / 1e6

warm_up()
Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
before = resident("VmRSS")
workload = prepare(read_swf({str(traces / FILES["Curie"])!r}))
schedule = simulate(workload, Semantics(), Estimates.named("requested"))
print(resident("VmRSS") - before, resident("VmHWM") - before)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    now, most = run.stdout.split()
    return float(now), float(most)


def line(measured: Measured) -> str:
    """A row of the table."""
    case = measured.case
    rules = " ".join(str(rule) for rule in case.rules.values())
    goal = "-"
    if case.jobs_per_second:
        goal = f">= {case.jobs_per_second:,.0f}/s {'reached' if measured.reached else 'MISSED'}"
    if case.seconds:
        goal = f"<= {case.seconds:g} s {'reached' if measured.reached else 'MISSED'}"
    return (
        f"{case.trace:10}{rules:26}{case.estimates:11}{measured.jobs:>9,}"
        f"{measured.seconds:>9.2f}{measured.rate:>12,.0f}  {goal}"
    )


def main() -> None:
    """Measure everything and print it."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("traces", type=Path, nargs="?", default=TRACES)
    arguments.add_argument("--json", action="store_true")
    arguments.add_argument("--in-the-loop", action="store_true")
    options = arguments.parse_args()
    if options.in_the_loop:
        for case in CASES:
            if case.estimates != "requested" and not case.limit:
                print(line(measure(case, options.traces)), flush=True)
        return
    cold, warm = compile_seconds()
    rows = []
    if not options.json:
        print(f"compilation {cold:.1f} s once, then {warm:.2f} s from the cache\n")
        print(
            f"{'trace':10}{'rules':26}{'estimates':11}{'jobs':>9}{'CPU s':>9}{'jobs/s':>12}  goal"
        )
    for case in CASES:
        rows.append(measure(case, options.traces))
        if not options.json:
            print(line(rows[-1]), flush=True)
    now, most = memory_of_easy_on_curie(options.traces)
    if options.json:
        memory = {"after": now, "peak": most, "goal": MEMORY_GOAL}
        document = {"compile": [cold, warm], "cases": [asdict(row) for row in rows]}
        print(json.dumps({**document, "memory_mb": memory}, indent=2))
    else:
        print(
            f"\nEASY on Curie: {now:.0f} MB above the imports, {most:.0f} MB at the most, ", end=""
        )
        print(f"with the reading of the log; goal {MEMORY_GOAL:.0f} MB")


if __name__ == "__main__":
    main()
