"""Facts that this machine, its accounting and the history show of the resource manager, as faults.

Sources that are not installed or not readable are left out.
"""

import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from os import environ
from pathlib import Path
from typing import TYPE_CHECKING

from service.site.diagnosing import (
    AskingFilter,
    Diagnosis,
    FilterMode,
    check_filter_mode,
    check_handed_over,
    check_queue,
    check_ranges,
    note,
    unknown_to_accounting,
    without_rights,
)
from service.site.host_files import read, values_of_json
from service.site.pbs_conf import CONFIG as HOOK_CONFIG
from service.site.pbs_conf import private_directory
from service.site.slurm_conf import CONNECTED, conf_path
from service.site.switch import OFF_SWITCH, UPDATER, output_of
from terminal.console import CommandError, ExitCode
from terminal.words import DAY, duration

if TYPE_CHECKING:
    from service.store import Store

LATE_SECONDS = 600.0
"""Accounting may know of a run so much later than the history."""

_SLURM_USER = re.compile(r"^SlurmUser\s*= ([^(\s]+)", re.MULTILINE)


def site_faults(
    store: "Store", asking: Sequence[AskingFilter], *, since: float, now: float, oldest: float
) -> Iterator[Diagnosis]:
    """Yield modes, rights, queues and runs that do not fit the resource manager.

    Runs that ended after ``since`` are looked for in the accounting. A live queue is old from
    ``oldest`` seconds on.
    """
    if (off_since := time_of(OFF_SWITCH)) is not None:
        says = f"{OFF_SWITCH} has stopped every effect on jobs for {duration(now - off_since)}."
        yield note("switched-off", says)
    for mode in filter_modes():
        yield from check_filter_mode(mode, asking, now)
    if user := updater_without_rights():
        yield without_rights(user)
    queues = list(queues_of(store))
    for cluster, taken_at, trouble, held in queues:
        yield from check_queue(cluster, taken_at, trouble, now=now, oldest=oldest)
        yield from check_ranges(cluster, held)
    yield from check_handed_over(
        store.past_runs.predicted_clusters(), [name for name, *_ in queues]
    )
    for cluster, jobs in unknown_runs(store, known_jobs(since), since, now).items():
        yield unknown_to_accounting(cluster, jobs)


def filter_modes() -> Iterator[FilterMode]:
    """Yield the modes that `walltimed connect` has set for submit filters on this machine."""
    off_since = time_of(OFF_SWITCH)
    slurm = conf_path().parent / CONNECTED
    for name, path in (("walltimed.lua", slurm), ("walltimed_hook.py", HOOK_CONFIG)):
        changed = time_of(path)
        mode = mode_in(path) if changed is not None else None
        if changed is not None and off_since is not None:
            yield FilterMode(name, str(OFF_SWITCH), "off", off_since)
        elif changed is not None and mode:
            yield FilterMode(name, str(path), mode, changed)


def mode_in(path: Path) -> str | None:
    """Return the mode in a file of settings; None where it cannot be read or has none."""
    try:
        mode = values_of_json(read(path), path).get("mode")
    except (CommandError, OSError):
        return None
    return mode if isinstance(mode, str) else None


def time_of(path: Path) -> float | None:
    """Return the time at which a file was changed, in Unix seconds; None without it."""
    try:
        return path.stat().st_mtime
    except OSError:
        return None


def queues_of(store: "Store") -> Iterator[tuple[str, float, str | None, float | None]]:
    """Yield cluster, time, forecast error and coverage of starts of each live queue."""
    from service.live_queue.forecast_record import unpacked  # noqa: PLC0415 - loads the simulator

    for cluster in sorted(store.queues.versions()):
        if found := store.queues.read(cluster):
            queue = unpacked(found[1], cluster)
            held = queue.told.observed_coverage()
            yield cluster, queue.snapshot.taken_at, queue.trouble, held


def updater_without_rights() -> str | None:
    """Return the user of the updater's unit, if Slurm does not let that user change jobs."""
    if not (shutil.which("systemctl") and shutil.which("sacctmgr")):
        return None
    if output_of("systemctl", "is-enabled", UPDATER) not in {"enabled", "enabled-runtime"}:
        return None
    user = output_of("systemctl", "show", "--property=User", "--value", UPDATER) or "root"
    owner = _SLURM_USER.search(output_of("scontrol", "show", "config"))
    if user in {"root", owner[1] if owner else "slurm"}:
        return None
    level = output_of("sacctmgr", "-nP", "show", "user", f"name={user}", "format=adminlevel")
    return None if level in {"Operator", "Administrator"} else user


