"""Slurm's commands, each within a time limit."""

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from msgspec import Struct

from predictors.aged_length import largest_site_factor
from service.adapters.values import number
from service.live_queue.taken_processors import QueueNodes
from service.slurm_updater.machine import Machine, read_longest, read_nodes, takes_of
from service.slurm_updater.squeue import QueuedJob, UnreadableQueueError, read_queue
from terminal.words import MINUTE, clock

SOFT_LIMIT_SINCE = (25, 5, 4)
"""Below, or without the option, the backfill scheduler lowers the limit of a job to its TimeMin."""

SOFT_LIMIT_OPTION = "time_min_as_soft_limit"
MULTIFACTOR = "priority/multifactor"

POLICY = "conservative"
"""Slurm's backfill scheduler plans a start for every job that it looks at."""

NODE_FORMAT = "%N|%R|%C|%h|%z|%l|%G"
"""Format: node, partition, processors by use, OverSubscribe, sockets:cores:threads, limit, Gres."""

LONGEST_AGE = 7 * 24 * 3600
"""Slurm's default of PriorityMaxAge, in seconds."""

OTHER_WEIGHTS = ("PriorityWeightFairShare", "PriorityWeightJobSize", "PriorityWeightPartition")
"""Weights whose sum is the usual largest site factor of the order ``response-ratio``."""

PLANNED_JOBS = 500
"""Slurm's default of ``bf_max_job_test``."""

PLANNED_MINUTES = 1440
"""Slurm's default of ``bf_window``."""

_PARAMETER = re.compile(r"(?:^|,)(bf_max_job_test|bf_window)=([1-9]\d{0,6})(?=,|$)")
_SETTING = re.compile(r"^(\w+)\s*= (.*?)\s*$", re.MULTILINE)
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_FACTOR = re.compile(r"^\s*(\d+)\|(-?\d+)\s*$", re.MULTILINE)

_START = re.compile(r"\bStartTime=(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\b")
"""The start of a reservation, in the local time of this machine."""

_UPDATE_TIME = re.compile(r"REQUEST_UPDATE_JOB\s.*?count:(\d+).*?total_time:(\d+)")
"""sdiag's line about updates of jobs; the time is in microseconds."""

_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "SLURM_BITSTR_LEN": "0"}
"""With the latter squeue shows all tasks of an array."""


class SlurmError(Exception):
    """Raised when a Slurm command fails, with its message."""


class SlurmSilentError(SlurmError):
    """Raised when a Slurm command exceeds the time limit."""


class ControllerSettings(Struct, frozen=True, kw_only=True):
    """The configuration of slurmctld that matters here.

    Attributes:
        keeps_limits: whether a TimeMin leaves the hard limit of a job alone.
        sums_factors: whether a SiteFactor counts.
        age_weight: PriorityWeightAge.
        other_weights: sum of the weights of the other factors.
        age_of_a_day: what a day of waiting adds to the priority of a job.
        takes: what a job takes at least, by SelectTypeParameters.
        rules: how it schedules, as the service takes them with a queue.
    """

    cluster: str
    version: str
    keeps_limits: bool
    sums_factors: bool
    age_weight: int
    other_weights: int
    age_of_a_day: int
    takes: str = "cpu"
    rules: dict[str, Any]


class UpdateTime(NamedTuple):
    """The updates of jobs since slurmctld began to count, and its time for them in seconds."""

    updates: int
    seconds: float


class RunningCommand(NamedTuple):
    """A command that runs, the pipe to its standard input, and that from its standard error."""

    process: subprocess.Popen[bytes]
    to_input: IO[bytes]
    from_error: IO[bytes]


