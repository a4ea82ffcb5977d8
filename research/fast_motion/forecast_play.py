"""Asks a service when the waiting jobs of a recorded play will start."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
from fast_cluster import ClusterError, free_ports
from forecast_scores import HOUR, ToldStart, coverage_by_promise, table_of, write_told
from installation import CLUSTER, Window, run_of
from msgspec.structs import replace
from recorded_plays import played_in, rows_in
from recorded_queues import PbsQueueRecord, QueueRecord, read_records

from predictors.jobs import Completion, Submission
from service.slurm_updater.machine import Machine, read_nodes
from service.slurm_updater.service_calls import HandOver
from service.slurm_updater.slurm import ControllerSettings
from service.store import ReportedCompletion, open_store
from terminal.client import Client, ServiceUnreachableError

STATES_OF_PBS = {"0": "COMPLETED", "-29": "TIMEOUT"}
"""States of runs by exit status."""

READY_SECONDS, FORECAST_SECONDS = 600.0, 600.0
"""Real seconds in which the service is to be ready, and to forecast a queue."""

SNAPSHOT = f"/v1/clusters/{CLUSTER}/snapshot"


AnyQueueRecord = QueueRecord | PbsQueueRecord


class Asking(Protocol):
    """Hands a recorded queue to a service, as the program beside the resource manager does."""

    def send(self, client: Client, record: Any, zero: float) -> str | None:
        """Send a record; return the obstacle, if there is one.

        Args:
            record: of the kind of the resource manager.
            zero: Unix seconds at which second 0 of the play is for the service.
        """


class AskingAsUpdater:
    """Hands over as the updater of Slurm does.

    Args:
        site: configuration of the play's slurmctld.
    """

    def __init__(self, site: ControllerSettings) -> None:
        self._site = site

    def send(self, client: Client, record: QueueRecord, zero: float) -> str | None:
        """Send what squeue and sinfo showed."""
        machine = Machine(nodes=read_nodes(record.nodes), takes=self._site.takes)
        hand_over = HandOver(client, CLUSTER)
        return hand_over.send(self._site, record.shown(zero), machine, taken_at=zero + record.at)


class AskingAsFollower:
    """Hands over as the follower of PBS does.

    Args:
        submitted: jobs of the log, by their ids in the play.
    """

    def __init__(self, submitted: Mapping[str, Submission]) -> None:
        self._submitted = submitted

    def send(self, client: Client, record: PbsQueueRecord, zero: float) -> str | None:
        """Send what qstat and pbsnodes showed."""
        client.call("PUT", SNAPSHOT, record.shown(zero, self._submitted))
        return None


class Told:
    """A service that knows what ended before a play, and is told what ends in it.

    Args:
        client: of the service.
        asking: hands queues over.
        zero: Unix seconds at which second 0 of the play is for the service.
        runs: of the play, in the order of their ends; times are seconds of the play.
    """

    def __init__(
        self, client: Client, asking: Asking, zero: float, runs: Sequence[Completion]
    ) -> None:
        self._client = client
        self._asking = asking
        self._zero = zero
        self._runs = list(runs)

    def ask(self, record: AnyQueueRecord) -> dict[str, dict[str, Any]]:
        """Return the waiting jobs of a record by id, as the service shows them.

        Raises:
            ClusterError: the service refuses the queue, or does not forecast it in time.
        """
        ended = [run for run in self._runs if run.end_time <= record.at]
        self._runs = self._runs[len(ended) :]
        self._client.observe(*(shifted(run, self._zero) for run in ended))
        shown = None
        while shown is None:  # the first forecast may fail: its policy is compiled meanwhile
            obstacle = self._asking.send(self._client, record, self._zero)
            if obstacle:
                raise ClusterError(obstacle)
            shown = self._forecast(self._zero + record.at)
        return {job["job_id"]: job for job in shown["jobs"] if job["state"] == "waiting"}

    def _forecast(self, now: float) -> Any:
        """Return the queue once it is forecast; None if that failed."""
        end = time.monotonic() + FORECAST_SECONDS
        while time.monotonic() < end:
            answer = self._client.call("GET", f"{SNAPSHOT}?limit=100000")
            shown = msgspec.json.decode(answer)
            if shown["forecast_at"] is not None and abs(shown["forecast_at"] - now) < 0.01:
                return shown
            if shown["forecast_error"] is not None:
                return None
            time.sleep(0.02)
        raise ClusterError("The service did not forecast the queue in time.")


def told_starts(
    records: Sequence[AnyQueueRecord],
    asking: Asking,
    history: Sequence[Completion],
    runs: Mapping[str, Completion],
    method: str,
) -> Iterator[ToldStart]:
    """Yield the told starts of all waiting jobs of a play at all recorded times.

    Args:
        records: queues of the play.
        asking: hands them over.
        history: runs that had ended before; times are seconds of the play, below 0.
        runs: those of the play by the resource manager's job id, likewise.
        method: the one that predicts.
    """
    if not records:
        raise ClusterError("No job waited in this play.")
    zero = float(int(time.time() - records[-1].at - HOUR))
    ends = sorted(runs.values(), key=lambda run: run.end_time)
    seen: set[str] = set()
    with a_service(history, zero, method) as client:
        service = Told(client, asking, zero, ends)
        for record in records:
            planned, told = record.planned(), service.ask(record)
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


Runs = Mapping[str, Completion]


class PlayedLog(NamedTuple):
    """The log of a play.

    Attributes:
        window: that is played.
        logged: all runs of the log, on the clock of the play.
        cpus: of each node, which jobs take whole.
    """

    window: Window
    logged: Sequence[Completion]
    cpus: int = 1


class Means(NamedTuple):
    """Names and calls by which the queue of a resource manager is handed over.

    Attributes:
        scheduler: its name.
        asking: returns, of the runs of a play by id, what hands queues over.
        kind: of its records.
        first_id: number of the first job of a play.
    """

    scheduler: str
    asking: Callable[[Runs], Asking]
    kind: type[QueueRecord] | type[PbsQueueRecord]
    first_id: int = 1


def score_forecasts(directory: Path, log: PlayedLog, method: str, means: Means) -> None:
    """Ask a service about the recorded queues, and print how near the told starts came.

    Args:
        directory: of the plays.
        log: that was played.
        method: that predicts.
        means: of the resource manager.
    """
    numbers = log.window.workload.trace.job.tolist()
    of_job = {number: run.submission for number, run in zip(numbers, log.logged, strict=True)}
    history = [as_taken(run, log.cpus) for run in log.logged if run.end_time <= 0]
    for name in played_in(json.loads((directory / "play.json").read_text())):
        rows = enumerate(rows_in(directory / f"{name}.csv.gz"), means.first_id)
        runs = {
            str(place): played_run(of_job[int(row["job"])], row, str(place), log.cpus)
            for place, row in rows
        }
        records = list(read_records(directory / f"{name}.queue.gz", means.kind))
        told = list(told_starts(records, means.asking(runs), history, runs, method))
        write_told(directory / f"{name}.told.csv", told)
        print(f"{name} play, {method}: errors in minutes")
        print("\n".join((*table_of(told, means.scheduler), coverage_by_promise(told))))


def played_run(job: Submission, row: Mapping[str, str], job_id: str, cpus: int) -> Completion:
    """Return a run of a play under its id in Slurm; times are seconds of the play."""
    state = STATES_OF_PBS.get(row["state"], row["state"])
    submitted = replace(job, job_id=job_id, submit_time=float(row["submit"]))
    return as_taken(run_of(submitted, float(row["start"]), float(row["end"]), state), cpus)


def as_taken(run: Completion, cpus: int) -> Completion:
    """Return a run with the processors of the whole nodes that it takes."""
    job = run.submission
    whole = cpus * -(-(job.requested_processors or 1) // cpus)
    return replace(run, submission=replace(job, requested_processors=whole))
