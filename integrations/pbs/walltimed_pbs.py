#!/usr/bin/python3
"""Follows a PBS or Torque server: reports every run that ends, and hands its queue over.

    walltimed_pbs.py --cluster hill
    walltimed_pbs.py --without-queue --directory /var/spool/torque/server_priv/accounting

Beside the server and not in it; only reads, but for --extend. Python 3.6 or newer, standard
library only.
"""

import argparse
import os
import signal
import sys
import threading
import time

import walltimed_accounting
import walltimed_queue

TOKEN_FILE = "/etc/walltimed/pbs-token"  # noqa: S105 - where it is, not what it is


def parsed(arguments):
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", default="http://127.0.0.1:8580")
    parser.add_argument("--cluster", default="default")
    parser.add_argument(
        "--token-file",
        default=TOKEN_FILE if os.path.exists(TOKEN_FILE) else None,
        help=f"file with a token of scope ingest; {TOKEN_FILE} if there is one",
    )
    parser.add_argument("--once", action="store_true", help="do both once and end")
    add_log_options(parser.add_argument_group("the accounting log"))
    add_queue_options(parser.add_argument_group("the queue"))
    return parser.parse_args(arguments)


def add_log_options(group):
    """Add the options of the accounting log."""
    group.add_argument("--directory", default="/var/spool/pbs/server_priv/accounting")
    group.add_argument("--state", default="/var/lib/walltimed/pbs-accounting.json")
    group.add_argument(
        "--since", default=time.strftime("%Y%m%d"), help="first day to report, at the first start"
    )
    group.add_argument("--interval", type=float, default=5.0, help="seconds between looks")


def add_queue_options(group):
    """Add the options of the queue."""
    group.add_argument("--without-queue", action="store_true", help="for Torque: runs alone")
    group.add_argument(
        "--queue-interval", type=float, default=60.0, help="seconds between hand-overs"
    )
    group.add_argument("--timeout", type=float, default=30.0, help="seconds for each command")
    group.add_argument("--qstat", default=walltimed_queue.program("qstat"))
    group.add_argument("--pbsnodes", default=walltimed_queue.program("pbsnodes"))
    group.add_argument(
        "--depth", type=int, default=1, help="the server's backfill_depth: jobs with reservations"
    )
    group.add_argument(
        "--extend",
        action="append",
        metavar="QUEUE",
        default=[],
        help="extend walltimes of running jobs of this queue that will probably be cut, once a job",
    )
    group.add_argument("--extend-share", type=float, default=300.0, help="at most, in percent")
    group.add_argument(
        "--extend-delay", type=float, default=0.0, help="minutes by which others may start later"
    )
    group.add_argument("--extended", default="/var/lib/walltimed/pbs-extended.json")
    group.add_argument("--qalter", default=walltimed_queue.program("qalter"))


def main(arguments=None):
    """Follow log and queue until SIGTERM, each in a thread of its own."""
    options = parsed(arguments)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    codes = []
    handing_over = threading.Thread(
        target=lambda: codes.append(walltimed_queue.follow(options, stop)), daemon=True
    )
    if not options.without_queue:
        handing_over.start()
    codes.append(walltimed_accounting.follow(options, stop))
    if options.once and not options.without_queue:
        handing_over.join()
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
