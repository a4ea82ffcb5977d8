"""Asks a service, as the updater does, when the waiting jobs of a recorded play will start."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from fast_cluster import ClusterError, free_ports
from forecast_scores import HOUR, ToldStart
from installation import CLUSTER
from msgspec.structs import replace
from recorded_queues import QueueRecord, read_records

from predictors.jobs import Completion
from service.slurm_updater.machine import Machine, read_nodes
from service.slurm_updater.service_calls import HandOver
from service.slurm_updater.slurm import ControllerSettings, settings_in
from service.store import ReportedCompletion, open_store
from terminal.client import Client, ServiceUnreachableError

READY_SECONDS, FORECAST_SECONDS = 600.0, 600.0
"""Real seconds in which the service is to be ready, and to forecast a queue."""

SNAPSHOT = f"/v1/clusters/{CLUSTER}/snapshot"


class Asking:
    """A service that knows what ended before a play, and is told what ends in it.

    Args:
        client: of the service.
        site: configuration of the play's slurmctld.
        zero: Unix seconds at which second 0 of the play is for the service.
        runs: of the play, in the order of their ends; times are seconds of the play.
    """

    def __init__(
        self, client: Client, site: ControllerSettings, zero: float, runs: Sequence[Completion]
    ) -> None:
        self._client = client
        self._site = site
        self._zero = zero
        self._runs = list(runs)
        self._now = zero
        self._hand_over = HandOver(client, CLUSTER, clock=lambda: self._now)

    def ask(self, record: QueueRecord) -> dict[str, dict[str, Any]]:
        """Return the waiting jobs of a record by id, as the service shows them.

        Raises:
            ClusterError: the service refuses the queue, or does not forecast it in time.
        """
        self._now = self._zero + record.at
        self._tell_ends(record.at)
        machine = Machine(nodes=read_nodes(record.nodes), takes=self._site.takes)
        shown = None
        while shown is None:  # the first forecast may fail: its policy is compiled meanwhile
            obstacle = self._hand_over.send(self._site, record.shown(self._zero), machine)
            if obstacle:
                raise ClusterError(obstacle)
            shown = self._forecast()
        return {job["job_id"]: job for job in shown["jobs"] if job["state"] == "waiting"}

    def _tell_ends(self, at: float) -> None:
        ended = [run for run in self._runs if run.end_time <= at]
        self._runs = self._runs[len(ended) :]
        self._client.observe(*(shifted(run, self._zero) for run in ended))

    def _forecast(self) -> Any:
        """Return the queue once it is forecast; None if that failed."""
        end = time.monotonic() + FORECAST_SECONDS
        while time.monotonic() < end:
            answer = self._client.call("GET", f"{SNAPSHOT}?limit=100000")
            shown = msgspec.json.decode(answer)
            if shown["forecast_at"] is not None and abs(shown["forecast_at"] - self._now) < 0.01:
                return shown
            if shown["forecast_error"] is not None:
                return None
            time.sleep(0.02)
        raise ClusterError("The service did not forecast the queue in time.")


def told_starts(
    directory: Path,
    name: str,
    history: Sequence[Completion],
    runs: Mapping[str, Completion],
    method: str,
) -> Iterator[ToldStart]:
    """Yield the told starts of all waiting jobs of a play at all recorded times.

    Args:
        name: of the play.
        history: runs that had ended before; times are seconds of the play, below 0.
        runs: those of the play by Slurm's job id, likewise.
        method: the one that predicts.
    """
    records = list(read_records(directory / f"{name}.queue.gz"))
    if not records:
        raise ClusterError("No job waited in this play.")
    zero = float(int(time.time() - records[-1].at - HOUR))
    site = settings_in((directory / "site/config.txt").read_text())
    ends = sorted(runs.values(), key=lambda run: run.end_time)
    seen: set[str] = set()
    with a_service(history, zero, method) as client:
        asking = Asking(client, site, zero, ends)
        for record in records:
            planned, told = record.planned(), asking.ask(record)
            for job_id, run in runs.items():
                if job_id not in told or run.start_time < record.at:
                    continue
                is_first = job_id not in seen and record.at - run.submission.submit_time <= HOUR
                seen.add(job_id)
                yield ToldStart(
                    job=int(job_id),
                    at=record.at,
                    submit=run.submission.submit_time,
                    start=run.start_time,
                    slurm=planned.get(job_id),
                    **told_times(told[job_id], zero),
                    is_first=is_first,
                )


def told_times(shown: Mapping[str, Any], zero: float) -> dict[str, float | None]:
    """Return the start that walltimed shows and its interval, in seconds of the play."""
    interval = shown["start_interval"] or {}
    times = {"ours": shown["start_time"]} | {end: interval.get(end) for end in ("lower", "upper")}
    return {name: None if at is None else at - zero for name, at in times.items()}


@contextmanager
def a_service(history: Sequence[Completion], zero: float, method: str) -> Iterator[Client]:
    """Start a service that knows some runs; yield a client of it.

    Raises:
        ServiceUnavailableError: it does not become ready.
    """
    directory = Path(tempfile.mkdtemp(prefix="walltimed-"))
    url = f"sqlite:///{directory}/history.sqlite3"
    store = open_store(url)
    store.upgrade()
    list(store.store_reports(ReportedCompletion(completion=shifted(run, zero)) for run in history))
    store.close()
    (port,) = free_ports(1)
    settings = {"CONFIG": "", "METHOD": method, "TUNING": "off", "DATABASE_URL": url}
    environment = {**os.environ, **{f"WALLTIMED_{key}": each for key, each in settings.items()}}
    program = str(Path(sys.executable).with_name("walltimed"))
    with (directory / "log").open("wb") as log:
        service = subprocess.Popen(
            [program, "serve", "--port", str(port)], env=environment, stdout=log, stderr=log
        )
    try:
        with Client(f"http://127.0.0.1:{port}", token=None, timeout=60.0) as client:
            wait_until_ready(client)
            yield client
    finally:
        service.terminate()
        service.wait(60)
        shutil.rmtree(directory)


def wait_until_ready(client: Client) -> None:
    """Wait until a service that is just starting has read its history.

    Raises:
        ServiceUnavailableError: it does not become ready.
    """
    end = time.monotonic() + READY_SECONDS
    while True:
        try:
            return client.wait_until_ready(READY_SECONDS)
        except ServiceUnreachableError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def shifted(run: Completion, seconds: float) -> Completion:
    """Return a run that many seconds later."""
    job = replace(run.submission, submit_time=run.submission.submit_time + seconds)
    start, end = run.start_time + seconds, run.end_time + seconds
    return replace(run, submission=job, start_time=start, end_time=end)
