"""Reads a site's rules from what ``scontrol show config``, ``partition`` and ``node`` print.

A directory holds these texts in files of any names; each is known by its first line. What would
change a schedule and is not modelled is listed, and stands in every result.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from simulator.scheduling.slurm_records import Fields, blocks, ranges_of, read_reservations
from simulator.scheduling.slurm_rules import (
    SlurmCluster,
    SlurmPartition,
    SlurmRules,
    SlurmRulesError,
)
from simulator.traces.partitions import host_names
from terminal.exit_codes import ExitCode

LARGEST_FILE = 64 << 20
"""Bytes."""

SOFT_LIMITS_SINCE = (25, 5, 4)
"""The Slurm that plans with soft limits."""

WITH_ACCOUNTS = "accounting_storage/slurmdbd"
"""The accounting without which Slurm ignores PriorityWeightAge and PriorityWeightFairshare."""


class SlurmConfigurationError(ValueError):
    """A directory does not describe a Slurm cluster; the message names the file."""

    exit_code = ExitCode.USAGE


def read_configuration(directory: str | Path) -> SlurmRules:
    """Return the rules of the site whose texts are in a directory.

    Raises:
        SlurmConfigurationError: a text is missing or makes no sense.
        OSError: a file cannot be read.
    """
    texts = texts_by_kind(Path(directory), _FIRST_LINES)
    for kind, command in COMMANDS.items():
        if kind not in texts:
            raise SlurmConfigurationError(
                f"{directory} has no file with what {command} prints. {_how_to_write(directory)}"
            )
    nodes = list(blocks(texts["node"], "NodeName"))
    partitions = list(blocks(texts["partition"], "PartitionName"))
    config = _config(texts["config"])
    try:
        cluster, unmodelled = _cluster(nodes, partitions)
        places = {node["NodeName"]: place for place, node in enumerate(nodes)}
        reservations, unknown = read_reservations(texts.get("reservation", ""), places)
        cluster = replace(cluster, reservations=reservations)
        limits = _limits(texts.get("qos", ""))
        rules = SlurmRules(
            cluster=cluster, **{**_scheduler(config), **_priorities(config), **limits}
        )
    except (KeyError, ValueError) as error:
        raise SlurmConfigurationError(f"{directory}: {_words_of(error)}") from error
    return replace(rules, unmodelled=(*_unmodelled(config), *unmodelled, *unknown))


COMMANDS = {
    "config": "scontrol show config",
    "partition": "scontrol show partition",
    "node": "scontrol show node",
}


def _how_to_write(directory: str | Path) -> str:
    """Return the commands that write the texts of a site into a directory."""
    where = shlex.quote(str(directory))
    commands = "; ".join(
        f"scontrol show {what} > {where}/{what}.txt"
        for what in ("config", "partition", "node", "reservation")
    )
    has_conf = (Path(directory) / "slurm.conf").exists()
    return f"{'slurm.conf is not read. ' if has_conf else ''}Write them (docs/twins.md): {commands}"


_FIRST_LINES = {
    "config": r"\AConfiguration data as of",
    "partition": r"\APartitionName=",
    "node": r"\ANodeName=",
    "qos": r"\AName\|.*MaxJobsPU",
    "reservation": r"\AReservationName=",
}


def _words_of(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error.args[0]} is missing."
    return str(error)


def texts_by_kind(directory: Path, signs: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of a directory by their kind; several of one kind are joined.

    Args:
        directory: of files of any names.
        signs: for each kind a regular expression that a text of that kind has; the first counts.
    """
    texts: dict[str, str] = {}
    for file in sorted(directory.iterdir()):
        if not file.is_file() or file.stat().st_size > LARGEST_FILE:
            continue
        text = file.read_text("utf-8", "replace").lstrip()
        found = (kind for kind, sign in signs.items() if re.search(sign, text, re.MULTILINE))
        if kind := next(found, None):
            texts[kind] = texts.get(kind, "") + "\n" + text
    return texts


def _config(text: str) -> Fields:
    """Return the values of ``scontrol show config`` by their names."""
    return {
        name.strip(): value.strip()
        for name, equals, value in (line.partition("=") for line in text.splitlines())
        if equals
    }


def _cluster(
    nodes: Sequence[Fields], partitions: Sequence[Fields]
) -> tuple[SlurmCluster, Sequence[str]]:
    """Return the cluster, and what of it is not modelled."""
    places = {node["NodeName"]: place for place, node in enumerate(nodes)}
    kinds = [(int(node["CPUTot"]), int(node.get("Weight", 1))) for node in nodes]
    groups = [(len(list(equal)), *kind) for kind, equal in groupby(kinds)]
    down = {node["NodeName"] for node in nodes if _is_down(node)}
    up = {name: place for name, place in places.items() if name not in down}
    found = [_partition(each, up) for each in partitions]
    gpus = tuple(_gpus(node.get("Gres", "")) for node in nodes)
    unmodelled = sorted({f"Gres {name}" for node in nodes for name in _other_gres(node)})
    unmodelled += sorted({found for each in partitions for found in _unusual_words(each)})
    cluster = SlurmCluster(
        groups=tuple(groups), partitions=tuple(found), down=len(down),
        gpus=gpus if any(gpus) else (),
    )  # fmt: skip
    return cluster, unmodelled


