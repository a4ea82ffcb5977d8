"""Files, hook and group that connect a PBS server with walltimed."""

import grp
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from service.site.host_files import (
    SERVICE_USER,
    HostFile,
    below,
    forwarder_options,
    read,
    script,
    with_json_values,
)
from terminal.console import CommandError, ExitCode

TOKEN = Path("/etc/walltimed/pbs-token")
FILTER_TOKEN = Path("/etc/walltimed/filter-token")
FOLLOWER_OPTIONS = Path("/etc/walltimed/pbs")
CONFIG = Path("/etc/walltimed/pbs-hook.json")
FOLLOWER = "walltimed-pbs"
HOOK = "walltimed_hook.py"
MODES = ("off", "observe", "order", "soft", "default-limit")
LOG_GROUP = "pbsacct"
SECONDS = 60.0


def pbs_files(root: Path, address: str, cluster: str, values: Mapping[str, Any]) -> list[HostFile]:
    """Return the files: tokens, changed settings of the hook, settings of the follower.

    Raises:
        CommandError: the service listens on a Unix socket, which neither of them can use.
    """
    if address.startswith("unix:"):
        raise CommandError(
            "Hook and follower of PBS need http://ADDRESS:PORT: give --url.", ExitCode.USAGE
        )
    config = read(below(root, CONFIG)) or read(script("pbs/walltimed_hook.json"))
    changed = with_json_values(config, {"cluster": cluster, **values}, CONFIG)
    options = " ".join(forwarder_options(address))
    return [
        HostFile(path=TOKEN, group=SERVICE_USER, mode=0o640, scope="ingest"),
        HostFile(path=FILTER_TOKEN, mode=0o600, scope="predict"),
        HostFile(path=CONFIG, text=changed),
        HostFile(path=FOLLOWER_OPTIONS, text=f"CLUSTER={cluster}\nOPTIONS={options}\n"),
    ]


def hook_commands() -> str:
    """Return the commands of qmgr that make hook and resources, or renew the hook.

    What exists is not made: jobs may have the resources, and they stay without the hook.
    """
    commands = script("pbs/walltimed.qmgr")
    lines = read(commands).splitlines()
    resources = ("prediction", "length", "priority")
    for each in ("hook walltimed", *(f"resource walltimed_{name}" for name in resources)):
        if each.capitalize() in qmgr(f"list {each}\n", check=False):
            lines = [line for line in lines if not line.startswith(f"create {each}")]
    return re.sub(r"/usr/share/walltimed/pbs", str(commands.parent), "\n".join(lines)) + "\n"


def qmgr(commands: str, *, check: bool = True) -> str:
    """Give commands to qmgr and return its output.

    Raises:
        CommandError: it cannot be run, or refuses a command.
    """
    try:
        done = subprocess.run(  # noqa: S603 - fixed commands of PBS
            [program("qmgr")], input=commands, capture_output=True, text=True, check=False,
            timeout=SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandError(f"qmgr cannot be run: {error}.") from error
    if check and done.returncode:
        raise CommandError(f"qmgr failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def is_here() -> bool:
    """Return whether this host has PBS's commands."""
    return Path(program("qmgr")).exists()


def program(name: str) -> str:
    """Return the path of a command of PBS: from PATH, else where pbs.conf says."""
    found = shutil.which(name)
    return found or str(Path(pbs_conf().get("PBS_EXEC", "/opt/pbs"), "bin", name))


def pbs_conf() -> dict[str, str]:
    """Return the settings in pbs.conf."""
    text = read(Path(os.environ.get("PBS_CONF_FILE", "/etc/pbs.conf")))
    return dict(line.strip().partition("=")[::2] for line in text.splitlines() if "=" in line)


def private_directory() -> Path:
    """Return the server's directory with the accounting log."""
    return Path(pbs_conf().get("PBS_HOME", "/var/spool/pbs"), "server_priv")


def open_log(group: str) -> None:
    """Let a group read the directory of the accounting log; ``root`` closes it again.

    Raises:
        CommandError: there is no such group or directory.
    """
    try:
        os.lchown(private_directory(), -1, grp.getgrnam(group).gr_gid)
    except (KeyError, OSError) as error:
        raise CommandError(f"chgrp {group} {private_directory()} failed: {error}.") from error
