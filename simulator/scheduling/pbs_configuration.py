"""Reads a site's rules from what ``qmgr``, ``qstat -Bf`` and ``pbsnodes -av`` print.

A directory holds these texts and a copy of ``sched_config`` in files of any names; each is known by
its content. What would change a schedule and is not modelled is listed, and stands in every result.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from simulator.engine.pbs.pbs_state import MOST_PLANS
from simulator.scheduling.pbs_formula import (
    LENGTH,
    SOFT_WALLTIME,
    WAIT,
    FormulaError,
    compiled_formula,
)
from simulator.scheduling.pbs_rules import PbsLimit, PbsQueue, PbsRules, PbsRulesError
from simulator.scheduling.slurm_configuration import texts_by_kind
from simulator.scheduling.slurm_records import ranges_of
from simulator.scheduling.slurm_rules import SlurmCluster, SlurmPartition
from terminal.exit_codes import ExitCode

Attributes = Mapping[str, str]


class PbsConfigurationError(ValueError):
    """A directory does not describe a PBS server; the message names the file or the value."""

    exit_code = ExitCode.USAGE


COMMANDS = {
    "server": 'qmgr -c "print server"',
    "nodes": "pbsnodes -av",
    "sched_config": "cat PBS_HOME/sched_priv/sched_config",
}

_SIGNS = {
    "server": r"^set server \w",
    "status": r"^Server: ",
    "nodes": r"^ +(ntype|pcpus|resources_available\.ncpus) = ",
    "sched_config": r"^(strict_ordering|by_queue|round_robin)\s*:",
}
"""Lines that only one of the texts has."""

FUZZY = {"off": 0, "low": 60, "medium": 600, "high": 3600}
"""Seconds of opt_backfill_fuzzy by its names."""

EXPRESS = 150
"""Queues of this priority preempt (preempt_queue_prio)."""


@dataclass(slots=True)
class Server:
    """Attributes of the server, its schedulers and its queues."""

    server: dict[str, str] = field(default_factory=dict)
    schedulers: dict[str, str] = field(default_factory=dict)
    queues: dict[str, dict[str, str]] = field(default_factory=dict)


def read_pbs_configuration(directory: str | Path) -> PbsRules:
    """Return the rules of the site whose texts are in a directory.

    Raises:
        PbsConfigurationError: a text is missing or makes no sense.
        OSError: a file cannot be read.
    """
    texts = texts_of(directory)
    found = _server(texts["server"], texts.get("status", ""))
    policy = dict(_policy(texts["sched_config"]))
    given = attributes_of_nodes(texts["nodes"])
    nodes = sorted(given, key=lambda node: -int(node.get("Priority", 0)))
    try:
        return _rules(found, policy, nodes)
    except (FormulaError, PbsRulesError, ValueError) as error:
        raise PbsConfigurationError(f"{directory}: {error}") from error


def texts_of(directory: str | Path) -> Mapping[str, str]:
    """Return the texts of a directory by what they are.

    Raises:
        PbsConfigurationError: one is missing.
        OSError: a file cannot be read.
    """
    texts = texts_by_kind(Path(directory), _SIGNS)
    for kind, command in COMMANDS.items():
        if kind not in texts:
            raise PbsConfigurationError(f"{directory} has no file with what {command} prints.")
    return texts


_COMMAND = re.compile(r"set (server|sched|queue)(?: ([^\s=]+))? (\w[\w.]*) (\+?=) (.*)")


def _server(printed: str, status: str) -> Server:
    """Return what qmgr prints; what it does not print is taken from ``qstat -Bf``."""
    found = Server(server=dict(_attributes(status)))
    for line in printed.splitlines():
        text = line.strip()
        if created := re.match(r"create queue (\S+)", text):
            found.queues.setdefault(created[1], {})
        if not (words := _COMMAND.fullmatch(text)):
            continue
        kind, name, attribute, operator, value = words.groups()
        place = {"server": found.server, "sched": found.schedulers}.get(kind)
        if place is None:
            place = found.queues.setdefault(name, {})
        value = value.strip().strip('"')
        place[attribute] = f"{place[attribute]},{value}" if operator == "+=" else value
    return found


def _attributes(text: str) -> Iterator[tuple[str, str]]:
    """Yield names and values of lines such as ``    name = value``; a tab continues a value."""
    for line in re.sub(r"\n\t+", "", text).splitlines():
        if found := re.match(r" +(\S+) = (.*)", line):
            yield found[1], found[2].strip()


def attributes_of_nodes(text: str) -> Iterator[Attributes]:
    """Yield the attributes of each node with CPUs that ``pbsnodes -av`` prints."""
    for block in re.split(r"\n\s*\n", text):
        words = dict(_attributes(block))
        if _cpus(words):
            yield words


def _policy(text: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of sched_config; those that hold outside prime time only are left out."""
    for line in text.splitlines():
        found = re.match(r'(\w+)\s*:\s*("[^"]*"|\S+)\s*(\w+)?', line)
        if found and (found[3] or "all").lower() in {"all", "prime"}:
            yield found[1], found[2].strip('"')