def _gpus(gres: str) -> int:
    """Return the number of GPUs in ``gpu:a100:4(S:0-1),nvme:1``, of all types."""
    return sum(map(int, re.findall(r"(?:^|,)gpu(?::[^,:(]+)*?:(\d+)", gres)))


def _other_gres(node: Fields) -> set[str]:
    """Return the names of a node's generic resources that are not GPUs."""
    names = re.findall(r"(?:^|,)([A-Za-z_]\w*)", node.get("Gres", "").replace("(null)", ""))
    return set(names) - {"gpu"}


def _is_down(node: Fields) -> bool:
    """Return whether a node takes no jobs; its state is such as ``IDLE+DRAIN`` or ``DOWN*``."""
    states = re.findall(r"[A-Z_]+", node.get("State", ""))
    return not {"DOWN", "DRAIN", "ERROR", "FAIL", "FUTURE"}.isdisjoint(states)


_USUAL_WORDS = {
    "Exclusive": ("NO", "NODE"),
    "ExclusiveTopo": ("NO",),
    "ExclusiveUser": ("NO",),
    "LLN": ("NO",),
    "MaxCPUsPerNode": ("UNLIMITED",),
    "MaxNodes": ("UNLIMITED",),
    "OverSubscribe": ("NO", "EXCLUSIVE"),
    "OverTimeLimit": ("NONE",),
    "PreemptMode": ("OFF",),
    "QoS": ("N/A",),
    "ReqResv": ("NO",),
    "State": ("UP",),
}
"""Words of partitions that the twin models, or without effect on it."""


def _unusual_words(words: Fields) -> Iterator[str]:
    """Yield what of a partition is not modelled."""
    for name, usual in _USUAL_WORDS.items():
        if words.get(name, usual[0]) not in usual:
            yield f"{name}={words[name]} of {words['PartitionName']}"


def _partition(words: Fields, places: Mapping[str, int]) -> SlurmPartition:
    members = sorted(places[name] for name in host_names(words.get("Nodes", "")) if name in places)
    if not members:
        raise SlurmRulesError(f"Partition {words['PartitionName']} has no nodes that are up.")
    return SlurmPartition(
        name=words["PartitionName"],
        ranges=tuple(ranges_of(members)),
        exclusive=words.get("OverSubscribe") == "EXCLUSIVE"
        or words.get("Exclusive") in {"NODE", "TOPO"},  # since Slurm 26.05
        tier=int(words.get("PriorityTier", 1)),
        job_factor=int(words.get("PriorityJobFactor", 1)),
        is_default=words.get("Default", "NO") == "YES",
    )


_PARAMETERS: Mapping[str, int] = {
    "bf_interval": 1,
    "bf_resolution": 1,
    "bf_window": 60,
    "bf_max_job_test": 1,
    "bf_max_job_part": 1,
    "bf_max_job_user": 1,
    "bf_max_job_start": 1,
    "bf_max_time": 1,
    "bf_node_space_size": 1,
    "bf_window_linear": 1,
    "sched_interval": 1,
    "batch_sched_delay": 1,
    "default_queue_depth": 1,
}
"""Parameters of the schedulers that are numbers, and their units in seconds."""

_FLAGS = {"bf_continue", "defer", "time_min_as_soft_limit"}

_HARMLESS = re.compile(
    r"sched_max_job_start|sched_min_interval|max_sched_time|sched_max_time|build_queue_timeout"
    r"|max_rpc_cnt|max_switch_wait|nohold_on_prolog_fail|ignore_prefer_validation|bf_yield_.*"
    r"|bf_max_job_array_resv|bf_hetjob_.*|requeue_.*|enable_.*|salloc_wait_nodes|sbatch_wait_nodes"
)
"""Parameters without effect on the jobs that a log describes."""


def _parameters(config: Fields) -> Mapping[str, str]:
    text = config.get("SchedulerParameters", "")
    pairs = (item.strip().partition("=") for item in text.split(",") if item.strip())
    return {name: value for name, _, value in pairs if name != "(null)"}


