"""A private Slurm and a real service connected to it, as an administrator connects them."""

import getpass
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Self

import httpx
from patience import BUSY_SECONDS
from private_slurm import PrivateSlurm, free_ports
from running_service import WALLTIMED, eventually
from runs import runs_by_job
from slurm_scripts import SCRIPTS, lua_value

CLUSTER = "private"
CLI_CONFIG = "walltimed_cli_config.lua"


class SlurmSite:
    """Both sides; use it in a ``with`` block.

    Args:
        slurm_settings: of slurm.conf.
        hides_names: whether the service has a key for pseudonyms.
        keeps_accounts: whether Slurm has a slurmdbd.
        hardware: of each node, as in slurm.conf.
        forwards: whether completions go through the forwarder, and every call needs a token.
        config: of walltimed.lua.
    """

    def __init__(
        self,
        *,
        slurm_settings: dict[str, str | None] | None = None,
        hides_names: bool = False,
        forwards: bool = False,
        keeps_accounts: bool = False,
        hardware: str = "CPUs=8",
        **config,
    ) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="walltimed-"))
        self.url = f"sqlite:///{self.directory / 'history.sqlite3'}"
        self.environment = dict(os.environ)
        self.tokens: dict[str, str] = {}
        if hides_names:
            key = self.directory / "key"
            key.write_bytes(os.urandom(48).hex().encode())
            key.chmod(0o600)
            self.environment["WALLTIMED_PSEUDONYM_KEY_FILE"] = str(key)
        self.port, self.forwarding_port = free_ports(2)
        self.process: subprocess.Popen[bytes] | None = None
        self.forwarder: subprocess.Popen[bytes] | None = None
        base = f"http://walltimed:unused@127.0.0.1:{self.port}"
        self.client = httpx.Client(base_url=base, timeout=20)
        if forwards:
            base = f"http://127.0.0.1:{self.forwarding_port}"
            self.tokens = {scope: self._token(scope) for scope in ("ingest", "predict", "admin")}
            self.client.auth = None
            self.client.headers["Authorization"] = f"Bearer {self.tokens['admin']}"
            file = self.directory / "filter-token"
            file.write_text(self.tokens["predict"])
            config["token_file"] = str(file)
        for script in SCRIPTS.glob("*.lua"):
            shutil.copy(script, self.directory)
        settings = {"port": self.port, **config}
        advice = settings | {"mode": "off" if settings.get("mode") == "off" else "advise"}
        for name, chosen in (("walltimed_config.lua", settings), (CLI_CONFIG, advice)):
            (self.directory / name).write_text(f"return {lua_value(chosen)}")
        self.scripts = sorted(self.directory.glob("*.lua"))
        self.slurm = PrivateSlurm(
            self.scripts,
            f"{base}/v1/adapters/slurm/jobcomp?cluster={CLUSTER}",
            settings=slurm_settings,
            cluster=CLUSTER,
            keeps_accounts=keeps_accounts,
            hardware=hardware,
        )

    def _token(self, scope: str) -> str:
        command = [WALLTIMED, "token", "issue", scope, "-s", scope, "--database-url", self.url]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[
            -1
        ]

    def _start_forwarder(self) -> None:
        """As the unit does, but for the port and for the user who runs this Slurm."""
        file = self.directory / "token"
        file.write_text(self.tokens["ingest"])
        command = [sys.executable, "-SE", SCRIPTS / "walltimed_forwarder.py", "--token-file", file]
        command += ["--url", f"http://127.0.0.1:{self.port}", "--user", getpass.getuser()]
        command += ["--port", str(self.forwarding_port)]
        with (self.directory / "forwarder.log").open("ab") as log:
            self.forwarder = subprocess.Popen(command, stderr=log)

    def __enter__(self) -> Self:
        self.start_service()
        if "ingest" in self.tokens:
            self._start_forwarder()
        self.slurm.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self.slurm.__exit__()
        if self.forwarder is not None:
            self.forwarder.terminate()
            assert self.forwarder.wait(30) == 0
        self.end_service(signal.SIGKILL)
        self.client.close()
        shutil.rmtree(self.directory)

    def start_service(self) -> None:
        """Start the service, or start it again."""
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [WALLTIMED, "serve", "--port", str(self.port), "--database-url", self.url],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                cwd=self.directory, env={"WALLTIMED_METHOD": "max-usage"} | self.environment,
            )  # fmt: skip
        eventually(self._is_ready, seconds=60)

    def revive_service(self) -> None:
        """Let it run again, whatever a test did to it."""
        self.process.send_signal(signal.SIGCONT)
        if self.process.poll() is not None:
            self.start_service()

    def _is_ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.directory / "log").read_text()
        try:
            return self.client.get("/health/ready").status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def end_service(self, number: signal.Signals) -> None:
        """End the service by a signal."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(number)
            self.process.wait(30)

    def runs(self) -> dict[str, list]:
        """What the history holds, by job id."""
        return runs_by_job(self.url)

    def await_runs(self, *job_ids: int, seconds: float = 60) -> dict[str, list]:
        """The history once it holds a run of each of these jobs."""
        wanted = set(map(str, job_ids))
        return eventually(
            lambda: found if wanted <= (found := self.runs()).keys() else None, seconds=seconds
        )

    def submit_in_time(self, *arguments: str) -> int:
        """Submit a job, which a service that is away or hangs must not hold up."""
        began = time.monotonic()
        job = self.slurm.sbatch(*arguments)
        assert time.monotonic() - began < BUSY_SECONDS
        return job
