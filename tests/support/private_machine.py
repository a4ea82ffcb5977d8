"""A machine of one's own on this one, for tests: mounts, host name, network and processes apart.

What is changed below /etc, /usr/share and /var/lib is changed in a layer over them; the network is
loopback and one address on it. All of it ends with the ``with`` block. Root only.
"""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from running_service import WALLTIMED, eventually

ROOT = Path(__file__).parents[2]
ADDRESS = "10.77.0.1"
USER, USER_ID = "alice", 4711
STATE = "/var/lib/walltimed"
SHARE = "/usr/share/walltimed"
LAYERED = ("/etc", "/usr/share", "/var/lib")

FORBID_NEW_PRIVILEGES = ("NoNewPrivileges", "PrivateDevices", "RestrictAddressFamilies")
"""Settings by which systemd lets no program of a unit with a user be set-uid."""

# Process 1 takes over the orphans of daemons; its end is that of all others.
REAPER = """
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
open(sys.argv[1], "w").close()
while True:
    signal.sigtimedwait([signal.SIGCHLD], 0.5)
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
"""


def reason_to_skip() -> str | None:
    """Why there can be no such machine here; None if there can."""
    if os.geteuid() != 0:
        return "needs root, for namespaces"
    missing = [name for name in ("unshare", "nsenter", "setpriv", "ip") if not shutil.which(name)]
    return f"needs {', '.join(missing)}" if missing else None


def limits_of(unit: dict[str, str]) -> list[str]:
    """What a unit may not do, as options of setpriv: gain privileges, or all but some of them."""
    options = ["--no-new-privs"] if any(key in unit for key in FORBID_NEW_PRIVILEGES) else []
    if "CapabilityBoundingSet" in unit:
        kept = unit["CapabilityBoundingSet"].lower().split()
        names = ["-all", *(f"+{name.removeprefix('cap_')}" for name in kept)]
        options += ["--bounding-set", ",".join(names)]
    return options


