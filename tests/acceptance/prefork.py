"""Loads the service once and starts processes of it by forking, in a tenth of a second each.

Reads one line of settings as JSON for each process and answers with its process id. What such a
process runs is what `walltimed serve` runs.
"""

import json
import os
import signal
import sys

from service.server import run
from service.settings import Settings


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries the killed
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            run(Settings(**json.loads(line)))
            os._exit(0)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()


main()
