"""A private OpenPBS on a machine of its own, for tests.

PBS refuses to serve on a loopback address, and keeps its home in one fixed place.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Self

import private_machine
from private_machine import ADDRESS, USER, PrivateMachine
from running_service import eventually

PREFIX = Path(os.environ.get("WALLTIMED_TEST_OPENPBS", "/none"))
MISSING = "needs OpenPBS, where WALLTIMED_TEST_OPENPBS says (make openpbs SOURCE=…)"
HOME = Path("/var/spool/pbs")
HOST = "pbsnode"

CONF = f"""\
PBS_EXEC={PREFIX}
PBS_HOME={HOME}
PBS_SERVER={HOST}
PBS_START_SERVER=1
PBS_START_SCHED=1
PBS_START_COMM=1
PBS_START_MOM=1
PBS_CORE_LIMIT=0
PBS_LOG_HIGHRES_TIMESTAMP=1
"""

MOUNTS = f"""
mount -t tmpfs -o mode=755 tmpfs /var/spool
mkdir {HOME}
mount --bind "$1/home" {HOME}
"""

# What pbs_postinstall makes; pbs_habitat then makes the database, the queue and the node.
DIRECTORIES = {
    "server_logs": 0o755, "spool": 0o1777, "server_priv": 0o750, "server_priv/accounting": 0o755,
    "server_priv/jobs": 0o750, "server_priv/users": 0o750, "server_priv/hooks": 0o750,
    "server_priv/hooks/tmp": 0o750, "sched_logs": 0o755, "sched_priv": 0o750, "comm_logs": 0o755,
    "aux": 0o755, "checkpoint": 0o700, "mom_logs": 0o755, "mom_priv": 0o751,
    "mom_priv/jobs": 0o751, "mom_priv/hooks": 0o750, "mom_priv/hooks/tmp": 0o750,
    "undelivered": 0o1777,
}  # fmt: skip
COPIED = {
    "pbs_dedicated": "dedicated_time",
    "pbs_holidays": "holidays",
    "pbs_resource_group": "resource_group",
    "pbs_sched_config": "sched_config",
}
DAEMONS = ("pbs_comm", "pbs_mom", "pbs_sched", "pbs_server")


def reason_to_skip() -> str | None:
    """Why there can be no private PBS here; None if there can."""
    if not (PREFIX / "sbin" / "pbs_server").exists():
        return MISSING
    return private_machine.reason_to_skip()


class PrivatePbs(PrivateMachine):
    """A running server with one node of this machine's cores; use it in a ``with`` block.

    Args:
        parent: where its files are; by default where temporary files are.

    Attributes:
        home: PBS_HOME as it is called outside.
    """

    def __init__(self, parent: Path | None = None) -> None:
        paths = (PREFIX / "bin", PREFIX / "sbin")
        super().__init__(HOST, paths=paths, mounts=MOUNTS, parent=parent)
        self.home = self.directory / "home"

    def __enter__(self) -> Self:
        self._make_home()
        super().__enter__()
        try:
            self.write("/etc/pbs.conf", CONF)
            self.write("/etc/hosts", f"127.0.0.1 localhost\n{ADDRESS} {HOST}\n")
            self.run("usermod", "--shell", "/bin/bash", "postgres")
            self.run(PREFIX / "libexec" / "pbs_habitat", timeout=180)
            self._start_daemons()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make_home(self) -> None:
        for name, mode in DIRECTORIES.items():
            (self.home / name).mkdir(parents=True)
            (self.home / name).chmod(mode)
        for source, name in COPIED.items():
            shutil.copy(PREFIX / "etc" / source, self.home / "sched_priv" / name)
        for hook in PREFIX.glob("lib*/python/altair/pbs_hooks/*"):
            if not hook.name.startswith("PBS_xeon_phi_provision"):
                shutil.copy(hook, self.home / "server_priv" / "hooks")
        (self.home / "pbs_environment").write_text("TZ=UTC\nPATH=/bin:/usr/bin\n")
        (self.home / "mom_priv" / "config").write_text("$usecp *:/ /\n")
        database_user = self.home / "server_priv" / "db_user"
        database_user.write_text("postgres")
        database_user.chmod(0o600)

    def _start_daemons(self) -> None:
        for daemon in DAEMONS:
            self.start_daemon(daemon)
        eventually(lambda: "state = free" in self.run("pbsnodes", "-a", check=False), seconds=60)
        self.qmgr("set server scheduler_iteration = 5")
        self.qmgr("set server job_history_enable = true")

    def start_daemon(self, name: str) -> None:
        """Start a daemon of PBS."""
        self.run(PREFIX / "sbin" / name, timeout=120)

    def qmgr(self, command: str) -> str:
        """One command of a manager's."""
        return self.run("qmgr", "-c", command)

    def qsub(self, *options: object, script: str = "sleep 1", user: str = USER) -> str:
        """Submit a job as a user; its id."""
        words = ["qsub", "-o", "/dev/null", "-e", "/dev/null", *options]
        return self.run(*words, user=user, stdin=f"#!/bin/sh\n{script}\n").strip()

    def job(self, job_id: str) -> dict[str, str]:
        """What qstat shows of a job, ended or not."""
        shown = json.loads(self.run("qstat", "-x", "-f", "-F", "json", job_id))
        return next(iter(shown["Jobs"].values()))

    def await_end(self, *job_ids: str, seconds: float = 90) -> None:
        """Wait until jobs have ended."""
        for job_id in job_ids:
            eventually(lambda job_id=job_id: self.job(job_id)["job_state"] in "FX", seconds=seconds)

    def server_log(self) -> str:
        """What the server wrote."""
        logs = sorted((self.home / "server_logs").glob("*"))
        return "".join(log.read_text(errors="replace") for log in logs)

    def accounting_log(self) -> str:
        """What the accounting log says."""
        logs = sorted((self.home / "server_priv" / "accounting").glob("*"))
        return "".join(log.read_text(errors="replace") for log in logs)
