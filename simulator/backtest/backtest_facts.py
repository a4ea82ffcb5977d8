"""Facts on how a backtest was computed: the log, the rules, the machine, and the treated jobs."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version

from simulator.backtest.plays import FULL_LOOP_JOBS, SHAKE_SECONDS
from simulator.backtest.site import BY_REQUEST, ReadLog
from simulator.backtest.verdict import Backtest, period, users_of
from simulator.traces.cleaning import in_words
from terminal.words import big, share

RULES: Mapping[str, str] = {
    "never-ran": "never ran",
    "endless": "ran or waited for more than 31 years",
    "zero-run": "ran for 0 s",
    "no-request": "had no requested walltime",
    "unlimited-request": "asked for more than 366 days",
    "no-processors": "had no number of processors",
    "too-wide": "were wider than the machine",
    "no-partition": "were in a queue of no partition",
    "beyond-request (kill)": "ran longer than requested and are ended at their request",
    "late-submission (sorted)": "stood in the log after later submissions and are sorted",
}
"""Treatment of jobs, in words that follow a number."""


def facts_of(tested: Backtest, log: ReadLog, command: str) -> dict[str, str]:
    """Return the facts by name, the log first."""
    first = tested.today[0]
    facts = {
        "Log": log.name,
        "Dates": period(tested),
        "Jobs": f"{first.jobs:,} simulated, {len(tested.site.trace):,} read from the log",
        "Users": f"{users_of(tested):,}",
        "Utilisation": f"{share(first.utilisation)}, {big(first.work / 3600)} processor-hours",
        "Repetitions": _repetitions(tested),
        **_rules(tested),
        "Estimates": "whole seconds, at least 1; running jobs that outlive theirs get a longer one",
        "Machine": _machine(tested),
    }
    if tested.site.cores_per_node:
        facts["Nodes"] = f"{tested.site.cores_per_node} cores, whole nodes to a job"
    if log.left_out:
        facts["Records left out"] = in_words(log.left_out)
    if log.malformed:
        facts["Malformed lines"] = f"{log.malformed:,} skipped"
    today = datetime.fromtimestamp(time.time(), UTC)
    return {
        **facts,
        "Computed": f"{today:%-d %b %Y}, walltimed {version('walltimed')}",
        "Command": command,
        "Jobs left out or changed": _treated(tested.counts),
    }


def _rules(tested: Backtest) -> dict[str, str]:
    """Return the rules of today, and those of the other columns where they differ."""
    site = tested.site
    today = site.semantics.card(site.trace)
    with_predictions = site.rules_of(tested.in_force).card(site.trace)
    return {
        "In force": f"{tested.in_force}, profile {tested.profile}",
        **today,
        "Ordered by request": site.rules_of(BY_REQUEST).card()["Order"],
        "With predictions": "; ".join(
            f"{name}: {text}" for name, text in with_predictions.items() if text != today.get(name)
        ),
    }


def _machine(tested: Backtest) -> str:
    site = tested.site
    if site.partitions:
        return "; ".join(f"{each.name}: {each.processors:,} processors" for each in site.partitions)
    workload = site.workloads()[0]
    return f"{workload.processors_of_machine * (workload.cores_per_node or 1):,} processors"


def _repetitions(tested: Backtest) -> str:
    text = (
        f"{tested.plays_in_words}: the log as it is, and with every submission moved by up to "
        f"{SHAKE_SECONDS} s"
    )
    if len(tested.site.trace) > FULL_LOOP_JOBS and tested.repetitions > 1:
        text += "; the moved ones take over the predictions of the log as it is"
    return text


def _treated(counts: Mapping[str, int]) -> str:
    return "; ".join(f"{number:,} {RULES.get(rule, rule)}" for rule, number in counts.items()) or (
        "none"
    )