class PrivateMachine:
    """The machine; use it in a ``with`` block.

    Args:
        host: its name; by default this machine's.
        paths: directories with programs, before the usual ones.
        mounts: commands that mount more when it starts; ``$1`` is its directory.
        parent: where its files are; by default where temporary files are.

    Attributes:
        directory: its files as they are called outside.
        pid: its process 1, as it is called outside.
        state: the service's directory, likewise.
    """

    def __init__(
        self,
        host: str | None = None,
        paths: tuple[Path, ...] = (),
        mounts: str = "",
        parent: Path | None = None,
    ):
        self.directory = Path(tempfile.mkdtemp(prefix="machine-", dir=parent))
        self.directory.chmod(0o755)
        self.state = self.directory / "state"
        self.user_home = self.directory / USER
        self._host = host
        self._mounts = mounts
        self._holder: subprocess.Popen[bytes] | None = None
        self.pid = 0
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        path = ":".join(map(str, (*paths, WALLTIMED.parent))) + ":" + os.environ["PATH"]
        outside = ("STATE_DIRECTORY", "WALLTIMED_CONFIG")
        kept = {name: value for name, value in os.environ.items() if name not in outside}
        self.environment = kept | {"PATH": path, "LC_ALL": "C.UTF-8"}

    def __enter__(self) -> Self:
        for name in ("state", USER, *(f"{kind}{path}" for path in LAYERED for kind in "uw")):
            (self.directory / name).mkdir(parents=True)
        os.chown(self.user_home, USER_ID, USER_ID)
        shutil.copytree(ROOT / "integrations", self.directory / "share")
        hook = self.directory / "share" / "pbs" / "walltimed_hook.json"
        hook.rename(hook.with_name("pbs-hook.json"))
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        """End process 1, and so every process there is."""
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
        if self._holder is not None:
            if self.pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGKILL)
            self._holder.wait(120)
        for process in self.processes.values():
            process.wait(30)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _start(self) -> None:
        lines = ["set -e", "ip link set lo up", f"ip addr add {ADDRESS}/32 dev lo"]
        if self._host:
            lines.append(f"hostname {self._host}")
        for path in LAYERED:
            layers = f'lowerdir={path},upperdir="$1/u{path}",workdir="$1/w{path}"'
            lines.append(f"mount -t overlay overlay -o {layers} {path}")
        for path, name in ((STATE, "state"), (SHARE, "share")):
            lines.append(f'mkdir -p {path} /etc/walltimed && mount --bind "$1/{name}" {path}')
        lines.append(f"mv {SHARE}/pbs/pbs-hook.json /etc/walltimed")  # as the package has it
        lines += [self._mounts, 'exec "$2" -c "$3" "$1/up"']
        # It ends with the process that started it, even if that is killed.
        command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--kill-child"]
        command += ["--mount", "--uts", "--net", "--pid", "--fork", "--mount-proc"]
        command += ["bash", "-c", "\n".join(lines), "enter", str(self.directory)]
        with (self.directory / "namespace.log").open("wb") as log:
            self._holder = subprocess.Popen(
                [*command, "/usr/bin/python3", REAPER], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True,
            )  # fmt: skip
        eventually(self._is_up)
        children = Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children")
        self.pid = int(children.read_text().split()[0])
        self.run("useradd", "--uid", str(USER_ID), "--home-dir", self.user_home, USER)
        self.run("useradd", "--system", "--home-dir", STATE, "--user-group", "walltimed")
        self.run("groupadd", "--system", "pbsacct")
        self.run("chown", "walltimed:walltimed", STATE)

    def _is_up(self) -> bool:
        said = (self.directory / "namespace.log").read_text()
        assert self._holder is not None
        assert self._holder.poll() is None, said
        return (self.directory / "up").exists()

    def inside(
        self, *command: object, user: str = "root", groups: str = "", limits: Sequence[str] = ()
    ) -> list[str]:
        """The command that runs ``command`` on this machine; ``limits`` are options of setpriv."""
        words = ["nsenter", "--target", str(self.pid), "--mount", "--uts", "--net", "--pid", "--"]
        if user != "root":
            words += ["setpriv", "--reuid", user, "--regid", user, *limits]
            words += ["--groups", groups] if groups else ["--clear-groups"]
            words += ["env", f"HOME={self.user_home}", f"USER={user}", f"LOGNAME={user}"]
        return [*words, *map(str, command)]

    def run(
        self,
        *command: object,
        user: str = "root",
        check: bool = True,
        timeout: float = 60,
        stdin: str = "",
    ) -> str:
        """What a command printed, errors included."""
        with tempfile.TemporaryFile("w+", errors="replace") as printed:
            # To a file: a daemon keeps what it was started with, and would keep a pipe open.
            done = subprocess.run(
                self.inside(*command, user=user), input=stdin, stdout=printed,
                stderr=subprocess.STDOUT, env=self.environment, cwd=self.user_home,
                timeout=timeout, check=False, text=True,
            )  # fmt: skip
            printed.seek(0)
            said = printed.read()
        assert not check or done.returncode == 0, f"{command}: {said}"
        return said

    def write(self, path: str, text: str) -> None:
        """Write a file of the machine."""
        self.run("bash", "-c", 'cat > "$0"', path, stdin=text)

    def start(self, name: str, *command: object, **whose: Any) -> None:
        """Start a program that stays, for whom ``inside`` is told; ``name.log`` has its words."""
        with (self.directory / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                self.inside(*command, **whose), stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, env=self.environment, cwd=self.directory,
            )  # fmt: skip

    def start_unit(self, name: str) -> None:
        """Start what a unit of ours starts: its user, groups and limits of privileges."""
        unit = (ROOT / "deploy" / "systemd" / f"{name}.service").read_text()
        values = [line.split("=", 1) for line in unit.splitlines() if "=" in line[:30]]
        of = {key: value for key, value in values if key != "Environment"}
        given = dict(value.split("=", 1) for key, value in values if key == "Environment")
        file = of["EnvironmentFile"].removeprefix("-")
        for line in self.run("cat", file, check=False).splitlines():
            if line.partition("=")[0].isidentifier():
                given |= [line.split("=", 1)]
        words = [f"export {key}={shlex.quote(value)};" for key, value in given.items()]
        line = of["ExecStart"].replace("${", '"${').replace("}", '}"')
        command = f"export PATH=/usr/bin:/bin; {' '.join(words)} exec {line}"
        groups = of.get("SupplementaryGroups", "")
        self.start(
            name, "bash", "-c", command, user=of["User"], groups=groups, limits=limits_of(of)
        )

    def log(self, name: str) -> str:
        """What a program that was started said."""
        return (self.directory / f"{name}.log").read_text(errors="replace")

    def start_service(self, *options: str) -> None:
        """Start walltimed with the settings and the history that a package gives it."""
        self.start("service", WALLTIMED, "serve", *options)
        eventually(self._serves, seconds=300)

    def _serves(self) -> bool:
        assert self.processes["service"].poll() is None, self.log("service")
        return '"ready"' in self.run("curl", "-s", "localhost:8580/health/ready", check=False)

    def pid_of(self, name: str) -> int:
        """The number of a program that was started, as it is called outside."""
        (thread,) = Path(f"/proc/{self.processes[name].pid}/task").glob("*/children")
        return int(thread.read_text().split()[0])

    def end(self, name: str, number: signal.Signals) -> None:
        """End a program that was started by a signal."""
        os.kill(self.pid_of(name), number)
        # nsenter stops itself when its child is stopped, and reaps no more.
        self.processes[name].send_signal(signal.SIGCONT)
        self.processes[name].wait(30)

    def end_service(self, number: signal.Signals) -> None:
        """End the service by a signal."""
        self.end("service", number)

    def plug_into(self, switch: Self, address: str) -> None:
        """Connect it with the bridge ``lan`` of another machine, by ``eth0`` with an address."""
        network = ["nsenter", "--target", str(switch.pid), "--net", "--", "ip", "link"]
        port = f"port{self.pid}"
        for words in (
            ["add", port, "type", "veth", "peer", "name", "eth0", "netns", str(self.pid)],
            ["set", port, "master", "lan", "up"],
        ):
            subprocess.run([*network, *words], check=True)
        self.run("ip", "link", "set", "eth0", "up")
        self.run("ip", "address", "add", f"{address}/24", "dev", "eth0")

    @property
    def url(self) -> str:
        """The service's history, as it is called outside."""
        return f"sqlite:///{self.state / 'walltimed.sqlite3'}"
