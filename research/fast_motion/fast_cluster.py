"""A real Slurm whose daemons live by the clock of a play, in a directory of its own."""

import contextlib
import ctypes
import os
import pwd
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from fast_clock import FastClock, compile_into, open_reports, read_reports
from guard import Guard
from played_conf import PlayedConf

sys.path.append(str(Path(__file__).parents[2] / "tests/support"))

from private_slurm import free_ports

START = 1_800_000_000.0
"""Unix seconds of a whole minute, at which the clock begins."""

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

INHERITED = {"PATH": PATH}
"""Environment of Slurm's programs, beside the clock."""

CLOCK_OF_PROGRAMS = {"FAST_CLOCK_PIECE": "0.003"}
CLOCK_OF_NODES = {"FAST_CLOCK_PIECE": "0.5", "FAST_CLOCK_SHORTEST": "0.02"}
"""Real seconds after which a waiting program looks at the clock again. Each job's slurmstepd has a
thread that wakes every second of the clock to see that there is nothing to do."""

SOON = 60.0
"""Real seconds for commands and for the start of all nodes."""

PATIENCE = 10.0
"""Real seconds in which all daemons are to end."""

DAEMONS = ("/usr/sbin/slurmctld", "/usr/sbin/slurmd")

CGROUP_CONF_SINCE = (23, 2)
"""The Slurm that knows ``CgroupPlugin=disabled``; those before it refuse it."""

CLONE_NEWNS = 0x20000
"""A mount namespace of one's own (sched.h)."""


class ClusterError(RuntimeError):
    """Slurm is missing, does not start, or refuses a command."""


def check_slurm(root: Path) -> None:
    """Check that there is a Slurm in a tree.

    Raises:
        ClusterError: there is none.
    """
    missing = [name for name in DAEMONS if not os.path.lexists(f"{root}{name}")]
    if missing:
        made_by = "make slurm" if root == Path("/") else "make slurm-root"
        raise ClusterError(f"{' and '.join(missing)} are not in {root} ({made_by}).")


def mount_apart(*mounts: Sequence[str]) -> None:
    """Mount for this process and its children alone, by options of mount; needs root.

    Raises:
        ClusterError: the system does not allow it.
    """
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS):
        raise ClusterError(f"No mounts: {os.strerror(ctypes.get_errno())}; be root.")
    for words in (("--make-rprivate", "/"), *mounts):
        subprocess.run(["/usr/bin/mount", *words], check=True)


def mount_into(root: Path) -> None:
    """Mount what a tree needs, for this process and its children alone; needs root.

    Raises:
        ClusterError: the system does not allow it.
    """
    mount_apart(
        ("--bind", "/tmp", f"{root}/tmp"),  # noqa: S108 - the tree sees the play's directory
        ("--rbind", "/dev", f"{root}/dev"),
        ("-t", "proc", "proc", f"{root}/proc"),
    )


