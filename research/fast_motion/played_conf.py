"""Makes the slurm.conf of a play out of a site's, and says what is changed.

What decides on schedules is kept: nodes with their CPUs and weights, partitions, priorities and the
parameters of the schedulers. Paths, ports, authentication and time-outs are those of the play.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from simulator.traces.partitions import host_names

Words = Mapping[str, str]

PLAY_PARAMETERS = {
    "bf_max_time": "3600",
    "max_sched_time": "3600",
    "bf_yield_interval": "10000000",
}
"""Bounds on what schedulers do in one go. Their milliseconds are seconds of the fast clock."""

_OF_USERS = re.compile(r"bf_max_job_(user|user_part|assoc)")

_KEPT = re.compile(
    r"Priority(Type|WeightAge|WeightJobSize|WeightPartition|MaxAge|CalcPeriod|FavorSmall|Flags)"
    r"|Scheduler(Type|Parameters)|SelectType(Parameters)?|KillWait|OverTimeLimit|CompleteWait",
    re.IGNORECASE,
)

_NODE = ("CPUs", "Boards", "SocketsPerBoard", "Sockets", "CoresPerSocket", "ThreadsPerCore")

_PARTITION = (
    "Nodes", "Default", "PriorityTier", "PriorityJobFactor", "OverSubscribe", "Exclusive",
    "OverTimeLimit", "LLN", "MaxCPUsPerNode",
)  # fmt: skip

COMMON = """\
ClusterName=play
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool/%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.%n.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd.%n.log
LogTimeFormat=iso8601_ms
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SlurmdParameters=config_overrides
DebugFlags=NO_CONF_HASH,Backfill
ReturnToService=2
MessageTimeout=60000
TCPTimeout=60000
SlurmctldTimeout=60000
SlurmdTimeout=0
BatchStartTimeout=60000
UnkillableStepTimeout=60000
InactiveLimit=0
MinJobAge=10000000
MaxJobCount=50000
"""


class SiteConfError(ValueError):
    """A slurm.conf cannot be played; the message names file and line."""


class PlayedConf(NamedTuple):
    """Parts of a site's slurm.conf that are played.

    Attributes:
        lines: of slurm.conf, without the lines of ``COMMON`` and of nodes.
        nodes: CPUs, sockets, weight and so on of each node, by its name, in Slurm's order.
        changes: what is not as at the site, in sentences.
    """

    lines: Sequence[str]
    nodes: Mapping[str, Words]
    changes: Sequence[str]

    def text(self, directory: Path, host: str, user: str, ports: Sequence[int]) -> str:
        """Return the whole slurm.conf; the first port is slurmctld's, the others slurmds'."""
        common = COMMON.format(directory=directory, host=host, user=user, port=ports[0])
        nodes = (
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} State=UNKNOWN "
            + " ".join(f"{key}={value}" for key, value in words.items())
            for (name, words), port in zip(self.nodes.items(), ports[1:], strict=True)
        )
        return "\n".join([common, *self.lines, *nodes, ""])

    def partition_of(self, queue: str) -> str:
        """Return the partition in which a queue's jobs are played: of its name, or the default."""
        lines = [line for line in self.lines if line.startswith("PartitionName=")]
        names = [line.split()[0].partition("=")[2] for line in lines]
        default = (name for name, line in zip(names, lines, strict=True) if "Default=YES" in line)
        return queue if queue in names else next(default, names[0])