def _rules(found: Server, policy: Attributes, nodes: Sequence[Attributes]) -> PbsRules:
    """Return the rules, with what is not modelled."""
    queues = {
        name: words
        for name, words in found.queues.items()
        if words.get("queue_type", "Execution").lower().startswith("e")
    } or {"workq": {}}
    defaults = dict(_numbers(found.server, "resources_default."))
    formula, unread = _formula(found, policy)
    limits, unknown = _limits(found.server, "the server")
    of_queues, members, more = [], [], []
    for name, words in queues.items():
        queue_limits, others = _limits(words, name)
        more += others
        depth = words.get("backfill_depth")
        of_queues.append(
            PbsQueue(
                name=name,
                backfill_depth=None if depth is None else min(MOST_PLANS, int(depth)),
                limits=tuple(queue_limits),
                defaults=dict(_numbers(words, "resources_default.")) or None,
            )
        )
        members.append(_partition(name, words, found, nodes))
    kinds = [(_cpus(node), 1) for node in nodes]
    unmodelled = [*unread, *_unmodelled(found, policy, nodes), *unknown, *more]
    return PbsRules(
        scheduler_iteration=int(_of_scheduler(found, "scheduler_iteration", "600")),
        strict_ordering=_is_true(policy.get("strict_ordering", "false")),
        backfill_depth=min(MOST_PLANS, int(_of_scheduler(found, "backfill_depth", "1"))),
        opt_backfill_fuzzy=_fuzzy(_of_scheduler(found, "opt_backfill_fuzzy", "low")),
        by_queue=_is_true(policy.get("by_queue", "true")),
        job_sort_formula=formula,
        queues=tuple(of_queues),
        limits=tuple(limits),
        defaults=defaults or None,
        cluster=SlurmCluster(
            groups=tuple((len(list(equal)), *kind) for kind, equal in groupby(kinds)),
            partitions=tuple(members),
        ),
        unmodelled=tuple(dict.fromkeys(unmodelled)),
    )


def _of_scheduler(found: Server, name: str, usual: str) -> str:
    """Return an attribute of the scheduler, else of the server."""
    return found.schedulers.get(name, found.server.get(name, usual))


def _is_true(text: str) -> bool:
    return text.lower() in {"true", "t", "1", "yes", "y"}


def _fuzzy(text: str) -> int:
    return FUZZY[text.lower()] if text.lower() in FUZZY else int(text)


def _cpus(node: Attributes) -> int:
    return int(node.get("resources_available.ncpus", node.get("pcpus", 0)))


def _numbers(words: Attributes, prefix: str) -> Iterator[tuple[str, float]]:
    """Yield resources that are plain numbers."""
    for name, value in words.items():
        if name.startswith(prefix) and re.fullmatch(r"-?\d+(\.\d+)?", value):
            yield name.removeprefix(prefix), float(value)


def _partition(
    name: str, words: Attributes, found: Server, nodes: Sequence[Attributes]
) -> SlurmPartition:
    """Return a queue's nodes: its own, else those of no queue that its default chunk fits.

    Raises:
        PbsRulesError: it has no nodes.
    """
    own = [place for place, node in enumerate(nodes) if node.get("queue") == name]
    places = own or [place for place, node in enumerate(nodes) if "queue" not in node]
    members = [place for place in places if _cpus(nodes[place]) and _suits(words, nodes[place])]
    if not members:
        raise PbsRulesError(f"Queue {name} has no nodes.")
    default = words.get(
        "resources_default.place", found.server.get("resources_default.place", "free")
    )
    sharing = {nodes[place].get("sharing", "default_shared") for place in members}
    return SlurmPartition(
        name=name,
        ranges=tuple(ranges_of(members)),
        exclusive="excl" in default or all("excl" in each for each in sharing - {"ignore_excl"}),
        tier=int(words.get("Priority", 0)),
        is_default=name == found.server.get("default_queue"),
    )


