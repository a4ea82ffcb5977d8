"""Plan a backtest: the rules of its three columns, its methods, and its machines."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from simulator.backtest.order_effect import OrderEffect, effect_of
from simulator.backtest.site import BacktestSite, Codes, groupings_of, without_unused
from simulator.replay.method_spec import WITHOUT_PROJECTS, MethodSpec, usual_methods
from simulator.scheduling.estimates import EXACT, REQUESTED
from simulator.scheduling.ratio_rules import RESPONSE_RATIO, USUAL_RATIO, RatioError
from simulator.scheduling.semantics import AGED_ORDER, HAND_OVERS, HANDED_OVER, Semantics
from simulator.scheduling.workload import first_jobs
from simulator.traces.cleaning import NoJobError
from simulator.traces.completions import RecordedLog
from simulator.traces.partitions import (
    FROM_LOG,
    OTHER_QUEUES,
    Partition,
    partitions_of_log,
    read_partitions,
)
from simulator.traces.trace import Trace
from terminal.console import CommandError, ExitCode

SCHEDULER_OF_FORMAT = {"sacct": "slurm", "pbs": "pbs"}
"""The scheduler of a log; that of SWF is not known, and played by EASY."""

NOT_PREDICTED = frozenset({REQUESTED, EXACT})
"""Estimates that every backtest simulates, and that are no method to compare with."""

NO_MACHINE = -1
"""The machine of a job whose queue belongs to no partition."""


class Rules(NamedTuple):
    """Rules of the three columns: today, ordered by request, with predictions.

    Where Slurm's configuration keeps the order from acting, the last two have the advised lines.
    """

    semantics: Semantics
    by_request: Semantics
    handed_over: Semantics
    effect: OrderEffect | None = None


def rules_of(
    scheduler: str,
    profile: str | None,
    order: str,
    *,
    twin: Mapping[str, Any] | None = None,
    site_factor: int | None = None,
) -> Rules:
    """Return the rules of the three columns.

    Args:
        scheduler: a twin or a policy.
        profile: where predictions act; None: on the order of the queue.
        order: queue order of today.
        twin: rules of a site's configuration, by the name of the twin, and of its order by ratio.
        site_factor: largest SiteFactor; None: by the site's configuration.

    Raises:
        SemanticsError: there is no such scheduler, profile or order.
        RatioError: there are numbers of an order by ratio that the profile does not have.
    """
    profile = profile or HANDED_OVER
    site: dict[str, Any] = {"policy": scheduler, **(twin or {})}
    hands_over = profile in HAND_OVERS
    orders = {} if hands_over else {"order": order}
    today = Semantics(order=order, **site)
    by_request = profile if profile == AGED_ORDER else HANDED_OVER
    key = HAND_OVERS[by_request]["order"]
    if site.get("ratio", USUAL_RATIO) != USUAL_RATIO and key != RESPONSE_RATIO:
        raise RatioError(f"--ratio acts on the order response-ratio, not under {profile}.")
    acts = hands_over and "slurm" in site
    effect = effect_of(site["slurm"], site_factor, key) if acts else None
    site["site_factor"] = site_factor
    if effect is not None:
        site |= {"slurm": effect.rules, "site_factor": effect.largest}
    return Rules(
        semantics=today,
        by_request=Semantics.adjusted(by_request, **site),
        handed_over=Semantics.adjusted(profile, **orders, **site),
        effect=effect,
    )


def scheduler_of(format_: str, slurm_config: Path | None, pbs_config: Path | None) -> str:
    """Return the scheduler whose configuration is named, else that of the log's format."""
    if slurm_config or pbs_config:
        return "slurm" if slurm_config else "pbs"
    return SCHEDULER_OF_FORMAT.get(format_, "easy")


def in_force_of(method: str, parameters: Mapping[str, Any]) -> str:
    """Return the method that the service would answer with, as a spec with its parameters."""
    if not parameters:
        return WITHOUT_PROJECTS.get(method, method)
    pairs = (
        f"{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in parameters.items()
    )
    return f"{method}:{','.join(pairs)}"