def unix_of(text: str) -> float:
    """Return Unix seconds of a time that Slurm prints in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


class SlurmRecords:
    """Starts and ends in the logs that slurmctld writes into a directory."""

    def __init__(self, directory: Path) -> None:
        self._log = directory / "slurmctld.log"
        self._read = 0
        self._ended: set[str] = set()
        self._tested = ""

    def starts(self) -> Iterator[str]:
        """Yield the ids of the jobs that were started since the last call."""
        for line in self._new_lines():
            if found := re.search(r"(?:Allocate|Started) JobId=(\d+)", line):
                yield found[1]
            elif "Jobs backfilled since boot" in line and self._tested:
                yield self._tested
            elif found := re.search(r"backfill: .*JobId=(\d+)", line):
                self._tested = found[1]
            elif found := re.search(
                r"_job_complete: JobId=(\d+) done|exhausted for JobId=(\d+)", line
            ):
                self._ended.add(found[1] or found[2])

    def _new_lines(self) -> Sequence[str]:
        """Return the lines that slurmctld has written since the last call."""
        if not self._log.exists() or self._log.stat().st_size == self._read:
            return []
        with self._log.open("rb") as file:
            file.seek(self._read)
            text = file.read()
        whole = text.rfind(b"\n") + 1
        self._read += whole
        return text[:whole].decode("utf-8", "replace").splitlines()

    def ends(self) -> int:
        """Return the number of jobs whose end is among the lines that were read."""
        return len(self._ended)


class FastCluster:
    """A running cluster; use it in a ``with`` block.

    Args:
        conf: what is played of a site's slurm.conf.
        root: the tree with Slurm.

    Attributes:
        directory: everything of this cluster; it is deleted at the end.
        clock: the clock of the play.
        records: starts and ends of jobs.
        version: of Slurm.
        zero: second 0 of the jobs, in Unix seconds of the clock; None: any.
    """

    zero: int | None = None

    def __init__(self, conf: PlayedConf, root: Path) -> None:
        self._root = root
        self._nodes = list(conf.nodes)
        self._daemons: list[subprocess.Popen[bytes]] = []
        memory = Path("/dev/shm")  # noqa: S108 - a save on disk would take seconds of the clock
        self.directory = Path(tempfile.mkdtemp(prefix="slurm-play-", dir=memory))
        self.directory.chmod(0o755)
        for part in ("state", "spool", "etc", "out", *(f"spool/{name}" for name in self._nodes)):
            (self.directory / part).mkdir()
        (self.directory / "out").chmod(0o777)  # the jobs of a log's users write there
        self.clock = FastClock(self.directory / "clock", START)
        self._guard = Guard(self.clock.file)
        self._pipe = open_reports(self.clock)
        self._conf = self.directory / "etc/slurm.conf"
        self.records = SlurmRecords(self.directory)
        self._played = conf
        self.version = ""

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self) -> None:
        compile_into(self.directory)
        self._write_conf()
        self._start_beside()
        self._spawn("slurmctld", "/usr/sbin/slurmctld", "-D", "-f", str(self._conf))
        self._await(lambda: "UP" in self.run("scontrol", "ping", check=False))
        for name in self._nodes:
            words = ("/usr/sbin/slurmd", "-D", "-f", str(self._conf), "-N", name)
            self._spawn(name, *words, clock=CLOCK_OF_NODES)
        self._await(self._is_idle)

    def _start_beside(self) -> None:
        """Start programs before slurmctld; a plain cluster has none."""

    def _settings(self) -> str:
        """Return lines of slurm.conf beside those that are played."""
        return ""

    def _write_conf(self) -> None:
        user = pwd.getpwuid(os.getuid()).pw_name
        host = socket.gethostname().partition(".")[0]
        ports = free_ports(1 + len(self._nodes))
        text = self._played.text(self.directory, host, user, ports)
        self._conf.write_text(text + self._settings())
        self.version = self.run("sinfo", "--version").split()[-1]
        if tuple(map(int, self.version.split(".")[:2])) >= CGROUP_CONF_SINCE:
            (self.directory / "etc/cgroup.conf").write_text("CgroupPlugin=disabled\n")

    def _await(self, condition: Callable[[], bool]) -> None:
        """Wait, with the clock, until a condition holds.

        Raises:
            ClusterError: a daemon has ended, or the condition does not hold in time.
        """
        end = time.monotonic() + SOON
        while not condition():
            if time.monotonic() > end or any(each.poll() is not None for each in self._daemons):
                raise ClusterError(f"Slurm is not ready: {self.log()[-2000:]}")
            self.clock.go_on(10.0)
            time.sleep(0.05)

    def _is_idle(self) -> bool:
        found = self.run("sinfo", "-h", "-N", "-o", "%N %T", check=False).splitlines()
        return len(set(found)) == len(self._nodes) and all(line.endswith("idle") for line in found)

    def _environment(self, clock: Mapping[str, str]) -> Mapping[str, str]:
        return {
            "PATH": PATH,
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "SLURM_CONF": str(self._conf),
            "FAST_CLOCK": str(self.clock.file),
            **clock,
            "LD_PRELOAD": str(self.directory / "fast_clock.so"),
        }

    def _words(self, command: Sequence[str], clock: Mapping[str, str]) -> list[str]:
        """Return a command that lives by the clock, while what enters the tree does not."""
        enter = [] if self._root == Path("/") else ["chroot", str(self._root)]
        pairs = (f"{name}={value}" for name, value in self._environment(clock).items())
        return [*enter, "env", *pairs, *command]

    def _spawn(
        self,
        name: str,
        *command: str,
        clock: Mapping[str, str] = CLOCK_OF_PROGRAMS,
        inherited: Mapping[str, str] = INHERITED,
    ) -> None:
        with (self.directory / f"{name}.out").open("ab") as output:
            daemon = subprocess.Popen(
                self._words(command, clock), stdin=subprocess.DEVNULL, stdout=output,
                stderr=output, env=dict(inherited), cwd=self.directory, start_new_session=True,
            )  # fmt: skip
        self._daemons.append(daemon)

    def run(self, *command: str, check: bool = True, script: str | None = None) -> str:
        """Run a command of Slurm's and return what it prints.

        Raises:
            ClusterError: the command fails, unless ``check`` is false.
        """
        done = subprocess.run(
            self._words(command, CLOCK_OF_PROGRAMS), env=dict(INHERITED), input=script, text=True,
            capture_output=True, check=False, timeout=SOON, cwd=self.directory,
        )  # fmt: skip
        if check and done.returncode:
            raise ClusterError(f"{' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    def submit(self, run: int, *options: str) -> str:
        """Submit a job that runs for some seconds of the clock; return its id."""
        output = f"{self.directory}/out/%j"
        script = f"#!{self.directory}/fast_job {run}\n"
        return self.run("sbatch", "--parsable", "-o", output, *options, script=script).strip()

    def shown_jobs(self) -> str:
        """Return a line of scontrol for each job, once all have ended with their epilogs."""
        self._await(lambda: not self.run("squeue", "-h"))
        return self.run("scontrol", "-o", "show", "jobs")

    def set_site_factor(self, job: str, factor: int) -> None:
        """Set the SiteFactor of a job."""
        self.run("scontrol", "update", f"JobId={job}", f"SiteFactor={factor}")

    def reports(self) -> list[tuple[str, str]]:
        """Return the lines that jobs have written since the last call: an id, an end or ``?``."""
        return read_reports(self._pipe)

    def store_starts(self, jobs: Sequence[str]) -> None:
        """Say to jobs of a Slurm before 23.02 when they started."""
        lines = self.run("squeue", "-h", "-t", "R", "-o", "%A %S").splitlines()
        starts = dict(line.split() for line in lines)
        written = self.directory / "start"
        for job in jobs:
            if job in starts:
                written.write_text(f"{unix_of(starts[job]):.0f}\n")
                written.rename(f"{self.clock.file}.start.{job}")

    def log(self) -> str:
        """Return what the daemons wrote."""
        files = [*self.directory.glob("slurmctld.log"), *self.directory.glob("*.out")]
        return "".join(file.read_text(errors="replace") for file in files)

    def __exit__(self, *exception: object) -> None:
        if self._daemons and self._daemons[0].poll() is None:
            with contextlib.suppress(ClusterError, subprocess.TimeoutExpired):
                if left := self.run("squeue", "-h", "-o", "%A").split():
                    self.run("scancel", "-f", *left)
        for daemon in self._daemons:
            daemon.terminate()
        end = time.monotonic() + PATIENCE
        for daemon in self._daemons:
            try:
                daemon.wait(max(0.01, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        os.close(self._pipe)
        self._guard.close()