def _suits(queue: Attributes, node: Attributes) -> bool:
    """Return whether a node has what a queue's default chunk names, such as ``Qlist = batch``."""
    for name, value in queue.items():
        resource = name.removeprefix("default_chunk.")
        if resource == name or re.fullmatch(r"\d+\w*", value):
            continue
        offered = node.get(f"resources_available.{resource}", "").lower()
        if value.lower() not in offered.split(","):
            return False
    return True


def _limits(words: Attributes, place: str) -> tuple[list[PbsLimit], list[str]]:
    """Return the limits of the server or a queue, and those that are not modelled."""
    found: list[PbsLimit] = []
    unmodelled: list[str] = []
    for name, value in words.items():
        if name in _OLD_LIMITS:
            entity, resource = _OLD_LIMITS[name]
            found.append(PbsLimit(entity=entity, resource=resource, most=int(value)))
        elif name in {"max_run", "max_run_res.ncpus"}:
            counted: Any = "jobs" if name == "max_run" else "ncpus"
            for kind, who, most in re.findall(r"\[\s*([ugop]):(\S+?)\s*=\s*(\d+)\s*\]", value):
                if kind in "ugo" and who in {"PBS_ALL", "PBS_GENERIC"}:
                    found.append(PbsLimit(entity=kind, resource=counted, most=int(most)))
                else:
                    unmodelled.append(f"{name}=[{kind}:{who}={most}] of {place}")
        elif name.startswith(("max_run", "max_user_res", "max_group_r")):
            unmodelled.append(f"{name} of {place}")
    return found, unmodelled


_OLD_LIMITS: Mapping[str, tuple[Any, Any]] = {
    "max_running": ("o", "jobs"),
    "max_user_run": ("u", "jobs"),
    "max_group_run": ("g", "jobs"),
    "max_user_res.ncpus": ("u", "ncpus"),
    "max_group_res.ncpus": ("g", "ncpus"),
    "resources_available.ncpus": ("o", "ncpus"),
}
"""Limits whose value is a number, and whom and what they count."""

_LENGTHS = {"walltime", "ncpus", "nodect", "queue_priority", SOFT_WALLTIME, LENGTH, WAIT}
"""Variables of a formula whose values a log has."""


def _formula(found: Server, policy: Attributes) -> tuple[str, list[str]]:
    """Return the order of the jobs as a formula, and what of it is not modelled."""
    text = _of_scheduler(found, "job_sort_formula", "")
    key = policy.get("job_sort_key", "").split()
    if not text and key:
        sign = "-" if key[-1].upper() == "LOW" else ""
        text = f"{sign}{key[0]}"
    if not text:
        return "", []
    names = {each.variable for each in compiled_formula(text) if each.variable} - _LENGTHS
    defaults = {name for name, _ in _numbers(found.server, "resources_default.")}
    for words in found.queues.values():
        defaults |= {name for name, _ in _numbers(words, "resources_default.")}
    return text, [
        f"{name} in job_sort_formula is "
        + ("that of queue or server" if name in defaults else "0")
        + " for every job"
        for name in sorted(names)
    ]


_UNMODELLED_POLICY = (
    "fair_share",
    "round_robin",
    "strict_fifo",
    "backfill_prime",
    "load_balancing",
)
"""Lines of sched_config that are not modelled where they are true."""


def _unmodelled(found: Server, policy: Attributes, nodes: Sequence[Attributes]) -> Iterator[str]:
    """Yield what would change a schedule and is not modelled."""
    for name in _UNMODELLED_POLICY:
        if _is_true(policy.get(name, "false")):
            yield f"{name}: {policy[name]}"
    if policy.get("node_sort_key", "sort_priority HIGH") != "sort_priority HIGH":
        yield f"node_sort_key: {policy['node_sort_key']}"
    express = [
        name for name, words in found.queues.items() if int(words.get("Priority", 0)) >= EXPRESS
    ]
    if express and _is_true(policy.get("preemptive_sched", "true")):
        yield f"preemption by {', '.join(express)}"
    if _is_true(found.server.get("node_group_enable", "false")):
        yield "placement sets (node_group_key)"
    if "job_sort_formula_threshold" in found.schedulers:
        yield "job_sort_formula_threshold"
    down = sum(bool(re.search(r"down|offline|unknown", node.get("state", ""))) for node in nodes)
    if down:
        yield f"{down} nodes that are down or offline count as up"
    hosts = [node.get("resources_available.host", "") for node in nodes]
    if len(set(filter(None, hosts))) < len(list(filter(None, hosts))):
        yield "several vnodes of a host count as nodes"
    if any(name.startswith("resources_available.ngpus") for node in nodes for name in node):
        yield "GPUs"
