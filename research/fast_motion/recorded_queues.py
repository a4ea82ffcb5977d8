"""The queue of a play as its resource manager shows it, recorded every half hour of its clock."""

import gzip
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BytesIO
from math import inf
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from fast_cluster import FastCluster
from fast_pbs import FastPbs
from msgspec.structs import asdict
from player import Cluster, Player, PlayJob, Speeds

from predictors.jobs import Submission
from service.slurm_updater.slurm import NODE_FORMAT
from service.slurm_updater.squeue import jobs_in

sys.path.append(str(Path(__file__).parents[2] / "integrations/pbs"))

import walltimed_queue  # type: ignore[import-not-found] # beside PBS it is a program

EVERY, SOON = 1800.0, 90.0
"""Seconds of the clock between two records, and from a submission to one of those that wait."""

ENDED = frozenset({"COMPLETED", "TIMEOUT", "FAILED", "CANCELLED"})

TIMES = ("submit_time", "start_time", "scheduler_start")

NAMES = ("user", "group", "queue", "application")


class QueueRecord(NamedTuple):
    """The queue at one time.

    Attributes:
        at: second of the play.
        jobs: fields of squeue that the updater reads; times are seconds of the play.
        nodes: lines of sinfo.
    """

    at: float
    jobs: Sequence[dict[str, Any]]
    nodes: str

    def shown(self, zero: float) -> BytesIO:
        """Return what squeue prints where second 0 of the play is another time."""
        jobs = [moved(job, zero) for job in self.jobs]
        return BytesIO(json.dumps({"jobs": jobs}).encode())

    def planned(self) -> dict[str, float]:
        """Return the starts that Slurm plans for waiting jobs, in seconds of the play."""
        return {
            str(job["job_id"]): job["start_time"]
            for job in self.jobs
            if job["job_state"] == "PENDING" and job["start_time"] is not None
        }


def moved(job: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Return a job with its times moved; one that has no time keeps none."""
    times = {name: job[name] + seconds for name in TIMES if job.get(name) is not None}
    return {**job, **times}


class PbsQueueRecord(NamedTuple):
    """The queue of PBS at one time.

    Attributes:
        at: second of the play.
        body: what the follower hands over; times are seconds of the play.
    """

    at: float
    body: Mapping[str, Any]

    def shown(self, zero: float, submitted: Mapping[str, Submission]) -> dict[str, Any]:
        """Return what is handed over where second 0 of the play is another time.

        Args:
            submitted: jobs of the log by id: in a play all are of one user.
        """
        lists = {
            kind: [
                moved({**job, **names_of(submitted[job["job_id"]])}, zero)
                for job in self.body[kind]
            ]
            for kind in ("running", "waiting")
        }
        return {**self.body, **lists, "taken_at": zero + self.at}

    def planned(self) -> dict[str, float]:
        """Return the starts that PBS plans for waiting jobs, in seconds of the play."""
        waiting = self.body["waiting"]
        return {
            job["job_id"]: job["scheduler_start"] for job in waiting if "scheduler_start" in job
        }


def names_of(job: Submission) -> dict[str, str]:
    """Return the names of a submission that it has."""
    found = {name: getattr(job, name) for name in NAMES}
    return {name: text for name, text in found.items() if text is not None}


AnyRecord = TypeVar("AnyRecord", QueueRecord, PbsQueueRecord)


class RecordingPlayer(Player):
    """A player that records the queue.

    Args:
        cluster: without jobs.
        speeds: of the clock.
        longest: real seconds that the play may take.
        zero: see ``Player``.
        file: gets a line for each record, compressed; those of a play that ends early stay.
        shown: returns the fields of a record but ``at``; it is called with ``zero``.

    Attributes:
        has_recorded: whether there is a record.
    """

    def __init__(  # noqa: PLR0913 - those of a player, and two
        self,
        cluster: Cluster,
        speeds: Speeds,
        longest: float,
        zero: int | None,
        *,
        file: Path,
        shown: Callable[[float], dict[str, Any]],
    ) -> None:
        super().__init__(cluster, speeds, longest, zero)
        self._shown = shown
        self._file = file
        self._due = -inf
        self.has_recorded = False
        self._seen_submission = -inf
        file.unlink(missing_ok=True)

    def play(self, jobs: Sequence[PlayJob]) -> list[str]:
        """Submit all jobs at their times and wait for their ends; return their ids."""
        self._due = self.zero + EVERY
        return super().play(jobs)

    def _step(self, due: float) -> None:
        if self._last_submission != self._seen_submission:
            self._seen_submission = self._last_submission
            self._due = min(self._due, self._last_submission + SOON)
        if self._clock.now() >= self._due:
            self._record()
        super()._step(min(due, self._due))

    def _record(self) -> None:
        """Record the queue, if jobs wait; the clock crawls meanwhile."""
        now = self._clock.now()
        self._due = now + EVERY
        if self._submitted <= self._watch.reported:
            return
        self._clock.go_on(self._speeds.slow)
        record = {"at": now - self.zero, **self._shown(self.zero)}
        with gzip.open(self._file, "at", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        self.has_recorded = True


def slurm_queue(cluster: FastCluster, zero: float) -> dict[str, Any]:
    """Return the queue and the nodes as the updater reads them."""
    shown = cluster.run("squeue", "--all", "--json", "-t", "PD,R,CF,S")
    nodes = cluster.run("sinfo", "--all", "-h", "-N", f"--format={NODE_FORMAT}")
    return {"jobs": list(kept(shown.encode(), zero)), "nodes": nodes}


def pbs_queue(server: FastPbs, zero: float) -> dict[str, Any]:
    """Return what the follower hands over."""
    jobs, nodes = (
        walltimed_queue.document_in(server.run(*command, "-F", "json"), command[0])
        for command in (("qstat", "-f", "-t"), ("pbsnodes", "-a"))
    )
    body = walltimed_queue.body_of(jobs, nodes, zero, depth=1)
    for kind in ("running", "waiting"):
        body[kind] = [
            {**moved(job, -zero), "job_id": job["job_id"].partition(".")[0]} for job in body[kind]
        ]
    return {"body": body}


def kept(shown: bytes, zero: float) -> Iterator[dict[str, Any]]:
    """Yield the fields of jobs that the updater reads, without ended jobs."""
    for job in jobs_in(BytesIO(shown)):
        fields = {name: value for name, value in asdict(job).items() if value not in (None, "")}
        if fields.get("job_state") in ENDED:
            continue
        times = {name: (fields.get(name) or 0) - zero for name in TIMES[:2]}
        # Before it plans a job, Slurm shows 1970.
        yield {**fields, **{name: at if at >= 0 else None for name, at in times.items()}}


def read_records(file: Path, kind: type[AnyRecord]) -> Iterator[AnyRecord]:
    """Yield the records of a play; the last one may be cut off."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        try:
            for line in lines:
                yield kind(**json.loads(line))
        except (EOFError, json.JSONDecodeError):
            return
