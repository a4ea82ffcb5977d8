"""Loads the service once and starts processes of it by forking, in a tenth of a second each.

Reads one line of settings as JSON for each process, which answers with its process id once it
accepts connections. What such a process runs is what `walltimed serve` runs.
"""

import gc
import json
import os
import signal
import sys

from service.http.app import create_app
from service.http.server import run
from service.metrics import Metrics
from service.settings import Settings
from service.worker.live_state import LiveState
from service.worker.processes import ForecastProcess


def announce(_address: str) -> None:
    sys.stdout.write(f"{os.getpid()}\n")
    sys.stdout.flush()


def warm_up() -> None:
    """What is compiled, described and collected now is so in every child."""
    create_app(Settings())
    LiveState(Settings(), Metrics()).warm_up_methods()
    # No life asks for a forecast, and starting its processes takes longer than a life.
    ForecastProcess.start = lambda _self: None
    gc.collect()
    gc.freeze()


def main() -> None:
    warm_up()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries the killed
    for line in sys.stdin:
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            run(Settings(**json.loads(line)), announce=announce)
            os._exit(0)


if __name__ == "__main__":  # the processes of forecasts import this module again
    main()