class Slurm:
    """The commands of one cluster.

    Args:
        directory: where they are; by default they are looked for on the path.
        timeout: seconds that each of them may take.

    Attributes:
        timeout: seconds that each of them may take.
    """

    def __init__(self, directory: Path | None = None, *, timeout: float = 10.0) -> None:
        self._directory = directory
        self.timeout = timeout
        # What users set for squeue would change what it prints.
        inherited = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("SQUEUE_", "SPRIO_", "SINFO_", "SCONTROL_"))
        }
        self._environment = inherited | _ENVIRONMENT

    def site(self) -> ControllerSettings:
        """Read the present configuration; an administrator may change it at any time."""
        return settings_in(self._run("scontrol", "show", "config").decode("utf-8", "replace"))

    def queue(self, cluster: str) -> list[QueuedJob]:
        """Return the jobs that wait or run, with the processors that they ask for."""
        with self.shown_queue() as shown:
            return queue_in(shown, cluster)

    def shown_queue(self) -> IO[bytes]:
        """Return the output of squeue as a file: it may be 60 MB."""
        shown = tempfile.TemporaryFile(prefix="walltimed-")  # noqa: SIM115 - the caller closes it
        try:
            self._run("squeue", "--all", "--json", output=shown)
        except SlurmError:
            shown.close()
            raise
        return shown

    def machine(self, takes: str) -> Machine:
        """Return the nodes, of which a job takes at least one part; none where sinfo fails."""
        try:
            printed = self._run("sinfo", "--all", "--noheader", "--Node", f"--format={NODE_FORMAT}")
        except SlurmSilentError:
            raise
        except SlurmError as error:
            return Machine(trouble=str(error))
        lines = printed.decode("utf-8", "replace")
        return Machine(nodes=read_nodes(lines), longest=read_longest(lines), takes=takes)

    def site_factors(self) -> dict[str, int]:
        """Return the site factors of waiting jobs by job id, from sprio."""
        output = self._run("sprio", "--noheader", "--format=%i|%S").decode("utf-8", "replace")
        return {job_id: int(factor) for job_id, factor in _FACTOR.findall(output)}

    def reservation_starts(self) -> list[float]:
        """Return the starts of all reservations in Unix seconds."""
        shown = self._run("scontrol", "show", "reservation", "--oneliner").decode(
            "utf-8", "replace"
        )
        return [datetime.fromisoformat(start).timestamp() for start in _START.findall(shown)]

    def update(self, target: str, changes: Mapping[str, str]) -> None:
        """Change a job, all at once: every update takes slurmctld's locks."""
        words = [f"{name}={value}" for name, value in changes.items()]
        self._run("scontrol", "update", f"JobId={target}", *words)

    def update_time(self) -> UpdateTime | None:
        """Return slurmctld's time for updates of jobs; None if sdiag does not say."""
        try:
            shown = self._run("sdiag").decode("utf-8", "replace")
        except SlurmSilentError:
            raise
        except SlurmError:
            return None
        found = _UPDATE_TIME.search(shown)
        if found is None:
            return UpdateTime(0, 0.0) if "Remote Procedure Call" in shown else None
        return UpdateTime(int(found[1]), int(found[2]) / 1e6)

    def start(self, name: str) -> RunningCommand:
        """Start a command that reads its standard input; its standard output is dropped.

        Raises:
            SlurmError: it cannot be run.
        """
        try:
            process = subprocess.Popen(  # noqa: S603 - as below
                [self._program(name)],
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                bufsize=0,
            )
        except OSError as error:
            raise SlurmError(f"{name} cannot be run: {error}") from error
        return RunningCommand(
            process, cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stderr)
        )

    def _program(self, name: str) -> str:
        return str(self._directory / name) if self._directory else name

    def _run(self, name: str, *arguments: str, output: IO[bytes] | None = None) -> bytes:
        try:
            process = subprocess.run(  # noqa: S603 - no shell, and the administrator's own commands
                [self._program(name), *arguments],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output or subprocess.PIPE,
                stderr=subprocess.PIPE,
                timeout=self.timeout,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise SlurmSilentError(f"{name} took more than {self.timeout:g} s") from error
        except (OSError, ValueError) as error:
            raise SlurmError(f"{name} cannot be run: {error}") from error
        if process.returncode != 0:
            written = (process.stderr or process.stdout or b"").decode("utf-8", "replace")
            raise SlurmError(f"{name} failed: {' '.join(written.split())[:500]}")
        return process.stdout or b""


def settings_in(printed: str) -> ControllerSettings:
    """Return the configuration in the output of ``scontrol show config``."""
    settings = dict(_SETTING.findall(printed))
    version = settings.get("SLURM_VERSION", "")
    return ControllerSettings(
        cluster=settings.get("ClusterName", "").lower(),
        version=version,
        keeps_limits=keeps_limits(version, settings.get("SchedulerParameters", "")),
        sums_factors=settings.get("PriorityType") == MULTIFACTOR,
        age_weight=age_weight(settings),
        other_weights=sum(weight(settings, name) for name in OTHER_WEIGHTS),
        age_of_a_day=age_of_a_day(settings),
        takes=takes_of(settings.get("SelectType", ""), settings.get("SelectTypeParameters", "")),
        rules=rules_of(settings),
    )


def queue_in(
    shown: IO[bytes], cluster: str, queue_nodes: Sequence[QueueNodes] = ()
) -> list[QueuedJob]:
    """Return the jobs that wait or run in the output of squeue.

    Raises:
        SlurmError: it is not a queue.
    """
    try:
        return list(read_queue(shown, cluster, queue_nodes))
    except UnreadableQueueError as error:
        raise SlurmError(str(error)) from error


def keeps_limits(version: str, scheduler_parameters: str) -> bool:
    """Return whether this Slurm treats TimeMin as a soft limit."""
    found = _VERSION.search(version)
    if found is None or SOFT_LIMIT_OPTION not in scheduler_parameters.split(","):
        return False
    return tuple(map(int, found.groups())) >= SOFT_LIMIT_SINCE


def age_of_a_day(settings: Mapping[str, str]) -> int:
    """Return what a day of waiting adds to a job's priority (``PriorityWeightAge``)."""
    longest = clock(settings.get("PriorityMaxAge")) or LONGEST_AGE
    return largest_site_factor(age_weight(settings), longest)


def age_weight(settings: Mapping[str, str]) -> int:
    """Return ``PriorityWeightAge``."""
    return weight(settings, "PriorityWeightAge")


def weight(settings: Mapping[str, str], name: str) -> int:
    """Return a weight of priority/multifactor; 0 if it is not set."""
    return int(number(settings.get(name)) or 0)


def rules_of(settings: Mapping[str, str]) -> dict[str, Any]:
    """Return the rules of slurmctld, read from ``scontrol show config``."""
    if settings.get("SchedulerType") == "sched/builtin":
        return {"policy": "fcfs", "plans_by": "requests"}
    parameters = dict(_PARAMETER.findall(settings.get("SchedulerParameters", "")))
    return {
        "policy": POLICY,
        "plans_by": "requests",
        "planning_depth": int(parameters.get("bf_max_job_test", PLANNED_JOBS)),
        "planning_window": int(MINUTE) * int(parameters.get("bf_window", PLANNED_MINUTES)),
    }
