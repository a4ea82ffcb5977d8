"""Accounting of Slurm and PBS on their host: sacct's rows, and the jobs that it knows."""

import re
import shutil
import subprocess
import time
from os import environ

from service.site.pbs_conf import private_directory
from terminal.console import CommandError, ExitCode

SEPARATOR = "\x1f"
COLUMNS = (
    "JobIDRaw,JobID,Cluster,User,Group,Account,Partition,JobName,Submit,Start,End,ElapsedRaw,"
    "TimelimitRaw,NNodes,ReqNodes,NCPUS,ReqCPUS,ReqMem,ReqTRES,AllocTRES,State,SubmitLine,"
    "AdminComment,NodeList"
)

DAY = 86400.0

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