def _scheduler(config: Fields) -> dict[str, Any]:
    """Return the rules of both schedulers."""
    given = _parameters(config)
    found: dict[str, Any] = {
        name: int(given[name]) * unit for name, unit in _PARAMETERS.items() if name in given
    }
    found |= {name: name in given for name in _FLAGS}
    version = _version(config)
    found["time_min_as_soft_limit"] &= version >= SOFT_LIMITS_SINCE
    if len(version) > 1:
        found["release"] = 100 * version[0] + version[1]
    found["kill_wait"] = _seconds(config.get("KillWait", "30 sec"))
    found["over_time_limit"] = _seconds(config.get("OverTimeLimit", "0 min"))
    return found


def _version(config: Fields) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", config.get("SLURM_VERSION", ""))[:3]))


def _seconds(text: str) -> int:
    """Return seconds of ``30 sec``, ``5 min``, ``7-00:00:00`` or ``00:05:00``."""
    days, _, rest = text.rpartition("-")
    if ":" in rest:
        parts = [int(part) for part in rest.split(":")]
        hours, minutes, seconds = [0] * (3 - len(parts)) + parts
        return 86400 * int(days or 0) + 3600 * hours + 60 * minutes + seconds
    found = re.match(r"(\d+)\s*(min)?", text)
    if not found:
        raise SlurmRulesError(f"{text} is no duration that the twin knows.")
    return int(found[1]) * (60 if found[2] else 1)


def _priorities(config: Fields) -> dict[str, Any]:
    """Return the rules of the order of the queue."""
    weights = {
        "priority_weight_age": "PriorityWeightAge",
        "priority_weight_fair_share": "PriorityWeightFairShare",
        "priority_weight_job_size": "PriorityWeightJobSize",
        "priority_weight_partition": "PriorityWeightPartition",
    }
    times = {
        "priority_max_age": "PriorityMaxAge",
        "priority_decay_half_life": "PriorityDecayHalfLife",
        "priority_calc_period": "PriorityCalcPeriod",
    }
    found: dict[str, Any] = {"priority_type": config.get("PriorityType", "priority/basic")}
    found |= {rule: int(config[name]) for rule, name in weights.items() if name in config}
    if config.get("AccountingStorageType", WITH_ACCOUNTS) != WITH_ACCOUNTS:
        ignored = found.get("priority_weight_age", 0)
        found |= {"priority_weight_age": 0, "priority_weight_fair_share": 0}
        found |= {"priority_weight_age_ignored": ignored, "without_accounts": True}
    found |= {rule: _seconds(config[name]) for rule, name in times.items() if name in config}
    found["priority_favor_small"] = config.get("PriorityFavorSmall", "No").lower() == "yes"
    return found


def _limits(text: str) -> dict[str, int]:
    """Return limits per user and account from ``sacctmgr --parsable2 show qos``.

    They are those of the QOS ``normal``, else of the first: the log does not say a job's QOS.
    """
    heads, *rows = [line.split("|") for line in text.strip().splitlines()] or [[]]
    found = [dict(zip(heads, row, strict=False)) for row in rows]
    if not found:
        return {}
    chosen = next((each for each in found if each.get("Name") == "normal"), found[0])
    limits = {
        "max_jobs_per_user": chosen.get("MaxJobsPU"),
        "max_jobs_per_account": chosen.get("MaxJobsPA"),
        "max_cpus_per_user": _cpus(chosen.get("MaxTRESPU")),
        "max_cpus_per_account": _cpus(chosen.get("MaxTRESPA")),
    }
    return {rule: int(value) for rule, value in limits.items() if value}


def _cpus(text: str | None) -> str | None:
    found = re.search(r"\bcpu=(\d+)", text or "")
    return found[1] if found else None


_USUAL = {
    "SchedulerType": ("sched/backfill",),
    "PreemptType": ("preempt/none", "(null)"),
    "PreemptMode": ("OFF",),
    "TopologyPlugin": ("topology/default", "topology/none", "topology/flat", "(null)"),
    "CompleteWait": ("0 sec", "0"),
    "PriorityWeightQOS": ("0",),
    "PriorityWeightAssoc": ("0",),
    "PriorityWeightTRES": ("(null)", ""),
    "PriorityFlags": ("(null)", ""),
    "PriorityUsageResetPeriod": ("NONE",),
    "SelectType": ("select/cons_tres", "select/cons_res"),
    "SelectTypeParameters": ("CR_CPU", "CR_CORE", "CR_CPU_MEMORY", "CR_CORE_MEMORY"),
}
"""Values that the twin models, or without effect on it."""


def _unmodelled(config: Fields) -> Iterator[str]:
    """Yield what would change a schedule and is not modelled."""
    for name, usual in _USUAL.items():
        if name in config and config[name] not in usual:
            yield f"{name}={config[name]}"
    for name, value in _parameters(config).items():
        known = name in _PARAMETERS or name in _FLAGS or _HARMLESS.fullmatch(name)
        if not known:
            yield f"{name}={value}" if value else name
    if "MEMORY" in config.get("SelectTypeParameters", ""):
        yield "memory"
