"""Files and lines of slurm.conf that connect a Slurm with walltimed."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from service.site.host_files import (
    SERVICE_USER,
    USER_NAME,
    HostFile,
    below,
    forwarder_options,
    read,
    script,
    with_json_values,
)
from service.slurm_updater.slurm import SOFT_LIMIT_OPTION, SOFT_LIMIT_SINCE
from terminal.console import CommandError, ExitCode

JOBCOMP_TOKEN = Path("/etc/walltimed/jobcomp-token")
FILTER_TOKEN = Path("/etc/walltimed/filter-token")
FORWARDER_OPTIONS = Path("/etc/walltimed/slurm-forwarder")
FORWARDER = "walltimed-slurm-forwarder"
FILTER, OURS, CONFIG = "job_submit.lua", "walltimed.lua", "walltimed_config.lua"
"""Slurm's script, which loads ours, and the settings that are the site's own."""
CONNECTED = "walltimed_site.json"
"""The settings that `walltimed connect` writes; ours reads them after the site's own."""
MODES = ("off", "observe", "advise", "order", "soft", "default-limit")
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
COMPLETIONS = "http://127.0.0.1:8581/v1/adapters/slurm/jobcomp?cluster={cluster}"


class SlurmSite(Struct, frozen=True, kw_only=True):
    """A Slurm as its configuration shows it.

    Attributes:
        values: of slurm.conf, by key in lower case; the last one of a key counts.
    """

    conf: Path
    cluster: str
    user: str
    values: dict[str, str]


def slurm_site(root: Path, cluster: str | None, user: str | None) -> SlurmSite:
    """Read slurm.conf, which SLURM_CONF names; options win over its values.

    Raises:
        CommandError: it does not exist or names no cluster, or its SlurmUser is no user name.
    """
    conf = conf_path()
    values = values_in(read(below(root, conf)))
    name = cluster or values.get("clustername", "").lower()
    if not name:
        raise CommandError(
            f"{below(root, conf)} names no ClusterName: set SLURM_CONF, or give --cluster.",
            ExitCode.USAGE,
        )
    owner = user or values.get("slurmuser", "root")
    if not USER_NAME.fullmatch(owner):
        raise CommandError(f"SlurmUser {owner!r} is no name of a user.", ExitCode.USAGE)
    return SlurmSite(conf=conf, cluster=name, user=owner, values=values)


def conf_path() -> Path:
    """Return the path of slurm.conf, which SLURM_CONF names."""
    return Path(os.environ.get("SLURM_CONF", "/etc/slurm/slurm.conf"))


def values_in(conf: str) -> dict[str, str]:
    """Return the values of lines with one key each."""
    pairs = re.findall(r"^\s*(\w+)\s*=\s*([^#\n]*)", conf, re.MULTILINE)
    return {key.lower(): value.strip() for key, value in pairs}


def wanted_lines(site: SlurmSite) -> dict[str, str]:
    """Return the settings of slurm.conf that connect; other submit plugins are kept."""
    plugins = [each for each in site.values.get("jobsubmitplugins", "").split(",") if each]
    return {
        "JobSubmitPlugins": ",".join(plugins if "lua" in plugins else [*plugins, "lua"]),
        "JobCompType": "jobcomp/elasticsearch",
        "JobCompLoc": COMPLETIONS.format(cluster=site.cluster),
    }


def missing_lines(site: SlurmSite) -> list[str]:
    """Return the lines that slurm.conf does not have yet."""
    return [
        f"{key}={value}"
        for key, value in wanted_lines(site).items()
        if site.values.get(key.lower()) != value
    ]


def order_lines(site: SlurmSite) -> list[str]:
    """Return the lines without which mode ``order`` sets nothing: a second of age is a point."""
    is_basic = site.values.get("prioritytype", "").lower() == "priority/basic"
    is_aged = float(site.values.get("priorityweightage", "0") or 0) > 0
    if is_aged and not is_basic:
        return []
    weight = [] if is_aged else ["PriorityWeightAge=604800"]
    return ["PriorityType=priority/multifactor", *weight]


def soft_steps(site: SlurmSite, version: str) -> list[str]:
    """Return what mode ``soft`` does on this Slurm, if not what its name says, or needs there.

    Args:
        version: printed by `sinfo --version`; empty if it is not known.
    """
    found = _VERSION.search(version)
    release = tuple(map(int, found.groups())) if found else None
    if found is None or release is None:
        return ["mode soft needs Slurm 25.05.4 or newer; on an older one it does what order does"]
    if release < SOFT_LIMIT_SINCE:
        does = "where mode soft does what order does and sets no TimeMin; that needs 25.05.4"
        return [f"nothing more: this Slurm is {found[0]}, {does}"]
    parameters = site.values.get("schedulerparameters", "")
    if SOFT_LIMIT_OPTION in parameters.split(","):
        return []
    wanted = ",".join(each for each in (parameters, SOFT_LIMIT_OPTION) if each)
    return [f"for mode soft set in slurm.conf: SchedulerParameters={wanted}"]


def replaced_lines(site: SlurmSite) -> list[str]:
    """Return the lines of slurm.conf in whose place the missing ones are to stand."""
    return [
        f"{key}={site.values[key.lower()]}"
        for key, value in wanted_lines(site).items()
        if site.values.get(key.lower(), value) != value
    ]


def slurm_files(
    site: SlurmSite, root: Path, address: str, values: Mapping[str, Any]
) -> list[HostFile]:
    """Return the files: tokens, the forwarder's options, the filter with changed settings."""
    beside = site.conf.parent
    connected = with_json_values(read(below(root, beside / CONNECTED)), values, beside / CONNECTED)
    options = " ".join(["--user", site.user, *forwarder_options(address)])
    return [
        HostFile(path=JOBCOMP_TOKEN, group=SERVICE_USER, mode=0o640, scope="ingest"),
        HostFile(path=FILTER_TOKEN, owner=site.user, mode=0o600, scope="predict"),
        HostFile(path=FORWARDER_OPTIONS, text=f"OPTIONS={options}\n"),
        our_filter(beside),
        HostFile(path=beside / CONFIG, text=read(script(f"slurm/{CONFIG}")), is_kept=True),
        HostFile(path=beside / CONNECTED, text=connected),
        # Last: slurmctld reads all of them again when this one changes.
        HostFile(
            path=beside / FILTER,
            text=read(script(f"slurm/{FILTER}")),
            is_kept=is_the_sites(below(root, beside / FILTER)),
        ),
    ]


def our_filter(directory: Path) -> HostFile:
    """Return the filter of this release."""
    return HostFile(path=directory / OURS, text=read(script(f"slurm/{OURS}")))


def is_the_sites(file: Path) -> bool:
    """Return whether a filter exists that is not a copy of ours."""
    return file.is_file() and "walltimed: copy it beside slurm.conf" not in read(file)


def calls_walltimed(file: Path) -> bool:
    """Return whether a filter loads ours, as one of the site's does that took over its parts."""
    return OURS in read(file)
