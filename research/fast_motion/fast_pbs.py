"""A real OpenPBS whose daemons live by the clock of a play, on a machine of its own."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from fast_clock import FastClock, compile_into, open_reports, read_reports
from fast_cluster import START, ClusterError
from guard import Guard
from played_pbs import PlayedServer

sys.path.append(str(Path(__file__).parents[2] / "tests/support"))

from private_machine import USER
from private_pbs import HOME, PREFIX, PrivatePbs

SCHEDULER_SETTINGS = HOME / "sched_priv/sched_config"

MEMORY = Path("/dev/shm")  # noqa: S108 - what PBS writes to a disk would take seconds of the clock

USUAL_ITERATION = "set server scheduler_iteration = 600"
"""As PBS comes; tests have shorter ones."""

PIECE = "0.003"
"""Real seconds after which a waiting daemon looks at the clock again."""

SOFT_WALLTIMES = """\
import pbs
job = pbs.event().job
if job.Account_Name:
    job.Resource_List["soft_walltime"] = pbs.duration(int(job.Account_Name))
"""
"""A hook that makes the account name of a job its soft walltime, which PBS lets no user set."""

PRINTED = {
    "server.txt": ("qmgr", "-c", "print server"),
    "sched.txt": ("qmgr", "-c", "print sched"),
    "qstat.txt": ("qstat", "-Bf"),
    "nodes.txt": ("pbsnodes", "-av"),
    "sched_config": ("cat", str(SCHEDULER_SETTINGS)),
}
"""Files of a directory that says how a server is configured, and the commands that print them."""


class PbsRecords:
    """Starts and ends in PBS's accounting log."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read: dict[Path, int] = {}
        self._ends = 0

    def starts(self) -> Iterator[str]:
        """Yield the ids of the jobs that were started since the last call."""
        for file in sorted(self._directory.glob("*")):
            read = self._read.get(file, 0)
            if file.stat().st_size == read:
                continue
            with file.open("rb") as opened:
                opened.seek(read)
                text = opened.read()
            whole = text.rfind(b"\n") + 1
            self._read[file] = read + whole
            for line in text[:whole].decode("utf-8", "replace").splitlines():
                _, kind, job, _ = line.split(";", 3)
                self._ends += kind == "E"
                if kind == "S":
                    yield job

    def ends(self) -> int:
        """Return the number of ends among what was read."""
        return self._ends


class FastPbs(PrivatePbs):
    """A running server; use it in a ``with`` block.

    Args:
        played: what is played of a site's configuration.

    Attributes:
        clock: the clock of the play.
        records: starts and ends of jobs.
    """

    def __init__(self, played: PlayedServer) -> None:
        super().__init__(MEMORY)
        self._played = played
        self.clock = FastClock(self.directory / "clock", START)
        self._guard = Guard(self.clock.file)
        self.records = PbsRecords(self.home / "server_priv/accounting")
        self._pipe = open_reports(self.clock)

    def _start_daemons(self) -> None:
        compile_into(self.directory)
        self.write(str(SCHEDULER_SETTINGS), self._played.sched_config)
        nodes = self.directory / "nodes"
        nodes.write_text(self._played.vnodes())
        self.run(PREFIX / "sbin/pbs_mom", "-s", "insert", "nodes", nodes)
        # Else the server starts its database, which would live by the clock, too.
        self.run(PREFIX / "sbin/pbs_dataservice", "start")
        super()._start_daemons()
        hook = self.directory / "soft_walltimes.py"
        hook.write_text(SOFT_WALLTIMES)
        hooks = (
            "create hook soft_walltimes",
            "set hook soft_walltimes event = queuejob",
            f"import hook soft_walltimes application/x-python default {hook}",
        )
        for command in (USUAL_ITERATION, *hooks, *self._played.commands):
            self.qmgr(command)

    def start_daemon(self, name: str) -> None:
        """Start a daemon that lives by the clock."""
        words = [
            "env", f"LD_PRELOAD={self.directory}/fast_clock.so", f"FAST_CLOCK={self.clock.file}",
            f"FAST_CLOCK_PIECE={PIECE}", "FAST_CLOCK_EPOLL=1", PREFIX / "sbin" / name,
        ]  # fmt: skip
        self.run(*words, timeout=120)

    def scheduler_log(self) -> str:
        """Return what the scheduler wrote."""
        files = sorted((self.home / "sched_logs").glob("*"))
        return "".join(file.read_text(errors="replace") for file in files)

    def version(self) -> str:
        """Return the release of PBS."""
        return self.run("qstat", "--version").split()[-1]

    def submit(self, run: int, *options: str) -> str:
        """Submit a job that runs for some seconds of the clock; return its id."""
        clock = f"FAST_CLOCK={self.clock.file}"
        words = ["qsub", "-f", "-j", "oe", "-R", "oe", "-v", clock, *options]
        return self.run(*words, "--", self.directory / "fast_job", run, user=USER).strip()

    def set_site_factor(self, job: str, factor: int) -> None:
        """Refuse: PBS has no site factors.

        Raises:
            ClusterError: always.
        """
        raise ClusterError(f"PBS has no site factors: {job} cannot have {factor}.")

    def reports(self) -> list[tuple[str, str]]:
        """Return the lines that jobs have written since the last call: an id, an end or ``?``."""
        return read_reports(self._pipe)

    def store_starts(self, jobs: Sequence[str]) -> None:
        """Do nothing: jobs of PBS run from their launch."""

    def __exit__(self, *exception: object) -> None:
        os.close(self._pipe)
        super().__exit__(*exception)
        self._guard.close()
