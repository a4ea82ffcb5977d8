"""Files that ``walltimed connect`` writes on the host of a resource manager.

Root writes them into directories that others may own: no link is followed, and nothing is changed
but the files that are written.
"""

import errno
import grp
import ipaddress
import json
import os
import pwd
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from terminal.console import CommandError, ExitCode

SERVICE_USER = "walltimed"
SCRIPTS = Path("/usr/share/walltimed")
USUAL = "http://127.0.0.1:8580"
USER_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\$?")

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class HostFile(Struct, frozen=True, kw_only=True):
    """A file with its content, or with a token.

    Attributes:
        group: empty is the owner's.
        scope: of the token that the file holds; empty for other files.
        is_kept: whether a file that exists stays as it is.
    """

    path: Path
    text: str = ""
    owner: str = "root"
    group: str = ""
    mode: int = 0o644
    scope: str = ""
    is_kept: bool = False

    def described(self) -> str:
        """Return path, owner, mode and the token's scope in a line."""
        token = f", a token of scope {self.scope}" if self.scope else ""
        group = f":{self.group}" if self.group else ""
        return f"{self.path} ({self.owner}{group} {self.mode:04o}{token})"

    def ids(self) -> tuple[int, int]:
        """Return the numbers of owner and group.

        Raises:
            KeyError: this host does not know one of them.
        """
        user = pwd.getpwnam(self.owner)
        return user.pw_uid, grp.getgrnam(self.group).gr_gid if self.group else user.pw_gid

    def command(self) -> str | None:
        """Return the command that sets an owner whom this host does not know; None for others."""
        try:
            self.ids()
        except KeyError:
            return f"chown {self.owner}:{self.group} {self.path}"
        return None


def is_current(file: HostFile, root: Path) -> bool:
    """Return whether a file below ``root`` needs no writing.

    A file that is kept or holds a token counts with any content; owner and mode of a kept file are
    not looked at.

    Raises:
        CommandError: a link or a directory that others may write is in the way.
    """
    found = _existing(file.path, root)
    if found is None or file.is_kept:
        return found is not None
    text, status = found
    is_same = bool(file.scope and text) or text == file.text
    return is_same and _has_owner(file, status)


def write(file: HostFile, root: Path, issue: Callable[[str], str]) -> None:
    """Write a file below ``root`` with its owner and mode; an existing token stays.

    A missing one is what ``issue`` returns for the scope.

    Raises:
        CommandError: a link or a directory that others may write is in the way.
    """
    found = _existing(file.path, root)
    text = file.text
    if file.scope:
        text = found[0] if found and found[0] else f"{issue(file.scope)}\n"
    new = f"{file.path.name}.new"
    with _directory_of(file.path, root, makes=True) as directory:
        with suppress(FileNotFoundError):
            os.unlink(new, dir_fd=directory)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        descriptor = os.open(new, flags, 0o600, dir_fd=directory)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            with suppress(KeyError):
                if os.geteuid() == 0:
                    os.fchown(descriptor, *file.ids())
            os.fchmod(descriptor, file.mode)
        os.replace(new, file.path.name, src_dir_fd=directory, dst_dir_fd=directory)


def touch(path: Path, root: Path) -> bool:
    """Give a file a new time, by which slurmctld reads it again; return whether there is one.

    Raises:
        CommandError: it is a link, or its directory may be written by others.
    """
    if _existing(path, root) is None:
        return False
    with _directory_of(path, root) as directory:
        os.utime(path.name, dir_fd=directory, follow_symlinks=False)
    return True


def remove(path: Path) -> bool:
    """Remove a file; return whether there was one.

    Raises:
        CommandError: its directory is a link, or may be written by others.
    """
    try:
        with _directory_of(path, Path("/")) as directory:
            os.unlink(path.name, dir_fd=directory)
    except FileNotFoundError:
        return False
    return True


