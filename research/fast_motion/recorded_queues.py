"""The queue of a play as squeue and sinfo show it, recorded every half hour of its clock."""

import gzip
import json
from collections.abc import Iterator, Sequence
from io import BytesIO
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from fast_cluster import FastCluster
from msgspec.structs import asdict
from player import Player, PlayJob, Speeds

from service.slurm_updater.slurm import NODE_FORMAT
from service.slurm_updater.squeue import jobs_in

EVERY, SOON = 1800.0, 90.0
"""Seconds of the clock between two records, and from a submission to one of those that wait."""

ENDED = frozenset({"COMPLETED", "TIMEOUT", "FAILED", "CANCELLED"})

TIMES = ("submit_time", "start_time")


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


class RecordingPlayer(Player):
    """A player that records the queue.

    Args:
        file: gets a line for each record, compressed; those of a play that ends early stay.

    Attributes:
        has_recorded: whether there is a record.
    """

    def __init__(
        self, cluster: FastCluster, speeds: Speeds, longest: float, zero: int | None, *, file: Path
    ) -> None:
        super().__init__(cluster, speeds, longest, zero)
        self._slurm = cluster
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
        shown = self._slurm.run("squeue", "--all", "--json", "-t", "PD,R,CF,S")
        nodes = self._slurm.run("sinfo", "--all", "-h", "-N", f"--format={NODE_FORMAT}")
        record = {
            "at": now - self.zero,
            "jobs": list(kept(shown.encode(), self.zero)),
            "nodes": nodes,
        }
        with gzip.open(self._file, "at", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        self.has_recorded = True


def kept(shown: bytes, zero: float) -> Iterator[dict[str, Any]]:
    """Yield the fields of jobs that the updater reads, without ended jobs."""
    for job in jobs_in(BytesIO(shown)):
        fields = {name: value for name, value in asdict(job).items() if value not in (None, "")}
        if fields.get("job_state") in ENDED:
            continue
        times = {name: (fields.get(name) or 0) - zero for name in TIMES}
        # Before it plans a job, Slurm shows 1970.
        yield {**fields, **{name: at if at >= 0 else None for name, at in times.items()}}


def read_records(file: Path) -> Iterator[QueueRecord]:
    """Yield the records of a play; the last one may be cut off."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        try:
            for line in lines:
                yield QueueRecord(**json.loads(line))
        except (EOFError, json.JSONDecodeError):
            return
