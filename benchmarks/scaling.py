"""Measures more workers: processor time of predictions and completions, and memory.

    .venv/bin/python benchmarks/scaling.py [--workers 1 2 4] [--history 20000] [--predictions 4000]

The workers share one SQLite history. Processor time is that of all their processes together: it
hardly depends on who else uses the machine, and tells what more cores would bring. A prediction
costs one worker; a completion is stored by one and learned by each.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import msgspec
from harness import (
    CLUSTER,
    Server,
    closed_loop,
    family,
    history,
    is_ready,
    megabytes,
    post,
    prepared,
    requests,
    serving,
)

TICKS = os.sysconf("SC_CLK_TCK")
CONNECTIONS = 16
BATCH = 500
SETTLING_SECONDS = 3.0
"""What was put off, recording and asking the other methods, is done within them."""


def processor_seconds(process_id: int) -> float:
    """Processor time of a process and its descendants, in seconds."""
    used = 0
    for each in family(process_id):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        used += int(fields[11]) + int(fields[12])
    return used / TICKS


def sizes_of(process_id: int) -> list[float]:
    """Megabytes of a process and of all that it has started, largest first."""
    return sorted(map(megabytes, family(process_id)), reverse=True)


def completions(jobs: int, after: int, token: str) -> list[bytes]:
    """Completions in batches that follow the history."""
    runs = [
        {
            **{
                name: value
                for name, value in msgspec.to_builtins(run.submission).items()
                if value is not None
            },
            "cluster": CLUSTER,
            "start_time": run.start_time,
            "end_time": run.end_time,
        }
        for run in history(jobs, first=after)
    ]
    return [
        post(
            "/v1/completions",
            msgspec.json.encode({"completions": runs[place : place + BATCH]}),
            token=token,
        )
        for place in range(0, jobs, BATCH)
    ]


def cost(server: Server, posts: list[bytes], *, items: int) -> float:
    """Microseconds of processor time for each of ``items``, what is put off included."""
    before = processor_seconds(server.process_id)
    closed_loop(server.address, posts, connections=min(CONNECTIONS, len(posts)))
    time.sleep(SETTLING_SECONDS)
    return 1e6 * (processor_seconds(server.process_id) - before) / items


def measure(file: Path, token: str, workers: int, options: argparse.Namespace) -> str:
    """A row of the table."""
    walltimed = str(Path(sys.executable).with_name("walltimed"))
    command = (walltimed, "serve", "-p", "0", "-d", f"sqlite:///{file}", "-w", str(workers))
    with serving(*command, pinned=False) as server:
        while not all(is_ready(server.address) for _ in range(4 * workers)):
            time.sleep(0.2)
        asked = requests(options.predictions, options.history, token)
        closed_loop(server.address, asked[:500], connections=CONNECTIONS)
        predicting = cost(server, asked, items=len(asked))
        jobs = options.predictions
        learning = cost(
            server,
            completions(jobs, options.history + workers * jobs, token),
            items=jobs,
        )
        sizes = sizes_of(server.process_id)
    return (
        f"{workers:7} {predicting:17.0f} {learning:17.0f} "
        f"{median(sizes[: max(workers, 1)]):17.0f} {sum(sizes):13.0f}"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--history", type=int, default=20_000, help="completions")
    parser.add_argument("--predictions", type=int, default=4_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "history.sqlite3"
        token = prepared(file, options.history)
        print(f"history of {options.history:,} completions, one SQLite file")
        print("workers  us a prediction   us a completion   MB of a worker   MB in all")
        for workers in options.workers:
            print(measure(file, token, workers, options), flush=True)


if __name__ == "__main__":
    main()