def plain_conf(processors: int, cpus: int = 1) -> PlayedConf:
    """Return one FIFO partition of nodes with some CPUs each, which jobs take whole."""
    lines = [
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_CPU",
        f"SchedulerParameters={_joined(PLAY_PARAMETERS)}",
        "PriorityType=priority/basic",
        "PartitionName=all Nodes=ALL Default=YES MaxTime=UNLIMITED OverSubscribe=EXCLUSIVE",
    ]
    nodes = range(-(-processors // cpus))
    return PlayedConf(lines, {f"n{place}": {"CPUs": str(cpus)} for place in nodes}, [])


def read_conf(file: Path) -> PlayedConf:
    """Read a site's slurm.conf, with the files that it includes.

    Raises:
        SiteConfError: the file has no nodes or partitions, or what cannot be played.
        OSError: a file cannot be read.
    """
    settings: dict[str, str] = {}
    nodes: dict[str, Words] = {}
    partitions: list[Words] = []
    changes: list[str] = []
    defaults: dict[str, Words] = {"NodeName": {}, "PartitionName": {}}
    for where, words in _statements(file):
        kind = next(iter(words))
        if kind not in defaults:
            settings |= words
        elif words[kind] == "DEFAULT":
            defaults[kind] = {**defaults[kind], **words}
        elif kind == "NodeName":
            nodes |= _nodes(where, {**defaults[kind], **words})
        else:
            partitions.append({**defaults[kind], **words})
    if not nodes or not partitions:
        raise SiteConfError(f"{file} has no NodeName or no PartitionName.")
    lines = [*_kept_settings(settings, changes), *map(_partition, partitions)]
    changes += _left_out("partitions", partitions, ("PartitionName", *_PARTITION))
    changes.append("Users, accounts, QOS and their limits play no part.")
    changes.append("Memory, Gres, features, prologs and epilogs play no part.")
    return PlayedConf(lines, nodes, changes)


def _statements(file: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each statement with its place; one of nodes or partitions has several words.

    Raises:
        SiteConfError: a line is not made of words NAME=VALUE.
    """
    number, text = 0, ""
    for number, line in enumerate(file.read_text("utf-8", "replace").splitlines(), start=1):
        text += line.partition("#")[0].rstrip()
        if text.endswith("\\"):
            text = text[:-1] + " "
            continue
        statement, text = text.strip(), ""
        if statement.lower().startswith("include "):
            yield from _statements(file.parent / statement.split(maxsplit=1)[1])
        elif statement:
            where = f"{file}, line {number}"
            yield where, _words(where, statement)


def _words(where: str, statement: str) -> dict[str, str]:
    """Return the words of a statement by their names, as Slurm spells the first one."""
    found = re.findall(r"([\w:]+)\s*=\s*(\"[^\"]*\"|\S*)", statement)
    if not found:
        raise SiteConfError(f"{where}: {statement!r} is not NAME=VALUE.")
    first, value = found[0]
    for kind in ("NodeName", "PartitionName"):
        if first.lower() == kind.lower():
            return {kind: value, **dict(found[1:])}
    if first.lower() == "nodeset":
        raise SiteConfError(f"{where}: name the nodes, not a NodeSet.")
    return {first: statement.partition("=")[2].strip()}


def _nodes(where: str, words: Words) -> dict[str, Words]:
    """Return the nodes of a line.

    Raises:
        SiteConfError: the list of names makes no sense.
    """
    kept = {name: value for name, value in words.items() if name in {*_NODE, "Weight"}}
    try:
        return dict.fromkeys(host_names(words["NodeName"]), kept)
    except ValueError as error:
        raise SiteConfError(f"{where}: {error}") from error


def _partition(words: Words) -> str:
    named = {name.lower(): (name, value) for name, value in words.items()}
    kept = [named[key.lower()] for key in _PARTITION if key.lower() in named]
    pairs = " ".join(f"{name}={value}" for name, value in kept)
    return f"PartitionName={words['PartitionName']} MaxTime=UNLIMITED State=UP {pairs}"


def _left_out(kind: str, found: Sequence[Words], kept: Sequence[str]) -> Iterator[str]:
    """Yield a sentence about words of lines that play no part."""
    known = {name.lower() for name in kept}
    names = sorted({name for words in found for name in words if name.lower() not in known})
    if names:
        yield f"{', '.join(names)} of {kind} play no part."


def _kept_settings(settings: Words, changes: list[str]) -> Iterator[str]:
    """Yield the settings that decide on schedules, and note what is changed in them."""
    kept = {name: value for name, value in settings.items() if _KEPT.fullmatch(name)}
    by_name = {name.lower(): value for name, value in settings.items()}
    if by_name.get("schedulertype", "sched/backfill") != "sched/backfill":
        changes.append(f"SchedulerType is sched/backfill, not {by_name['schedulertype']}.")
    if by_name.get("preempttype", "preempt/none") != "preempt/none":
        changes.append("Preemption plays no part.")
    if by_name.get("priorityweightfairshare", "0") != "0":
        changes.append("PriorityWeightFairshare is 0: there are no accounts in a play.")
    changed = {
        "schedulertype": "sched/backfill",
        "selecttype": "select/cons_tres",
        "selecttypeparameters": _without_memory(by_name.get("selecttypeparameters", "CR_CPU")),
        "schedulerparameters": _parameters(by_name.get("schedulerparameters", ""), changes),
    }
    for name, value in kept.items():
        if name.lower() not in changed:
            yield f"{name}={value}"
    for name, value in changed.items():
        if name.startswith("selecttype") and by_name.get(name, value).lower() != value.lower():
            changes.append(f"{name} is {value}, not {by_name[name]}.")
        yield f"{name}={value}"


def _without_memory(parameters: str) -> str:
    found = [re.sub("_MEMORY$", "", each.upper()) for each in parameters.split(",")]
    return ",".join("CR_CPU" if each == "CR" else each for each in found)


def _parameters(text: str, changes: list[str]) -> str:
    """Return SchedulerParameters of the play."""
    kept = {}
    for item in filter(None, text.split(",")):
        name, _, value = item.strip().partition("=")
        if _OF_USERS.fullmatch(name):
            changes.append(f"{item} plays no part: all jobs are of one user.")
        elif name not in PLAY_PARAMETERS:
            kept[name] = value
    bounds = _joined(PLAY_PARAMETERS)
    changes.append(f"{bounds}: milliseconds of a scheduler are seconds of the fast clock.")
    return _joined({**kept, **PLAY_PARAMETERS})


def _joined(parameters: Words) -> str:
    return ",".join(f"{name}={value}" if value else name for name, value in parameters.items())
