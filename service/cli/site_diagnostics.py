"""Facts that this machine and the history show of a resource manager, for ``walltimed doctor``."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from service.cli.reconcile import SEPARATOR, rows_of
from service.operations.diagnosing import FilterFile, QueueDiagnostics, SiteDiagnostics, UnknownRuns
from simulator.cli.console import CommandError

if TYPE_CHECKING:
    from service.store import Store

UPDATER = "walltimed-slurm-updater.service"

SECONDS = 10.0
"""Time limit of a command that answers at once."""

LATE_SECONDS = 600.0
"""Accounting may know of a run so much later than the history."""

PBS_HOOK_FILE = Path("/etc/walltimed/pbs-hook.json")
DAY = 86400.0

_LUA_MODE = re.compile(r'^(?:(?!--).)*?\bmode\s*=\s*"([a-z-]+)"', re.MULTILINE)
_JSON_MODE = re.compile(r'"mode"\s*:\s*"([a-z-]+)"')
_SLURM_USER = re.compile(r"^SlurmUser\s*= ([^(\s]+)", re.MULTILINE)
_PBS_RUN = re.compile(rb"[^;]{0,64};[ER];([^;]{1,255});")
_PBS_DAY = re.compile(r"\d{8}")


def site_diagnostics(
    store: "Store", *, since: float, now: float, pbs_accounting: Path
) -> SiteDiagnostics:
    """Return the facts; sources that are not installed or not readable are left out.

    Args:
        store: the history.
        since: Unix seconds; runs that ended later are looked for in the accounting.
        now: Unix seconds.
        pbs_accounting: folder of the accounting logs of a PBS server.
    """
    return SiteDiagnostics(
        filter_files=list(filter_files()),
        queues=list(queues_of(store)),
        updater=updater_without_rights(),
        unknown_runs=unknown_runs(store, known_jobs(since, pbs_accounting), since, now),
    )


def filter_files() -> Iterator[FilterFile]:
    """Yield the settings files of submit filters on this machine."""
    slurm = Path(os.environ.get("SLURM_CONF", "/etc/slurm/slurm.conf")).parent
    for name, path, pattern in (
        ("walltimed.lua", slurm / "walltimed_config.lua", _LUA_MODE),
        ("cli_filter.lua", slurm / "walltimed_cli_config.lua", _LUA_MODE),
        ("walltimed_hook.py", PBS_HOOK_FILE, _JSON_MODE),
    ):
        try:
            mode = pattern.search(path.read_text("utf-8", "replace"))
            changed = path.stat().st_mtime
        except OSError:
            continue
        if mode:
            yield FilterFile(filter=name, path=str(path), mode=mode[1], changed_at=changed)


def queues_of(store: "Store") -> Iterator[QueueDiagnostics]:
    """Yield the state of each live queue."""
    from service.live_queue.job_forecasts import unpacked

    for cluster in sorted(store.queues.versions()):
        if found := store.queues.read(cluster):
            queue = unpacked(found[1], cluster)
            yield QueueDiagnostics(
                cluster=cluster, taken_at=queue.snapshot.taken_at, trouble=queue.trouble
            )


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


def output_of(*command: str) -> str:
    """Return the standard output of a command, empty if it cannot be run."""
    try:
        process = subprocess.run(  # noqa: S603 - fixed commands of the system
            command, capture_output=True, check=False, text=True, timeout=SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout.strip()


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


def known_jobs(since: float, pbs_accounting: Path) -> dict[str | None, KnownJobs]:
    """Return the jobs that accountings know, by cluster; None stands for the PBS server's."""
    found: dict[str | None, KnownJobs] = {}
    for raw, job, cluster, end in slurm_jobs(since):
        if end.isdigit():
            found.setdefault(cluster, KnownJobs()).add(float(end), raw, job)
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
        rows = rows_of("sacct", since=since, columns="JobIDRaw,JobID,Cluster,End")
    except CommandError:
        return []
    return [row.rstrip("\n").split(SEPARATOR)[:4] for row in rows]


def unknown_runs(
    store: "Store", jobs: Mapping[str | None, KnownJobs], since: float, now: float
) -> list[UnknownRuns]:
    """Return the runs in the history of jobs that no accounting of their cluster knows.

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
    return [
        UnknownRuns(
            cluster=cluster, jobs=[(job, user) for is_known, job, user in runs if not is_known]
        )
        for cluster, runs in sorted(runs_by_cluster.items())
        if any(is_known for is_known, _, _ in runs) and not all(is_known for is_known, _, _ in runs)
    ]
