"""The emergency stop: one file, for which filter, hook and updater look before anything else."""

import os
import pwd
import shutil
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

from service.site import pbs_conf as pbs
from service.site.host_files import HostFile, read, remove, script, touch, write
from service.site.slurm_conf import FILTER, OURS, conf_path, our_filter, values_in
from terminal.console import CommandError

OFF_SWITCH = Path("/etc/walltimed/walltimed.off")
UPDATER = "walltimed-slurm-updater.service"
HOOK = "the hook walltimed of PBS"
SECONDS = 10.0
HERE = Path("/")

LUAS = ("lua", "lua5.4", "lua5.3", "lua5.1")

_READ_BACK = "print(dofile(arg[1]).is_off(arg[2]))\n"
_SHOW_HOOK = "export hook walltimed application/x-python default\n"


def turn_off() -> dict[str, str | None]:
    """Make the file, and return the reason by which a part of this host may go on, by part.

    Raises:
        CommandError: the file cannot be made.
    """
    file = HostFile(path=OFF_SWITCH, text=f"off since {time.strftime('%Y-%m-%d %H:%M:%S %Z')}\n")
    if not OFF_SWITCH.exists():
        write(file, HERE, str)
    parts: dict[str, str | None] = {}
    directory = conf_path().parent
    if (directory / OURS).exists():
        parts[str(directory / OURS)] = filter_obstacle(directory)
    if pbs.is_here():
        parts |= hook_found()
    if shutil.which("systemctl") and is_installed(UPDATER):
        parts[UPDATER] = updater_obstacle()
    return parts


def turn_on() -> bool:
    """Remove the file; return whether there was one."""
    return remove(OFF_SWITCH)


def filter_obstacle(directory: Path) -> str | None:
    """Let slurmctld read our filter again; return the reason by which it may go on.

    A filter that is not this release's, which may not look for the file, is replaced.
    """
    ours = our_filter(directory)
    try:
        if read(ours.path) != ours.text:
            write(ours, HERE, str)
        touch(directory / FILTER, HERE)
    except (CommandError, OSError) as error:
        return str(error)
    if not OFF_SWITCH.parent.stat().st_mode & stat.S_IXOTH:
        return f"SlurmUser may not look into {OFF_SWITCH.parent}: chmod o+x {OFF_SWITCH.parent}"
    if read(ours.path) != ours.text:
        return "it is not this release's, and could not be replaced"
    return lua_obstacle(ours.path, values_in(read(conf_path())).get("slurmuser", "root"))


def lua_obstacle(file: Path, user: str) -> str | None:
    """Let Lua, where it is installed, say whether our filter is off for the user of slurmctld.

    Only our filter is run, which is this release's: the site's own script may have effects.
    """
    lua = next(filter(None, map(shutil.which, LUAS)), None)
    if lua is None:
        return None
    try:
        known = pwd.getpwnam(user)
        as_user: dict[str, Any] = {"user": known.pw_uid, "group": known.pw_gid, "extra_groups": []}
        done = subprocess.run(  # noqa: S603 - fixed words
            [lua, "-", str(file), str(OFF_SWITCH)],
            **(as_user if os.geteuid() == 0 else {}), capture_output=True, check=False,
            cwd="/", env={}, input=_READ_BACK, text=True, timeout=SECONDS,
        )  # fmt: skip
    except KeyError:
        return f"this host knows no SlurmUser {user}"
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    said = done.stdout.strip() or done.stderr.strip()
    return None if said == "true" else f"{lua}, run as {user}, does not find {OFF_SWITCH}: {said}"


def hook_found() -> dict[str, str | None]:
    """Return the hook, if the server has it, with the reason by which it may go on.

    A hook of an earlier release is replaced.
    """
    ours = script("pbs/walltimed_hook.py")
    try:
        if "Hook walltimed" not in pbs.qmgr("list hook walltimed\n", check=False):
            return {}
        if not _looks_for_switch(pbs.qmgr(_SHOW_HOOK)):
            pbs.qmgr(f"import hook walltimed application/x-python default {ours}\n")
        is_ours = _looks_for_switch(pbs.qmgr(_SHOW_HOOK))
    except CommandError as error:
        return {HOOK: str(error)}
    return {HOOK: None if is_ours else f"the server's script is not {ours}"}


def updater_obstacle() -> str | None:
    """Restart a running updater, as it may be of an earlier release; return why that failed."""
    command = ["systemctl", "try-restart", UPDATER]
    try:
        done = subprocess.run(  # noqa: S603 - fixed words
            command, capture_output=True, check=False, text=True, timeout=6 * SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else done.stderr.strip() or "it could not be restarted"


def is_installed(unit: str) -> bool:
    """Return whether systemd, where it runs this host, knows a unit that is enabled or runs."""
    states = (("is-enabled", {"enabled", "enabled-runtime"}), ("is-active", {"active"}))
    return any(output_of("systemctl", verb, unit) in wanted for verb, wanted in states)


def output_of(*command: str) -> str:
    """Return the standard output of a command, empty if it cannot be run."""
    try:
        process = subprocess.run(  # noqa: S603 - fixed commands of the system
            command, capture_output=True, check=False, text=True, timeout=SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout.strip()


def _looks_for_switch(text: str) -> bool:
    return OFF_SWITCH.name in text
