"""Measures longer requests that are suggested, on logs whose limits are lowered.

    .venv/bin/python research/longer_limits.py LOG... --limit 12000

Half of the users request less than they did: the request times a quantile of their usages, and for
half of the jobs once more times 1.5 or 2. A run that would be longer is cut there, so that the
runtime which it needed is known. Prints a row for each log, over jobs with a suggestion.
"""

import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray
from played_logs import LogPart, Traces, log_parts, play_logs, run_script

from predictors.jobs import Completion, Status
from predictors.limits import LimitHits
from predictors.memory.columns import Floats
from simulator.cli.options import Distributed, Processes
from simulator.replay.trace_replay import play_jobs
from simulator.reports.tables import text_table
from terminal.console import out
from terminal.options import Limit

SEED = 1
LOWERED_SHARE = 0.5
"""Share of the users whose requests are lowered."""

SHORTEST_REQUEST = 60.0


class Played(NamedTuple):
    """Jobs of a log whose users are suggested a longer request.

    Attributes:
        suggested: seconds.
        needed: runtimes without the lowered limit, in seconds.
        cut: which of them were cut.
        known: number of all cut runs whose runtime is known.
    """

    suggested: Floats
    needed: Floats
    cut: NDArray[np.bool_]
    known: int


def lowered(runs: Sequence[Completion], seed: int = SEED) -> list[Completion]:
    """Return the runs under requests that are lowered by chance."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    usages: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        usages[str(run.submission.user)].append(run.usage)
    shares = {
        user: float(np.quantile(usages[user], chance.uniform(0.5, 0.95)))
        for user in sorted(usages)
        if chance.random() < LOWERED_SHARE
    }
    return [_lowered(run, shares, chance.choice((1.0, 1.0, 1.5, 2.0))) for run in runs]


def _lowered(run: Completion, shares: dict[str, float], factor: float) -> Completion:
    submission = run.submission
    request = submission.requested_walltime
    lower = max(SHORTEST_REQUEST, request * factor * shares.get(str(submission.user), 1.0))
    lower = min(request, lower)
    runtime = min(run.runtime, lower)
    return replace(
        run,
        submission=replace(submission, requested_walltime=lower),
        runtime=runtime,
        end_time=run.start_time + runtime,
        status=Status.TIMEOUT if run.runtime > lower else run.status,
    )


def play(part: LogPart) -> Played:
    """Play a log under lowered requests, and note the suggestions as of each submission."""
    runs = part.runs()
    log, model = lowered(runs), LimitHits()
    suggested = np.full(len(log), np.nan)

    def submitted(job: int) -> None:
        longer = model.of(log[job].submission).longer_walltime
        suggested[job] = np.nan if longer is None else longer

    play_jobs(log, ended=lambda job: model.observe(log[job]), submitted=submitted)
    known = np.array([not run.met_limit for run in runs])
    cut = np.array([run.status == Status.TIMEOUT for run in log])
    told = known & ~np.isnan(suggested)
    needed = np.array([run.runtime for run in runs])
    return Played(suggested[told], needed[told], cut[told], int((known & cut).sum()))


def row(part: LogPart, played: Played) -> tuple[str, ...]:
    """Return the cells of a log."""
    is_enough = played.suggested >= played.needed
    ratios = played.suggested[played.cut] / played.needed[played.cut]
    return (
        Path(part.trace).name.split(".")[0],
        f"{played.known:,}",
        f"{len(is_enough):,}",
        f"{is_enough.mean():.0%}",
        f"{played.cut.sum():,}",
        f"{is_enough[played.cut].mean():.0%}",
        f"{np.median(ratios):.2f}",
    )


HEADS = ("log", "cut runs", "suggestions", "enough", "to cut runs", "enough", "to needed")


def main(
    traces: Traces,
    limit: Limit = None,
    processes: Processes = None,
    distributed: Distributed = None,
) -> None:
    """Print how often a longer request would have been enough, and its ratio to what was needed.

    Example: python research/longer_limits.py SDSC-SP2-1998-4.2-cln.swf.gz --limit 12000
    """
    parts = log_parts(traces, limit)
    played = list(play_logs(play, parts, processes=processes, distributed=distributed))
    rows = [row(part, each) for part, each in played]
    out.print(text_table(HEADS, rows), soft_wrap=True, markup=False)


if __name__ == "__main__":
    run_script(main)
