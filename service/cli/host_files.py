"""Files that ``walltimed connect`` keeps on the host of a resource manager.

Filters, forwarder and followers find the address of the service in them.
"""

import grp
import ipaddress
import json
import os
import pwd
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct

from service.cli.options import address_of
from terminal.console import CommandError, ExitCode

if TYPE_CHECKING:
    from service.settings import Settings


SERVICE_USER = "walltimed"
TOKEN_ID = re.compile(r"wt_([^_\s]+)_")
SCRIPTS = Path("/usr/share/walltimed")


class HostFile(Struct, frozen=True, kw_only=True):
    """A file with its content, or with a token.

    Attributes:
        path: absolute.
        text: the content; empty for a token's file.
        owner: user.
        group: its group; empty leaves the group of the writing user.
        mode: permissions.
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


def write(file: HostFile, root: Path, issue: Callable[[str], str]) -> list[str]:
    """Write a file below ``root``, unless its content is there already.

    Args:
        file: what to write.
        root: ``/``, or the top of a tree for another host.
        issue: function of a scope that returns a new token.

    Returns:
        The commands that are left for the other host, where it has a user that is unknown here.
    """
    place = below(root, file.path)
    if not (place.exists() and (file.is_kept or file.scope)):
        place.parent.mkdir(parents=True, exist_ok=True)
        text = f"{issue(file.scope)}\n" if file.scope else file.text
        new = place.with_name(f"{place.name}.new")
        new.unlink(missing_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
        new.replace(place)
    return with_owner(file, place)


def with_owner(file: HostFile, place: Path) -> list[str]:
    """Set owner and mode; return the command that does it where the owner is not known here."""
    try:
        user = pwd.getpwnam(file.owner).pw_uid
        group = grp.getgrnam(file.group).gr_gid if file.group else pwd.getpwnam(file.owner).pw_gid
    except KeyError:
        place.chmod(file.mode)
        return [f"chown {file.owner}:{file.group} {file.path}"]
    if os.geteuid() == 0:
        os.chown(place, user, group)
    place.chmod(file.mode)
    return []


def below(root: Path, path: Path) -> Path:
    """Return an absolute path as it is called in a tree."""
    return root / path.relative_to("/")


def remove(path: Path) -> str | None:
    """Remove a file if it exists; return the id of the token that it held."""
    token = TOKEN_ID.match(read(path)) if path.name.endswith("-token") else None
    path.unlink(missing_ok=True)
    return token[1] if token else None


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


def with_lua_values(text: str, values: Mapping[str, str | int]) -> str:
    """Return Lua settings with other values; comments and all other settings stay."""
    for name, value in values.items():
        written = f"{name} = {json.dumps(value)}"
        assigned = rf"^((?:(?!--).)*?)\b{name}\s*=\s*(?:\"[^\"\n]*\"|[\w.]+)"
        if found := re.search(assigned, text, re.MULTILINE):
            text = text[: found.end(1)] + written + text[found.end() :]
        else:
            text = re.sub(r"(return\s*\{)", rf"\1\n  {written},", text, count=1)
    return text


def with_json_values(text: str, values: Mapping[str, Any], path: Path) -> str:
    """Return JSON settings with other values.

    Raises:
        CommandError: the file at ``path`` is not a JSON object.
    """
    try:
        return json.dumps({**json.loads(text), **values}, indent=2) + "\n"
    except (TypeError, ValueError) as error:
        raise CommandError(f"{path} is not a JSON object: {error}.", ExitCode.USAGE) from error


USUAL = "http://127.0.0.1:8580"


def filter_values(url: str) -> dict[str, Any]:
    """Return the settings of a filter for the service's address; none for the usual one."""
    if url == USUAL:
        return {}
    if url.startswith("unix:"):
        return {"unix_socket": url.removeprefix("unix:")}
    parts = urlsplit(url)
    return {"host": parts.hostname, "port": parts.port or 80}


def forwarder_options(url: str) -> list[str]:
    """Return the options of forwarder or follower for the service's address."""
    return [] if url == USUAL else ["--url", url]


def service_address(settings: "Settings", url: str | None) -> str:
    """Return the address of the settings, or ``url``: ``http://ADDRESS:PORT`` or ``unix:FILE``.

    Raises:
        CommandError: filters cannot use it: they speak HTTP to a number, or to a Unix socket.
    """
    address = url or address_of(settings)
    if address.startswith("unix:/"):
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
