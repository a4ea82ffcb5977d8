"""Makes the configuration of a play out of that of a site's PBS, and says what is left out.

What decides on schedules is kept: sched_config, queues, limits, nodes with their CPUs, the order of
the jobs. Users, hosts, hooks and permissions are those of the play.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from simulator.scheduling.pbs_configuration import attributes_of_nodes, texts_of
from simulator.scheduling.pbs_formula import LENGTH, ratio_formula
from simulator.scheduling.ratio_rules import USUAL_RATIO

_KEPT = {
    "server": re.compile(
        r"backfill_depth|default_queue|eligible_time_enable|job_sort_formula|max_run.*|max_group.*"
        r"|max_user.*|max_running|opt_backfill_fuzzy|resources_(available|default|max)\..*"
        r"|scheduler_iteration"
    ),
    "sched": re.compile(r"job_sort_formula|opt_backfill_fuzzy|scheduler_iteration"),
    "queue": re.compile(
        r"backfill_depth|default_chunk\..*|enabled|max_run.*|max_group.*|max_user.*|Priority"
        r"|queue_type|resources_(available|default|max)\..*|started"
    ),
}
"""Attributes that decide on schedules."""

DEFAULT_QUEUE = "workq"
"""Queue that every new server has."""

ORDERED = (
    f"create resource {LENGTH} type=long",
    "set server eligible_time_enable = true",
)
"""Commands before the formula by which a site orders its queue by predictions."""

STRICT = re.compile(r"^strict_ordering:.*$", re.MULTILINE)


class PlayedServer(NamedTuple):
    """Parts of a site's configuration that are played.

    Attributes:
        sched_config: the file of the scheduler.
        nodes: attributes of each node, which vnodes of the play have.
        commands: of qmgr.
        changes: what is not as at the site, in sentences.
    """

    sched_config: str
    nodes: Sequence[Mapping[str, str]]
    commands: Sequence[str]
    changes: Sequence[str]

    def ordered(self, first_after: int) -> Self:
        """Return the same with the queue ordered by predictions, in place of the site's formula.

        Args:
            first_after: seconds of waiting after which a job goes first.
        """
        kept = [each for each in self.commands if "job_sort_formula" not in each]
        formula = ratio_formula(USUAL_RATIO, first_after)
        ours = (*ORDERED, f'set server job_sort_formula = "{formula}"')
        return self._replace(commands=[*kept, *ours])

    def vnodes(self) -> str:
        """Return the file by which one pbs_mom has all nodes, each as a host of its own."""
        lines = ["$configversion 2", "pbsnode: resources_available.ncpus = 0"]
        for place, words in enumerate(self.nodes):
            kept = {"resources_available.host": f"n{place}", **words}
            lines += [f"n{place}: {name} = {value}" for name, value in kept.items()]
        return "\n".join([*lines, ""])


def plain_server(nodes: int, sched_config: str) -> PlayedServer:
    """Return one queue of nodes with one CPU, which jobs take whole, in strict order.

    Args:
        nodes: number of nodes.
        sched_config: the file that PBS comes with.
    """
    return PlayedServer(
        STRICT.sub("strict_ordering: true all", sched_config),
        [{"resources_available.ncpus": "1"}] * nodes,
        ["set server resources_default.place = scatter:excl"],
        [],
    )


def read_server(directory: Path) -> PlayedServer:
    """Read a site's configuration.

    Raises:
        PbsConfigurationError: a text is missing or makes no sense.
        OSError: a file cannot be read.
    """
    texts = texts_of(directory)
    nodes, of_nodes = [], []
    for words in attributes_of_nodes(texts["nodes"]):
        of_nodes += [
            f"set node n{len(nodes)} {name} = {words[name]}"
            for name in ("queue", "Priority")
            if name in words
        ]
        cpus = words.get("resources_available.ncpus", words.get("pcpus", "1"))
        sharing = words.get("sharing", "default_shared")
        nodes.append({"resources_available.ncpus": cpus, "sharing": sharing})
    commands, left_out = _commands(texts["server"])
    changes = [f"{', '.join(sorted(left_out))} play no part."] if left_out else []
    changes.append("All jobs are of one user; memory, GPUs and other resources play no part.")
    return PlayedServer(texts["sched_config"], nodes, [*commands, *of_nodes], changes)


def _commands(printed: str) -> tuple[list[str], set[str]]:
    """Return the commands that are kept of those qmgr prints, and attributes that are not."""
    kept: list[str] = []
    left_out: set[str] = set()
    for line in printed.splitlines():
        text = line.strip()
        if re.match(r"create queue ", text) and text.split()[-1] != DEFAULT_QUEUE:
            kept.append(text)
        for kind, attribute in _attributes(text):
            if _KEPT[kind].fullmatch(attribute):
                kept.append(text)
            else:
                left_out.add(f"{attribute} of {kind}")
    # The default queue has to exist.
    return sorted(kept, key=lambda text: text.startswith("set server")), left_out


def _attributes(text: str) -> Iterator[tuple[str, str]]:
    """Yield the object and the attribute of a command that sets one."""
    if found := re.match(r"set (server|sched|queue \S+)(?: \S+)? (\w[\w.]*) \+?=", text):
        yield found[1].split()[0], found[2]