def unknown_runs(
    store: "Store", jobs: Mapping[str | None, "KnownJobs"], since: float, now: float
) -> dict[str, list[tuple[str, str | None]]]:
    """Return job id and user of each run that no accounting of its cluster knows, by cluster.

    A cluster of which the accounting knows no run at all is another one's, or its jobs are not
    shown to this user: nothing is said of it.
    """
    runs_by_cluster: dict[str, list[tuple[bool, str, str | None]]] = {}
    for run in store.past_runs.exported(None, since, now - LATE_SECONDS) if jobs else ():
        job = run.submission
        accounting = jobs.get(job.cluster) or jobs.get(None)
        if accounting is not None and job.job_id and run.end_time >= accounting.since:
            is_known = job.job_id in accounting.ids
            runs_by_cluster.setdefault(job.cluster, []).append((is_known, job.job_id, job.user))
    return {
        cluster: [(job, user) for is_known, job, user in runs if not is_known]
        for cluster, runs in sorted(runs_by_cluster.items())
        if any(is_known for is_known, _, _ in runs) and not all(is_known for is_known, _, _ in runs)
    }


SEPARATOR = "\x1f"
COLUMNS = (
    "JobIDRaw,JobID,Cluster,User,Group,Account,Partition,JobName,Submit,Start,End,ElapsedRaw,"
    "TimelimitRaw,NNodes,ReqNodes,NCPUS,ReqCPUS,ReqMem,ReqTRES,AllocTRES,State,SubmitLine,"
    "AdminComment,NodeList"
)

_PBS_RUN = re.compile(rb"[^;]{0,64};[ER];([^;]{1,255});")
_PBS_DAY = re.compile(r"\d{8}")


def rows_of_sacct(sacct: str, *, since: float, columns: str = COLUMNS) -> list[str]:
    """Return the rows of sacct for all jobs since ``since``, in the form that is safe to read.

    Raises:
        CommandError: sacct cannot be run or fails.
    """
    begin = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(since))
    command = [sacct, "-a", "-X", "-D", "-P", f"--delimiter={SEPARATOR}", "-S", begin]
    try:
        process = subprocess.run(  # noqa: S603 - the administrator names the command
            [*command, "-E", "now", "-o", columns],
            env=environ | {"TZ": "UTC", "SLURM_TIME_FORMAT": "%s"},
            capture_output=True,
            check=True,
        )
    except OSError as error:
        raise CommandError(
            f"{sacct} cannot be run: {error.strerror}. Is Slurm installed here? --sacct names the "
            "command.",
            ExitCode.USAGE,
        ) from error
    except subprocess.CalledProcessError as error:
        # libslurm says the cause last, after several lines about how it came to it.
        *_, cause = error.stderr.decode("utf-8", "replace").strip().splitlines() or [""]
        raise CommandError(
            f"{sacct} cannot read Slurm's accounting here: {cause}", ExitCode.UNAVAILABLE
        ) from error
    return [f"{line}\n" for line in process.stdout.decode("utf-8", "replace").split("\n") if line]


class KnownJobs:
    """The jobs that one accounting database or log contains.

    Attributes:
        ids: of the jobs, in each form that a record may have.
        since: end of the first of them, in Unix seconds: earlier ones may have been deleted.
    """

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self.since = float("inf")

    def add(self, end: float, *ids: str) -> None:
        """Add one job."""
        self.ids.update(ids)
        self.since = min(self.since, end)


def known_jobs(since: float) -> dict[str | None, KnownJobs]:
    """Return the job ids in Slurm's and PBS's accounting, by cluster.

    Key None: PBS, whose log names no cluster.
    """
    found: dict[str | None, KnownJobs] = {}
    for raw, job, cluster, end in slurm_jobs(since):
        if end.isdigit():
            found.setdefault(cluster, KnownJobs()).add(float(end), raw, job)
    pbs_accounting = private_directory() / "accounting"
    try:
        days = sorted(day for day in pbs_accounting.iterdir() if _PBS_DAY.fullmatch(day.name))
        for day in (day for day in days if day.stat().st_mtime >= since):
            jobs = found.setdefault(None, KnownJobs())
            for match in map(_PBS_RUN.match, day.read_bytes().splitlines()):
                if match:
                    jobs.add(day.stat().st_mtime - DAY, match[1].decode("utf-8", "replace"))
    except OSError:
        pass
    return found


def slurm_jobs(since: float) -> list[list[str]]:
    """Return raw id, id, cluster and end of the jobs that sacct shows; none if it fails."""
    if not shutil.which("sacct"):
        return []
    try:
        rows = rows_of_sacct("sacct", since=since, columns="JobIDRaw,JobID,Cluster,End")
    except CommandError:
        return []
    return [row.rstrip("\n").split(SEPARATOR)[:4] for row in rows]
