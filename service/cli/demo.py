"""``walltimed demo``: a service, a trace played to it, a table, and what to try next."""

import socket
import threading
import time
from contextlib import suppress
from dataclasses import replace
from importlib.resources import as_file, files
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from predictors.base import DEFAULT_METHOD
from predictors.jobs import DEFAULT_CLUSTER
from simulator.cli.console import out, print_tables, progress_bar
from simulator.cli.options import Limit, OnError
from simulator.cli.players import PrivateService, private_service, private_settings
from simulator.cli.replay import default_methods, read_log

if TYPE_CHECKING:
    from collections.abc import Sequence

    from predictors.jobs import Completion
    from simulator.cli.replay import PlayedLog
    from simulator.replay.method_spec import MethodSpec
    from simulator.replay.remote import Client
    from simulator.replay.trace_replay import Replay

PORT = 8580
"""The port on which the demo listens, if the port is free."""

QUIET = {"WALLTIMED_LOG_LEVEL": "error"}
"""Settings of the service: that it compiles forecasts in the background is no warning here."""

NEXT = """\

The service runs until ctrl-C. It now knows the trace's users. Ask it about a job of user 1:

  curl -s {url}/v1/predictions --json '{{"user": "1", "requested_walltime": 36000}}'
  curl -s {url}/v1/methods
  curl -s {url}/v1/users/1/accuracy
  curl -s {url}/metrics

`walltimed serve` starts a service that keeps its history; see README.md for the next steps.
Jobs go on coming, as on a busy day of a small cluster. Look at it in a browser:

  {url}/\
"""


def demo(
    *,
    leave: Annotated[
        bool, typer.Option("--exit", help="End after the table; do not go on serving.")
    ] = False,
    port: Annotated[
        int | None,
        typer.Option(
            envvar="WALLTIMED_PORT",
            min=1,
            max=65535,
            help="Port to listen on. Default: 8580, or any free port if that is taken.",
        ),
    ] = None,
    limit: Limit = None,
) -> None:
    """Start a service with an empty store, play a sample trace to it, print the accuracies.

    The history is an SQLite file in a temporary directory, which is removed at the end.

    For example:

        walltimed demo --port 8600
        walltimed demo --exit
    """
    from simulator.replay.method_spec import MethodSpec
    from simulator.replay.remote import Client
    from simulator.reports.method_summary import summarise, summary_table

    specs = [MethodSpec.parse(text) for text in default_methods(None)]
    log = sample(limit)
    with (
        TemporaryDirectory(prefix="walltimed-demo-") as directory,
        private_service(
            "--port",
            str(free_port() if port is None else port),
            settings=private_settings(specs, directory) | QUIET,
        ) as service,
        Client(service.url) as client,
    ):
        client.wait_until_ready()
        out.print(f"walltimed listens on {service.url}, with an empty history.", soft_wrap=True)
        played = play(log, client, specs)
        order = [spec.label for spec in specs]
        summaries = sorted(summarise(played), key=lambda each: order.index(each.method))
        print_tables(
            f"{len(log.runs):,} jobs of a synthetic trace were played to it in simulated time "
            f"({played.seconds:.1f} s):\n\n{summary_table(summaries, wide=False)}"
        )
        if not leave:
            serve_on(service, log.runs)


def sample(limit: int | None) -> "PlayedLog":
    """Return the shipped trace, or its first ``limit`` jobs, moved to end in the past week."""
    from service.cli.demo_cluster import moved_to_today

    with as_file(files("simulator") / "data" / "synthetic.swf.gz") as file:
        log = read_log(str(file), limit, [], OnError.REFUSE, DEFAULT_CLUSTER)
    return replace(log, runs=moved_to_today(log.runs, time.time()))


def play(log: "PlayedLog", client: "Client", specs: "list[MethodSpec]") -> "Replay":
    """Play the log with a progress bar."""
    from simulator.replay.remote import RemotePlayer
    from simulator.replay.trace_replay import replay

    answering_first = sorted(specs, key=lambda spec: spec.name != DEFAULT_METHOD)
    player = RemotePlayer(client, {spec.label: spec.name for spec in answering_first})
    with progress_bar("jobs") as progress:
        task = progress.add_task(log.name, total=len(log.runs))
        return replay(log.runs, player, progress=lambda jobs: progress.advance(task, jobs))


def serve_on(service: PrivateService, runs: "Sequence[Completion]") -> None:
    """Play a busy day, print what to try, and serve until the user ends the command."""
    from service.cli.demo_cluster import Day, busy_day, play_until

    stop = threading.Event()
    day = Day(busy_day(runs, time.time()))
    player = threading.Thread(target=play_until, args=(service.url, day, stop), daemon=True)
    player.start()
    out.print(NEXT.format(url=service.url), soft_wrap=True)
    try:
        with suppress(KeyboardInterrupt):
            service.wait()
    finally:
        stop.set()
        player.join()


def free_port() -> int:
    """Return the usual port, or 0 (any free port) if the usual port is taken."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", PORT))
        except OSError:
            return 0
    return PORT
