"""A private Slurm on this machine, for tests: munged, slurmctld and slurmd in one directory.

Runs as root or as any one ordinary user, needs nothing configured, and leaves nothing behind.
WALLTIMED_TEST_SLURM_ROOT names the tree of another Debian release (make slurm-root): then every
program of Slurm's runs in there, which takes root.
"""

import contextlib
import getpass
import os
import pwd
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

import slurm_accounting
from running_service import eventually

ROOT = Path(os.environ.get("WALLTIMED_TEST_SLURM_ROOT", "/"))

# Its mounts end with the program; files of tests are where they are outside.
ENTER = """
mount --bind /tmp "$0/tmp"
mount --rbind /dev "$0/dev"
mount -t proc proc "$0/proc"
exec chroot "$0" "$@"
"""

DAEMONS = ("/usr/sbin/slurmctld", "/usr/sbin/slurmd", "/usr/sbin/munged")
PLUGINS = ("job_submit_lua.so", "cli_filter_lua.so", "jobcomp_elasticsearch.so")
COMMANDS = ("sacct", "sbatch", "scancel", "scontrol", "sinfo", "sprio", "squeue")
FINAL = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")

CONF = """\
ClusterName={cluster}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={directory}/munge/socket
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool/%n
SlurmctldPidFile={directory}/run/slurmctld.pid
SlurmdPidFile={directory}/run/slurmd.%n.pid
SlurmctldLogFile={directory}/log/slurmctld.log
SlurmdLogFile={directory}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,sched_interval=5
PriorityType=priority/basic
SlurmdParameters=config_overrides
DebugFlags=NO_CONF_HASH
ReturnToService=2
KillWait=2
MinJobAge=300
JobSubmitPlugins=lua
CliFilterPlugins=lua
JobCompType=jobcomp/elasticsearch
JobCompLoc={jobcomp}
{nodes}
PartitionName=short Nodes=ALL Default=YES MaxTime=60 DefaultTime=10 State=UP
PartitionName=long Nodes=ALL MaxTime=UNLIMITED DefaultTime=60 State=UP
"""


def reason_to_skip() -> str | None:
    """Why there can be no private Slurm here; None if there can."""
    missing = [daemon for daemon in DAEMONS if not os.path.lexists(f"{ROOT}{daemon}")]
    plugins = ROOT / "usr" / "lib"
    missing += [name for name in PLUGINS if not list(plugins.glob(f"*/slurm-wlm/{name}"))]
    made_by = "make slurm" if Path("/") == ROOT else "make slurm-root"
    return f"needs {', '.join(missing)} ({made_by})" if missing else None


def within(root: Path) -> list[str]:
    """What comes before a command that runs in the tree ``root``."""
    if Path("/") == root:
        return []
    unshare = ["unshare", "--mount", "--propagation", "private"]
    return [*unshare, "sh", "-euc", ENTER, str(root)]


