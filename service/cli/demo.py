"""``walltimed demo``: a service, a trace played to it, a table, and what to try next.

The trace is moved so that it ends in the past week. Then short jobs of the same users come as on
a busy day, are scheduled by EASY backfilling beforehand, and start and end as the clock goes on.
"""

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace as with_values
from importlib.resources import as_file, files
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from predictors.base import DEFAULT_METHOD
from predictors.jobs import Completion
from simulator.cli.players import PrivateService, RemotePlayer, private_service, private_settings
from simulator.cli.replay import default_methods, played_log
from simulator.cli.results import print_tables
from terminal.console import err, out
from terminal.options import Limit
from terminal.progress import progress_bar

if TYPE_CHECKING:
    from simulator.cli.replay import PlayedLog
    from simulator.replay.method_spec import MethodSpec
    from simulator.replay.trace_replay import Replay
    from simulator.scheduling.busy_day import Day
    from terminal.client import Client

PORT = 8580
"""The port on which the demo listens, if the port is free."""

QUIET = {"WALLTIMED_LOG_LEVEL": "error"}
"""Settings of the service: that it compiles forecasts in the background is no warning here."""

WEEK = 7 * 86400.0

SNAPSHOT_SECONDS, STEP_SECONDS = 5.0, 1.0

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
    from simulator.reports.method_summary import summarise, summary_table
    from terminal.client import Client

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
    from simulator.traces.completions import RecordedLog
    from simulator.traces.swf import read_swf

    with as_file(files("simulator") / "data" / "synthetic.swf.gz") as file:
        log = played_log(RecordedLog(read_swf(file)), file.name, limit)
    return with_values(log, runs=moved_to_today(log.runs, time.time()))


def play(log: "PlayedLog", client: "Client", specs: "list[MethodSpec]") -> "Replay":
    """Play the log with a progress bar."""
    from simulator.replay.trace_replay import replay

    answering_first = sorted(specs, key=lambda spec: spec.name != DEFAULT_METHOD)
    player = RemotePlayer(client, {spec.label: spec.name for spec in answering_first})
    with progress_bar("jobs") as progress:
        task = progress.add_task(log.name, total=len(log.runs))
        return replay(log.runs, player, progress=lambda jobs: progress.advance(task, jobs))


def serve_on(service: PrivateService, runs: Sequence[Completion]) -> None:
    """Play a busy day, print what to try, and serve until the user ends the command."""
    from simulator.scheduling.busy_day import Day, busy_day

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


def moved_to_today(runs: Sequence[Completion], now: float) -> list[Completion]:
    """Return the runs moved by whole weeks, so that the last ended in the week before ``now``."""
    last = max(run.end_time for run in runs)
    weeks = (now - last) // WEEK * WEEK
    return [later(run, weeks) for run in runs]


def later(run: Completion, seconds: float) -> Completion:
    """Return a run with all times moved by ``seconds``."""
    submission = replace(run.submission, submit_time=run.submission.submit_time + seconds)
    return replace(
        run,
        submission=submission,
        start_time=run.start_time + seconds,
        end_time=run.end_time + seconds,
    )


def play_on(client: "Client", day: "Day", stop: threading.Event) -> None:
    """Play the day on the real clock until ``stop``: send its submissions, runs and queues."""
    from simulator.scheduling.busy_day import BEFORE

    began = time.time()
    client.observe(*day.ended(0.0, began))
    for run in day.submitted(began - BEFORE, began):
        if run.end_time > began:
            client.predict(run.submission)
    hand_over(client, day, began)
    for since, now in moments(began, stop):
        for run in day.submitted(since, now):
            client.predict(run.submission)
        client.observe(*day.ended(since, now))
        if now // SNAPSHOT_SECONDS > since // SNAPSHOT_SECONDS:
            hand_over(client, day, now)


def moments(began: float, stop: threading.Event) -> Iterator[tuple[float, float]]:
    """Yield the begin and the end of each step of the clock, until ``stop``."""
    since = began
    while not stop.wait(STEP_SECONDS):
        now = time.time()
        yield since, now
        since = now


def hand_over(client: "Client", day: "Day", now: float) -> None:
    """Send the queue at ``now`` to the service."""
    client.call("PUT", "/v1/clusters/default/snapshot", day.queue(now))


def play_until(url: str, day: "Day", stop: threading.Event) -> None:
    """Run ``play_on`` in this thread, and end when the service does."""
    from terminal.client import Client, RemoteError

    try:
        with Client(url) as client:
            play_on(client, day, stop)
    except (ConnectionError, RemoteError) as error:
        if not stop.is_set():
            err.print(f"The demo's cluster has stopped: {error}")
