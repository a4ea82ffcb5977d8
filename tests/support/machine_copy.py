"""A copy of a machine on which tests install packages: an overlay that ends with its block.

Root only. Its processes and mounts are its own, its network is this machine's.
"""

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Self

from patience import eventually

OVERLAY = """
mount -t tmpfs tmpfs "$0"
mkdir "$0/upper" "$0/work" "$0/root"
mount -t overlay overlay -o "lowerdir=$1,upperdir=$0/upper,workdir=$0/work" "$0/root"
mkdir -p "$0/root/etc/slurm"
"""

STAY = """
mkdir -p "$0/root/dev" "$0/root/proc"
mount --rbind /dev "$0/root/dev"
mount -t proc proc "$0/root/proc"
echo made
exec sleep infinity
"""

# The services of this machine are not those of the copy.
BOOT = """
mount -t proc proc /proc
rm -rf "$0"/root/etc/systemd/system/*.wants "$0/root/etc/machine-id"
echo made
exec systemd-nspawn --quiet --register=no --keep-unit --private-network --machine=copy \
    --directory="$0/root" --boot systemd.unit=multi-user.target > "$0/console"
"""

ROOT = Path(__file__).parents[2]
DEB, RPM = "deb", "rpm"
TOOLS = ("unshare", "nsenter", "dpkg-deb", "rpmbuild")
SECONDS = 300.0


def reason_to_skip() -> str | None:
    """Why packages cannot be tried here; None if they can."""
    if os.geteuid() != 0:
        return "needs root, for namespaces"
    missing = [name for name in TOOLS if not shutil.which(name)]
    return f"needs {', '.join(missing)} (Debian: packages dpkg-dev and rpm)" if missing else None


class MachineCopy:
    """The copy; use it in a ``with`` block.

    Args:
        directory: an empty one, where its tree is seen by its processes.
        original: the tree that is copied.

    Attributes:
        root: the tree, as the copy's processes call it before they enter it.
    """

    after = STAY
    """What its first process does, once the tree is there."""

    def __init__(self, directory: Path, original: Path = Path("/")) -> None:
        self.root = directory / "root"
        self._words = ["sh", "-euc", OVERLAY + self.after, str(directory), str(original)]
        self._holder: subprocess.Popen[str] | None = None
        self._pid = 0

    def __enter__(self) -> Self:
        apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation=private"]
        self._holder = subprocess.Popen(
            [*apart, *self._words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == "made\n"
        self._pid = child_of(self._holder)
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._holder is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        self._holder.wait(30)
        assert self._holder.stdout is not None
        self._holder.stdout.close()

    def beside(self, *command: object) -> list[str]:
        """The command that runs ``command`` with this machine's files and the tree in its place."""
        words = ["nsenter", "--target", str(self._pid), "--mount", "--pid", "--"]
        return [*words, *map(str, command)]

    def inside(self, *command: object, user: str = "root") -> list[str]:
        """The command that runs ``command`` in the copy, in an environment without anything."""
        clean = ("env", "--ignore-environment", "PATH=/usr/sbin:/usr/bin:/sbin:/bin")
        return self.beside("chroot", f"--userspec={user}:{user}", self.root, *clean, *command)

    def run(self, *command: object, user: str = "root") -> str:
        """What a command printed in the copy, errors included."""
        return output_of(self.inside(*command, user=user))

    def shell(self, commands: str) -> str:
        """What commands of the shell printed in the copy, errors included."""
        return self.run("sh", "-euc", commands)

    def install(self, package: Path) -> str:
        """What the installation of a package, or an upgrade to it, printed."""
        if package.suffix == ".deb":
            command = ("dpkg", f"--root={self.root}", "--force-depends,confold", "--install")
        else:
            command = ("rpm", f"--root={self.root}", "--upgrade", "--force", "--nodeps")
        return output_of(self.beside(*command, package))

    def remove(self, name: str, kind: str) -> str:
        """What the removal of a package printed; edited settings stay."""
        if kind == DEB:
            return output_of(self.beside("dpkg", f"--root={self.root}", "--remove", name))
        return output_of(self.beside("rpm", f"--root={self.root}", "--erase", name))


class BootedCopy(MachineCopy):
    """A copy that systemd has booted, with a network of its own; use it in a ``with`` block."""

    after = BOOT

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            eventually(self._has_booted, seconds=SECONDS)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _has_booted(self) -> bool:
        # The first process has become systemd-nspawn, whose only child is systemd.
        with contextlib.suppress(ValueError, FileNotFoundError):
            self._init = only_child(self._pid)
            command = self.inside("systemctl", "is-active", "multi-user.target")
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            return done.stdout.strip() == "active"
        return False

    def inside(self, *command: object, user: str = "root") -> list[str]:
        """The command that runs ``command`` in the copy, in an environment without anything."""
        spaces = ("--mount", "--uts", "--ipc", "--net", "--pid")
        words = ["nsenter", "--target", str(self._init), *spaces, "--", "setpriv"]
        clean = ("env", "--ignore-environment", "PATH=/usr/sbin:/usr/bin:/sbin:/bin")
        return [*words, "--reuid", user, "--init-groups", *clean, *map(str, command)]

    def install(self, package: Path) -> str:
        """What the installation of a package, or an upgrade to it, printed."""
        shutil.copy(package, f"/proc/{self._init}/root/root")
        command = ["dpkg", "--force-depends,confold", "--install"]
        if package.suffix == ".rpm":
            command = ["rpm", "--upgrade", "--force", "--nodeps"]
        return self.run(*command, f"/root/{package.name}")

    def remove(self, name: str, kind: str) -> str:
        """What the removal of a package printed; edited settings stay."""
        return self.run(*(("dpkg", "--remove") if kind == DEB else ("rpm", "--erase")), name)


def child_of(process: subprocess.Popen) -> int:
    """The number of the only child of a process."""
    return only_child(process.pid)


def only_child(number: int) -> int:
    (child,) = Path(f"/proc/{number}/task/{number}/children").read_text().split()
    return int(child)


def output_of(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def complaints_of(*packages: Path) -> list[str]:
    """What rpmlint says of packages beside what deploy/rpmlint.toml lists."""
    options = ["--config", ROOT / "deploy" / "rpmlint.toml"]
    said = output_of([str(word) for word in ("rpmlint", *options, *packages)])
    return [line for line in said.splitlines() if ": E: " in line or ": W: " in line]