class PrivateSlurm:
    """A running cluster; use it in a ``with`` block.

    Args:
        scripts: files that lie beside slurm.conf, job_submit.lua among them.
        jobcomp: the URL that completions go to.
        nodes: number of them, of eight processors each by default.
        settings: of slurm.conf, instead of those above; None leaves one out.
        cluster: its name.
        prefix: what comes before every command of Slurm's.
        keeps_accounts: whether it has a slurmdbd, for sacct.
        hardware: of each node.

    Attributes:
        environment: in which programs of a test find this cluster and its commands.
    """

    def __init__(
        self,
        scripts: list[Path],
        jobcomp: str,
        nodes: int = 2,
        settings: dict[str, str | None] | None = None,
        *,
        cluster: str = "private",
        prefix: list[str] | None = None,
        keeps_accounts: bool = False,
        hardware: str = "CPUs=8",
    ) -> None:
        self.hardware = hardware
        self.prefix = within(ROOT) if prefix is None else prefix
        self.cluster = cluster
        self.directory = Path(tempfile.mkdtemp(prefix="slurm-"))
        self.directory.chmod(0o755)  # munged refuses a socket below a closed directory
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._accounts = free_ports(2) if keeps_accounts else None
        self._database: slurm_accounting.MariaDB | None = None
        for part in ("etc", "munge", "log", "state", "run", *(f"spool/n{i}" for i in range(nodes))):
            (self.directory / part).mkdir(parents=True, mode=0o755)
        for script in scripts:
            shutil.copy(script, self.directory / "etc")
        self.conf = self.directory / "etc" / "slurm.conf"
        self.nodes = nodes
        lines = [
            line
            for line in self._conf(jobcomp).splitlines()
            if line.partition("=")[0] not in (settings or {})
        ]
        lines += [f"{name}={value}" for name, value in (settings or {}).items() if value]
        if self._accounts:
            port, _ = self._accounts
            lines.append(slurm_accounting.SLURM_CONF.format(directory=self.directory, port=port))
        self.conf.write_text("\n".join(lines) + "\n")
        commands = self._make_commands()
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "SBATCH"))}
        self.environment = inherited | {"SLURM_CONF": str(self.conf), "LC_ALL": "C.UTF-8"}
        self._environment = dict(self.environment)
        self.environment["PATH"] = f"{commands}:{os.environ['PATH']}"
        self.version = self.run("sinfo", "--version").split()[-1]
        if tuple(map(int, self.version.split(".")[:2])) >= (23, 2):
            (self.conf.parent / "cgroup.conf").write_text("CgroupPlugin=disabled\n")

    def _make_commands(self) -> Path:
        """A directory of Slurm's commands for programs that call them by name."""
        directory = self.directory / "bin"
        directory.mkdir()
        for name in COMMANDS if self.prefix else ():
            (directory / name).write_text(
                f'#!/bin/sh\nexec {shlex.join([*self.prefix, f"/usr/bin/{name}"])} "$@"\n'
            )
            (directory / name).chmod(0o755)
        return directory

    def _conf(self, jobcomp: str) -> str:
        host = socket.gethostname().partition(".")[0]
        controller, *ports = free_ports(1 + self.nodes)
        nodes = (
            f"NodeName=n{i} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} {self.hardware} "
            "RealMemory=4000 State=UNKNOWN"
            for i, port in enumerate(ports)
        )
        return CONF.format(
            cluster=self.cluster,
            directory=self.directory,
            host=host,
            port=controller,
            user=pwd.getpwuid(os.getuid()).pw_name,
            jobcomp=jobcomp,
            nodes="\n".join(nodes),
        )

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self) -> None:
        munge = self.directory / "munge"
        key = munge / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        self._spawn(
            "munged", "/usr/sbin/munged", "--foreground", f"--key-file={key}",
            f"--socket={munge / 'socket'}", f"--pid-file={munge / 'pid'}",
            f"--log-file={munge / 'log'}", f"--seed-file={munge / 'seed'}",
        )  # fmt: skip
        eventually((munge / "socket").exists)
        if self._accounts:
            self._start_accounts(*self._accounts)
        self.start_controller()
        for i in range(self.nodes):
            self._spawn(f"n{i}", "/usr/sbin/slurmd", "-D", "-f", str(self.conf), "-N", f"n{i}")
        eventually(self._is_idle, seconds=60)

    def _start_accounts(self, port: int, sql_port: int) -> None:
        self._database = slurm_accounting.MariaDB(self.directory, sql_port)
        conf = self.conf.with_name("slurmdbd.conf")
        conf.touch(mode=0o600)
        user = pwd.getpwuid(os.getuid()).pw_name
        ports = {"port": port, "sql_port": sql_port}
        conf.write_text(slurm_accounting.slurmdbd_conf(self.directory, user=user, **ports))
        self._spawn("slurmdbd", "/usr/sbin/slurmdbd", "-D")
        add = ("sacctmgr", "-i", "add", "cluster", self.cluster)
        eventually(lambda: "Adding" in self.run(*add, check=False), seconds=120)

    def start_controller(self, *options: str) -> None:
        """Start slurmctld; Debian's links need this name, which slurmctld looks at."""
        self._spawn("slurmctld", "/usr/sbin/slurmctld", "-D", *options, "-f", str(self.conf))
        eventually(lambda: "UP" in self.run("scontrol", "ping", check=False), seconds=60)
        # Slurm 22.05 else holds the events of its first 30 s: its thread waits for a signal.
        os.kill(self._pid("slurmctld"), signal.SIGUSR2)

    def restart_controller(self) -> None:
        """End slurmctld and start it again, as after a change of its plug-ins."""
        os.kill(self._pid("slurmctld"), signal.SIGTERM)
        self.daemons["slurmctld"].wait(30)
        self.start_controller()

    def lose_controller(self) -> None:
        """Kill slurmctld, with all documents that it has not sent, and start it again."""
        self.save_jobs()
        os.kill(self._pid("slurmctld"), signal.SIGKILL)
        self.daemons["slurmctld"].wait(30)
        self.start_controller("-i")  # 26.05 saves its shares after minutes, and misses them

    def save_jobs(self) -> None:
        """Let slurmctld save what it knows of its jobs; else a next one would run the last again.

        It saves a few seconds after a change, which is made here: a job is submitted that is held.
        """
        now = time.time()
        self.sbatch("--hold", "-t", "1")
        eventually(lambda: self._saved_at() > now)

    def _saved_at(self) -> float:
        """When jobs were saved; 0 while slurmctld puts the new file in the place of the last."""
        try:
            return (self.directory / "state" / "job_state").stat().st_mtime
        except FileNotFoundError:
            return 0.0

    def _pid(self, name: str) -> int:
        """The number of a daemon, which may be the child of what entered its machine."""
        pid = self.daemons[name].pid
        if self.prefix[:1] != ["nsenter"]:
            return pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])

    def _spawn(self, name: str, *command: str) -> None:
        with (self.directory / "log" / f"{name}.out").open("ab") as output:
            self.daemons[name] = subprocess.Popen(
                [*self.prefix, *command], stdin=subprocess.DEVNULL, stdout=output,
                stderr=subprocess.STDOUT, env=self._environment, cwd=self.directory,
            )  # fmt: skip

    def _is_idle(self) -> bool:
        dead = [name for name, daemon in self.daemons.items() if daemon.poll() is not None]
        assert not dead, f"{dead} ended: {self.log()[-2000:]}"
        states = self.run("sinfo", "-h", "-N", "-p", "short", "-o", "%T", check=False).split()
        return states.count("idle") == self.nodes

    def __exit__(self, *exception: object) -> None:
        if self._runs("slurmctld"):
            with contextlib.suppress(Exception):
                self._cancel_all()
        for daemon in reversed(self.daemons.values()):
            if daemon.poll() is None:
                daemon.terminate()
        for daemon in reversed(self.daemons.values()):
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        if self._database is not None:
            self._database.close()
        self._kill_orphans()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _runs(self, name: str) -> bool:
        return name in self.daemons and self.daemons[name].poll() is None

    def _cancel_all(self) -> None:
        """Jobs outlive the daemons: they are ended first."""
        if jobs := self.run("squeue", "-h", "-o", "%A", timeout=10).split():
            self.run("scancel", "-f", *jobs, timeout=10, check=False)
            self.run("scancel", "-s", "KILL", *jobs, timeout=10, check=False)
        eventually(lambda: not self.run("squeue", "-h", "-t", "R,S,CG"), seconds=10)

    def _kill_orphans(self) -> None:
        """End what steps this cluster, and no other, has left behind."""
        mark = f"SLURM_CONF={self.conf}".encode()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (process / "environ").read_bytes().split(b"\0")
                if mark in words and int(process.name) != os.getpid():
                    os.kill(int(process.name), signal.SIGKILL)

    def run(self, *command: str, check: bool = True, timeout: float = 60) -> str:
        """A command of Slurm's and what it printed."""
        done = subprocess.run(
            [*self.prefix, *map(str, command)], env=self._environment, capture_output=True,
            check=False, timeout=timeout, cwd=self.directory,
        )  # fmt: skip
        assert not check or done.returncode == 0, f"{command}: {done.stderr.decode()}"
        return done.stdout.decode("utf-8", "replace")

    def told(self, *command: str) -> str:
        """What a command of Slurm's wrote to its user's terminal."""
        done = subprocess.run(
            [*self.prefix, *command], env=self._environment | {"LOGNAME": getpass.getuser()},
            capture_output=True, check=True, timeout=60, cwd=self.directory,
        )  # fmt: skip
        return done.stderr.decode("utf-8", "replace")

    def sbatch(self, *arguments: str, script: str = "true") -> int:
        """Submit a job; its id."""
        return int(
            self.run("sbatch", "--parsable", "-o", "/dev/null", *arguments, "--wrap", script).split(
                ";"
            )[0]
        )

    def job(self, job_id: int) -> dict[str, str]:
        """What scontrol shows of a job."""
        shown = self.run("scontrol", "-o", "show", "job", str(job_id), check=False)
        return dict(pair.partition("=")[::2] for pair in shown.split() if "=" in pair)

    def await_end(self, *job_ids: int, seconds: float = 60) -> None:
        """Wait until jobs have ended."""
        for job_id in job_ids:
            eventually(
                lambda job_id=job_id: self.job(job_id).get("JobState", "").startswith(FINAL),
                seconds=seconds,
            )

    def log(self) -> str:
        """What slurmctld wrote."""
        logs = [*self.directory.glob("log/slurmctld.log"), *self.directory.glob("log/*.out")]
        return "".join(log.read_text(errors="replace") for log in logs)


def free_ports(wanted: int) -> list[int]:
    """Ports that nobody used a moment ago, all different."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(wanted)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
