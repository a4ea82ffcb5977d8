"""Plays of a real Slurm or PBS in files, and how near the twins and policies of papers are."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from fast_cluster import unix_of

from predictors.response_ratio import OVERDUE_SHARE
from simulator.scheduling.estimates import Estimates
from simulator.scheduling.pbs_configuration import read_pbs_configuration
from simulator.scheduling.pbs_rules import PbsRules
from simulator.scheduling.ratio_rules import RatioRules
from simulator.scheduling.semantics import Semantics
from simulator.scheduling.simulate import simulate
from simulator.scheduling.slurm_configuration import read_configuration
from simulator.scheduling.slurm_rules import BASIC, LoggedTimes, SlurmRules
from simulator.scheduling.workload import Workload, prepare
from simulator.traces.trace import SWF_FIELDS, Integers, Trace
from terminal.files import read_bytes, text_writer

COLUMNS = (
    "job", "submit", "start", "end", "size", "limit_minutes", "time_min_minutes",
    "length_minutes", "wanted_run", "partition", "nodes", "state",
    "site_factor",
)  # fmt: skip

PLAYS = ("first", "second")

EPILOG, CYCLE = 3, 1.0
"""Seconds of the fast clock that an end and a backfill cycle take."""


class RecordedPlay(NamedTuple):
    """A recorded play: a column for each field; times are seconds.

    Attributes:
        length: predicted lengths by which site factors or a formula order the queue; 0: none.
        gpu_nodes: number of nodes of each job; None in plays without GPUs.
        gpus: GPUs on each of these nodes, likewise.
    """

    submit: Integers
    start: Integers
    end: Integers
    size: Integers
    limit: Integers
    time_min: Integers
    length: Integers
    wanted_run: Integers
    partition: Sequence[str]
    nodes: Sequence[str]
    state: Sequence[str]
    gpu_nodes: Integers | None = None
    gpus: Integers | None = None

    @property
    def wait(self) -> Integers:
        """Seconds from submission to start."""
        return self.start - self.submit

    @property
    def overrun(self) -> Integers:
        """Seconds by which jobs ran longer than they were to: launches and completions."""
        return self.end - self.start - self.wanted_run


def played_in(notes: Mapping[str, Any]) -> list[str]:
    """Return the names of the plays that were made."""
    return [name for name in PLAYS if name in notes]


def rows_in(file: Path) -> list[dict[str, str]]:
    """Return the rows of a play."""
    return list(csv.DictReader(io.StringIO(read_bytes(file).decode("ascii"))))


def read_play(file: Path) -> RecordedPlay:
    """Return the play in a file, compressed or not."""
    rows = rows_in(file)

    def numbers(name: str, unit: int = 1) -> Integers:
        return unit * np.array([int(row.get(name) or 0) for row in rows], np.int64)

    return RecordedPlay(
        *map(numbers, ("submit", "start", "end", "size")),
        numbers("limit_minutes", 60),
        numbers("time_min_minutes", 60),
        numbers("length_minutes", 60),
        numbers("wanted_run"),
        [row.get("partition") or "all" for row in rows],
        [row["nodes"] for row in rows],
        [row.get("state", "") for row in rows],
        *(numbers(name) for name in ("gpu_nodes", "gpus") if name in rows[0]),
    )


def write_play(file: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a play, compressed if the name ends in .gz."""
    with text_writer(file) as opened:
        writer = csv.DictWriter(opened, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def workload_of(play: RecordedPlay, processors: int, zero: int = 0) -> Workload:
    """Return the jobs of a play as they were submitted and as long as they ran.

    Args:
        play: the play.
        processors: size of the machine.
        zero: Unix seconds of the play's second 0, if it has reservations.
    """
    count = len(play.submit)
    names = sorted(set(play.partition))
    unknown = np.full(count, -1, np.int64)
    columns: dict[str, Any] = {
        **dict.fromkeys((*SWF_FIELDS, "line"), unknown),
        "job": np.arange(count),
        "submit": play.submit.astype(float),
        "run": np.maximum(play.end - play.start, 1).astype(float),
        "requested_processors": play.size,
        "requested_time": play.limit.astype(float),
        "queue": np.array([names.index(name) for name in play.partition], np.int64),
    }
    queues = "\n".join(f"{number} {name}" for number, name in enumerate(names))
    header = {"MaxProcs": str(processors), "Queue": queues, "UnixStartTime": str(zero)}
    log = Trace(**columns, header=header, nodes=play.gpu_nodes, gpus=play.gpus)
    workload = prepare(log, overrun="keep")
    # The main scheduler looks at whole minutes of the play.
    return replace(workload, submit=workload.submit + workload.origin, origin=0)


def estimates_of(play: RecordedPlay) -> Estimates:
    """Return the predicted lengths of the jobs, else their TimeMin, else their limits."""
    lengths = np.where(play.length, play.length, play.time_min)
    values = np.where(lengths, lengths, play.limit)
    return Estimates("recorded", known=lambda _: values)


def twin_starts(
    play: RecordedPlay,
    rules: SlurmRules | PbsRules,
    processors: int,
    zero: int = 0,
    *,
    first_after: int | None = None,
) -> Integers:
    """Return the starts of the twin; the first arguments are those of ``workload_of``.

    Args:
        play: the play.
        rules: of its scheduler.
        processors: size of the machine.
        zero: Unix seconds of the play's second 0.
        first_after: seconds of waiting after which a job goes first under ``response-ratio``; None:
            lengths order the queue by ``sjf-aging``.
    """
    profile = "regular"
    if play.length.any():
        profile = "aged-order" if first_after is None else "order"
    ratio = RatioRules(longest_wait=round((first_after or 0) / OVERDUE_SHARE))
    if isinstance(rules, PbsRules):
        semantics = Semantics.adjusted(profile, policy="pbs", pbs=rules, ratio=ratio)
    else:
        if profile == "aged-order" and not rules.priority_weight_age:
            rules = replace(rules, priority_type=BASIC)  # the site factors of the play hold the age
        semantics = Semantics.adjusted(profile, policy="slurm", slurm=rules, ratio=ratio)
    return simulate(workload_of(play, processors, zero), semantics, estimates_of(play)).start


def starts_under(policy: str, play: RecordedPlay, processors: int) -> Integers:
    """Return the starts under a policy of papers, which plans by limits."""
    by_limits = Estimates.named("requested")
    return simulate(workload_of(play, processors), Semantics(policy=policy), by_limits).start


def rules_of(directory: Path, cycle_time: float = CYCLE) -> SlurmRules | PbsRules:
    """Return the rules of a play from what its own Slurm or PBS printed of its configuration."""
    if (directory / "sched_config").exists():
        return replace(read_pbs_configuration(directory), cycle_time=cycle_time)
    return replace(read_configuration(directory), epilog=EPILOG, cycle_time=cycle_time)


def logged_times(log: str, play: RecordedPlay, rules: SlurmRules) -> LoggedTimes:
    """Return what slurmctld's log of a play says of its cycles and of the ends of its jobs.

    The first node of a job that is killed at its limit is COMPLETING until its processes are gone
    (slurmd's ``req.c``: ``_rpc_timelimit``, ``_pause_for_job_completion``), its other nodes until
    they have answered. slurmctld logs what takes longer than a minute; else KillWait is assumed.
    """
    submissions = re.search(r"^\[(\S+)\] _slurm_rpc_submit_batch_job", log, re.MULTILINE)
    assert submissions is not None  # noqa: S101 - a play has jobs
    zero = 60 * round((unix_of(submissions[1]) - int(play.submit[0])) / 60)  # a whole minute
    begins = re.findall(
        r"^\[(\S+)\] sched/backfill: _attempt_backfill: beginning", log, re.MULTILINE
    )
    epilogs = np.where([each == "TIMEOUT" for each in play.state], rules.kill_wait, rules.epilog)
    first_epilogs = epilogs.copy()
    ends = re.findall(
        r"^\S+ cleanup_completing: JobId=(\d+) completion .* took (\d+)", log, re.MULTILINE
    )
    for job, seconds in ends:
        first_epilogs[int(job) - 1] = int(seconds)
    cycles = {round(1000 * (unix_of(each) - zero)) for each in begins}  # some are logged twice
    return LoggedTimes(
        cycles=tuple(sorted(each for each in cycles if each >= 0)),
        epilogs=tuple(epilogs.tolist()),
        first_epilogs=tuple(first_epilogs.tolist()),
    )


def interval_of(rules: SlurmRules | PbsRules) -> int:
    """Return seconds from the beginning of a backfill cycle to the next one.

    PBS has none. Its starts are compared by the bound of Slurm's default.
    """
    return (rules if isinstance(rules, SlurmRules) else SlurmRules()).bf_interval + 1


class Likeness(NamedTuple):
    """Differences between the starts of two schedules of the same jobs.

    Attributes:
        within_interval: share of jobs whose starts differ by at most a ``bf_interval``.
        within_300: share of jobs whose starts differ by at most 300 s.
        median: of the differences, in seconds.
        p90: their 90th percentile.
        correlation: of the waits.
        wait: mean wait of the first schedule, in seconds.
        other_wait: mean wait of the second.
    """

    within_interval: float
    within_300: float
    median: float
    p90: float
    correlation: float
    wait: float
    other_wait: float

    HEADS = (
        f"{'schedules':24}{'interval':>10}{'300 s':>8}{'median':>8}{'p90':>8}{'corr':>8}"
        f"{'mean waits, min':>20}"
    )

    @classmethod
    def of(
        cls, play: RecordedPlay, start: Integers, interval: int, submit: Integers | None = None
    ) -> Self:
        """Compare a play with other starts of its jobs, whose submissions may differ, too.

        Args:
            play: the play.
            start: the other starts.
            interval: seconds from the beginning of a backfill cycle to the next one.
            submit: the other submissions; None where they are those of the play.
        """
        differences = np.abs(start - play.start)
        waits, others = play.wait, start - (play.submit if submit is None else submit)
        varied = waits.any() and others.any() and len(set(waits)) > 1 and len(set(others)) > 1
        return cls(
            float((differences <= interval).mean()),
            float((differences <= 300).mean()),
            float(np.median(differences)),
            float(np.quantile(differences, 0.9)),
            float(np.corrcoef(waits, others)[0, 1]) if varied else 1.0,
            float(waits.mean()),
            float(others.mean()),
        )

    def row(self, name: str) -> str:
        """Return a row of a table."""
        return (
            f"{name:24}{self.within_interval:10.1%}{self.within_300:8.1%}{self.median:8.0f}"
            f"{self.p90:8.0f}{self.correlation:8.4f}"
            f"{self.wait / 60:12.1f}{self.other_wait / 60:8.1f}"
        )