def methods_of(in_force: str, wanted: Sequence[str] | None) -> list[str]:
    """Return the methods to play: the method in force, and the methods to compare it with.

    Raises:
        CommandError: a method predicts nothing.
        MethodSpecError: a method is wrongly spelt.
        UnknownMethodError: there is no such method.
    """
    if wanted and not set(wanted) - NOT_PREDICTED:
        raise CommandError("Name a method that predicts.", ExitCode.USAGE)
    if in_force in NOT_PREDICTED:
        raise CommandError(
            f"With the setting method = {in_force!r} nothing is predicted; name a method that "
            "predicts, for example WALLTIMED_METHOD=max-usage.",
            ExitCode.USAGE,
        )
    names = dict.fromkeys((in_force, *(wanted or usual_methods())))
    methods = [name for name in names if name not in NOT_PREDICTED]
    for name in methods:
        MethodSpec.parse(name).predictor()
    return methods


class MachineOptions(NamedTuple):
    """The machine as the options of the command name it; None: by the log.

    Attributes:
        cores_per_node: jobs take whole nodes with this many cores.
        partitions: file with the partitions, or the word for those of the log.
    """

    processors: int | None = None
    cores_per_node: int | None = None
    partitions: str | None = None


def site_of(
    log: RecordedLog, rules: Rules, machine: MachineOptions, *, limit: int | None = None
) -> BacktestSite:
    """Return the site to simulate: its trace, rules, partitions and groupings.

    Raises:
        CommandError: no job is in a partition.
    """
    queues = {**names_of_queues(log.trace), **log.queues}
    found = partitions_of(log.trace, queues, machine.partitions)
    size = sum(each.processors for each in found) or machine.processors
    trace = first_jobs(log.trace, limit, processors=size)
    machines = machines_of(trace, queues, found)
    if found and not (machines >= 0).any():
        raise CommandError(_no_machine(trace, queues, found, machine.partitions), ExitCode.USAGE)
    accounts = log.accounts_of_jobs
    return BacktestSite(
        trace=replace(without_unused(trace), header=with_queues(trace.header, log.queues)),
        **rules._asdict(),
        processors=machine.processors,
        cores_per_node=machine.cores_per_node,
        partitions=found,
        machine_of_line=machines,
        groupings=groupings_of(
            trace,
            users=log.users,
            queues=queues,
            accounts=log.accounts,
            accounts_of_jobs=None if accounts is None else accounts[trace.line - 1],
        ),
    )


def check_jobs(site: BacktestSite, left_out: Mapping[str, int], name: str) -> None:
    """Check that a site has jobs to simulate.

    Raises:
        NoJobError: there are none; the message says why jobs of the log ``name`` were left out.
    """
    workloads = site.workloads()
    if not any(map(len, workloads)):
        raise NoJobError(name, "simulated", {**left_out, **site.counts_of(workloads)})


def _no_machine(
    trace: Trace, queues: Mapping[int, str], found: Sequence[Partition], source: str | None
) -> str:
    names = sorted({queues.get(each, str(each)) for each in set(trace.queue)})
    return (
        f"No job is in a partition of {source}: they are "
        f"{', '.join(each.name for each in found[:8])}; the log's queues are "
        f"{', '.join(names[:8])}."
    )


def partitions_of(
    trace: Trace, queues: Mapping[int, str], source: str | None
) -> Sequence[Partition]:
    """Return the partitions that ``--partitions`` names, by the log itself or by a file."""
    if not source:
        return []
    return partitions_of_log(trace, queues) if source == FROM_LOG else read_partitions(source)


def machines_of(trace: Trace, queues: Mapping[int, str], partitions: Sequence[Partition]) -> Codes:
    """Return the partition of each job, by the name or the number of its queue."""
    place = {queue: number for number, each in enumerate(partitions) for queue in each.queues}
    other = place.get(OTHER_QUEUES, NO_MACHINE)
    numbers, codes = np.unique(trace.queue, return_inverse=True)
    found = [
        place.get(queues.get(number, str(number)), place.get(str(number), other))
        for number in numbers.tolist()
    ]
    return np.array(found, np.int32)[codes] if len(trace) else np.zeros(0, np.int32)


def names_of_queues(trace: Trace) -> Mapping[int, str]:
    """Return the names of queues that the header of an SWF log has."""
    names = {}
    for line in trace.header.get("Queue", "").splitlines():
        number, _, name = line.strip().partition(" ")
        if number.isdecimal() and name.strip():
            names[int(number)] = name.strip()
    return names


def with_queues(header: dict[str, str], queues: Mapping[int, str]) -> dict[str, str]:
    """Return a header that names the queues, as the twin of Slurm finds partitions by name."""
    if not queues:
        return header
    return {**header, "Queue": "\n".join(f"{number} {name}" for number, name in queues.items())}
