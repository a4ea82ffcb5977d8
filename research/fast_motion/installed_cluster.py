"""A Slurm in fast motion with walltimed beside it, as a site installs it: nothing is foreseen."""

import json
import re
import shutil
import sys
import tempfile
from collections.abc import Collection, Mapping
from datetime import datetime
from os import environ, getuid
from pathlib import Path
from pwd import getpwuid
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
from fast_cluster import PATH, ClusterError, FastCluster, free_ports, mount_apart
from installation import CLUSTER, ZERO, Installation
from played_conf import PlayedConf
from slurm_accounting import SLURM_CONF, MariaDB, reason_to_skip, slurmdbd_conf

from service.store import ReportedCompletion, open_store

SCRIPTS = Path(__file__).parents[2] / "integrations/slurm"

SETTINGS = """\
JobSubmitPlugins=lua
JobCompType=jobcomp/elasticsearch
JobCompLoc=http://127.0.0.1:{port}/v1/adapters/slurm/jobcomp?cluster={cluster}
"""

FILTER = """\
return {{
  mode = "order", order = "response-ratio", port = {port}, budget_ms = {budget_ms}, facts = false,
}}
"""
"""The one script of all jobs and its directory say nothing of the log's jobs."""

BUDGET_MS = 600_000
"""The filter's 200 ms, at the fastest clock: luasocket looks at the clock of the play."""

FIRST_USER = 20_000

OF_FACTOR = re.compile(r"-?\d+")


def check_installed(root: Path) -> None:
    """Check that a play with walltimed is possible.

    Raises:
        ClusterError: it is not; the message says why.
    """
    missing = reason_to_skip(root)
    if root != Path("/"):
        missing = "needs the Slurm of this machine, whose slurmctld finds lua-socket and the users"
    elif getuid():
        missing = "needs root, for the users of the log"
    if missing:
        raise ClusterError(f"A play with walltimed {missing}.")


def add_users(names: Collection[str]) -> None:
    """Let users exist for this process and its children alone; needs root."""
    file = Path(tempfile.mkdtemp(prefix="walltimed-")) / "passwd"
    users = (f"{name}:x:{FIRST_USER + n}:100::/:/bin/sh\n" for n, name in enumerate(names))
    file.write_text(Path("/etc/passwd").read_text() + "".join(users))
    file.chmod(0o644)
    mount_apart(("--bind", str(file), "/etc/passwd"))
    shutil.rmtree(file.parent)


class InstalledCluster(FastCluster):
    """A cluster whose filter asks a running service; use it in a ``with`` block.

    The service, the updater and slurmdbd live by the clock of the play: where a request has no
    submit time the service takes its own, and predictions depend on it.

    Args:
        conf: what is played of a site's slurm.conf.
        installation: what the service knows when it starts.

    Attributes:
        installation: what the service knows when it starts.
        factors: site factors that the filter has set, by job id, without those of jobs that were
            started before sprio showed them.
    """

    def __init__(self, conf: PlayedConf, installation: Installation) -> None:
        super().__init__(conf, Path("/"))
        self.zero = ZERO
        self.installation = installation
        self._port, self._accounts, self._sql = free_ports(3)
        self._database: MariaDB | None = None
        self.factors: dict[str, int] = {}

    def _settings(self) -> str:
        ours = SETTINGS.format(port=self._port, cluster=CLUSTER)
        return ours + SLURM_CONF.format(directory=self.directory, port=self._accounts)

    def _start_beside(self) -> None:
        for part in ("log", "run"):
            (self.directory / part).mkdir()
        for script in SCRIPTS.glob("*.lua"):
            shutil.copy(script, self.directory / "etc")
        settings = FILTER.format(port=self._port, budget_ms=BUDGET_MS)
        (self.directory / "etc/walltimed_config.lua").write_text(settings)
        self._start_service()
        self._start_accounts()

    def _start_service(self) -> None:
        url = f"sqlite:///{self.directory}/history.sqlite3"
        store = open_store(url)
        store.upgrade()
        history = self.installation.history
        list(store.store_reports(ReportedCompletion(completion=run) for run in history))
        store.close()
        settings = {"CONFIG": "", "METHOD": self.installation.method, "TUNING": "off"}
        words = ("serve", "--port", str(self._port), "--database-url", url)
        self._spawn_ours("service", *words, settings=settings)
        self._await(self._is_ready)

    def _spawn_ours(
        self, name: str, *words: str, settings: Mapping[str, str] | None = None
    ) -> None:
        ours = {f"WALLTIMED_{key}": value for key, value in (settings or {}).items()}
        program = str(Path(sys.executable).with_name("walltimed"))
        self._spawn(name, program, *words, inherited={**environ, "PATH": PATH, **ours})

    def _is_ready(self) -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{self._port}/health/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except (URLError, OSError):
            return False

    def _start_accounts(self) -> None:
        """Start slurmdbd: without it slurmctld lets no job age."""
        self._database = MariaDB(self.directory, self._sql)
        conf = self.directory / "etc/slurmdbd.conf"
        conf.touch(mode=0o600)
        user = getpwuid(getuid()).pw_name
        conf.write_text(
            slurmdbd_conf(
                self.directory, user=user, port=self._accounts, sql_port=self._sql, auth="none"
            )
        )
        self._spawn("slurmdbd", "/usr/sbin/slurmdbd", "-D")
        add = ("sacctmgr", "-i", "add", "cluster", CLUSTER)
        self._await(lambda: "Adding" in self.run(*add, check=False))

    def _start(self) -> None:
        super()._start()
        after = f"{max(0.1, self.installation.first_after / 3600):.2f}"
        words = ("--mode", "off", "--order", "response-ratio", "--first-after", after)
        words += ("--interval", "1", "--no-hand-over", "--log-level", "debug")
        words += ("--slurmctld-share", "100")  # its milliseconds are seconds of the fast clock
        url = f"http://127.0.0.1:{self._port}"
        self._spawn_ours("updater", "slurm-updater", "--url", url, *words)

    def submit(self, run: int, *options: str) -> str:
        """Submit a job that runs for some seconds of the clock; return its id."""
        job = super().submit(run, *options)
        shown = self.run("sprio", "-h", "-j", job, "-o", "%S", check=False)
        if found := OF_FACTOR.search(shown):
            self.factors[job] = int(found[0])
        return job

    def rounds(self) -> dict[str, float]:
        """Return the number of the updater's rounds, their pauses, and what they changed.

        Pauses are seconds of the clock.
        """
        lines = (self.directory / "updater.out").read_text().splitlines()
        records = [json.loads(line) for line in lines if line.startswith("{")]
        found = [each for each in records if each["event"] == "looked at the queue"]
        times = [datetime.fromisoformat(each["timestamp"]).timestamp() for each in found]
        pauses = np.diff([time for time in times if time >= ZERO])
        return {
            "rounds": len(pauses) + 1,
            "median_pause": round(float(np.median(pauses)), 1),
            "longest_pause": round(float(pauses.max()), 1),
            "updated": sum(each["updated"] for each in found),
            "refused": sum(each["refused"] for each in found),
            "failed": sum("failed" in each["event"] for each in records),
        }

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        if self._database is not None:
            self._database.close()