def _existing(path: Path, root: Path) -> tuple[str, os.stat_result] | None:
    """Return text and status of a file below ``root``, to which no link leads; None without it."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        with _directory_of(path, root) as directory:
            descriptor = os.open(path.name, flags, dir_fd=directory)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _refused(below(root, path), "is a link") from error
        raise
    with os.fdopen(descriptor, encoding="utf-8", errors="replace") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _refused(below(root, path), "is no ordinary file")
        if status.st_nlink > 1:
            raise _refused(below(root, path), "has another name, a hard link")
        return stream.read(), status


@contextmanager
def _directory_of(path: Path, root: Path, *, makes: bool = False) -> Iterator[int]:
    """Open the directory of a file below ``root`` step by step; ``makes`` what is missing."""
    place, descriptor = root, os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in path.relative_to("/").parts[:-1]:
            place /= name
            inner = _opened(place, descriptor, makes=makes)
            os.close(descriptor)
            descriptor = inner
            _refuse_writable(place, descriptor, is_last=place == below(root, path).parent)
        yield descriptor
    finally:
        os.close(descriptor)


def _opened(place: Path, parent: int, *, makes: bool) -> int:
    """Open a directory in its parent."""
    is_new = False
    if makes:
        with suppress(FileExistsError):
            os.mkdir(place.name, dir_fd=parent)
            is_new = True
    try:
        descriptor = os.open(place.name, _DIRECTORY, dir_fd=parent)
    except NotADirectoryError as error:
        raise _refused(place, "is a link, or no directory") from error
    if is_new:
        os.fchmod(descriptor, 0o755)  # whatever the umask: SlurmUser reads a file in it
    return descriptor


def _refuse_writable(place: Path, descriptor: int, *, is_last: bool) -> None:
    """Refuse a directory in which others may put something else in the place of what is there."""
    mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
    if mode & _WRITABLE_BY_OTHERS and (is_last or not mode & stat.S_ISVTX):
        raise _refused(place, f"may be written by others than its owner ({mode:04o})")


def _refused(path: Path, reason: str) -> CommandError:
    return CommandError(f"{path} {reason}: nothing is written there.", ExitCode.USAGE)


def _has_owner(file: HostFile, status: os.stat_result) -> bool:
    """Return whether a file has owner and mode, as far as this user can give them."""
    try:
        is_owned = os.geteuid() != 0 or (status.st_uid, status.st_gid) == file.ids()
    except KeyError:
        is_owned = True
    return is_owned and stat.S_IMODE(status.st_mode) == file.mode


def below(root: Path, path: Path) -> Path:
    """Return an absolute path as it is called in a tree.

    For example, ``/etc/walltimed/pbs`` below ``/srv/tree`` is ``/srv/tree/etc/walltimed/pbs``.
    """
    return root / path.relative_to("/")


def read(path: Path) -> str:
    """Return the text of a file; empty if there is none."""
    with suppress(FileNotFoundError):
        return path.read_text("utf-8", "replace")
    return ""


def script(name: str) -> Path:
    """Return the path of a file that is installed for resource managers, such as ``slurm/x.lua``.

    Raises:
        CommandError: it is not installed.
    """
    checkout = Path(__file__).parents[2] / "integrations"
    for directory in (SCRIPTS, checkout):
        if (directory / name).is_file():
            return directory / name
    raise CommandError(f"{SCRIPTS / name} is not installed.", ExitCode.USAGE)


def values_of_json(text: str, path: Path) -> dict[str, Any]:
    """Return the settings in a JSON object; empty text has none.

    Raises:
        CommandError: the file at ``path`` is not a JSON object.
    """
    try:
        return {**json.loads(text or "{}")}
    except (TypeError, ValueError) as error:
        raise CommandError(f"{path} is not a JSON object: {error}.", ExitCode.USAGE) from error


def with_json_values(text: str, values: Mapping[str, Any], path: Path) -> str:
    """Return JSON settings with other values; an address takes the place of any other.

    Raises:
        CommandError: the file at ``path`` is not a JSON object.
    """
    present = values_of_json(text, path)
    if not ADDRESS_KEYS.isdisjoint(values):
        present = {name: value for name, value in present.items() if name not in ADDRESS_KEYS}
    return json.dumps({**present, **values}, indent=2) + "\n"


ADDRESS_KEYS = frozenset({"host", "port", "unix_socket"})


def filter_values(address: str) -> dict[str, Any]:
    """Return the settings of a filter for the service's address.

    For example, ``http://192.0.2.1:9000`` gives host 192.0.2.1 and port 9000.
    """
    if address.startswith("unix:"):
        return {"unix_socket": address.removeprefix("unix:")}
    parts = urlsplit(address)
    return {"host": parts.hostname, "port": parts.port or 80}


def forwarder_options(address: str) -> list[str]:
    """Return the options of forwarder or follower for the service's address."""
    return [] if address == USUAL else ["--url", address]


def check_address(address: str) -> str:
    """Return an address that filters can use: ``http://ADDRESS:PORT`` or ``unix:FILE``.

    Raises:
        CommandError: they cannot: they speak HTTP to a number, or to a Unix socket.
    """
    if re.fullmatch(r"unix:/[\w./@+-]+", address):
        return address
    parts = urlsplit(address)
    try:
        ipaddress.ip_address(parts.hostname or "")
        is_usable = parts.scheme == "http" and not parts.path.strip("/") and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise CommandError(
            f"--url {address} cannot be used by filters: it has to be http://ADDRESS:PORT with a "
            "number as the address, or unix:FILE. For TLS let a proxy on that host listen on "
            "127.0.0.1.",
            ExitCode.USAGE,
        )
    return address
