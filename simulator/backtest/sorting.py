"""The share of job pairs that requests and predictions put in the right order."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from predictors.measures import Seconds, ordered_share
from simulator.backtest.site import BacktestSite
from simulator.replay.method_spec import MethodSpec
from simulator.replay.trace_replay import InProcess, play_jobs
from simulator.traces.completions import completions
from terminal.words import listed

COMPARED, HISTORY = 10_000, 20_000
"""Number of a log's last jobs that are compared, and of the jobs before them that are learned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sorting:
    """Shares of pairs of jobs in the right order, weighted by the differences of runtimes.

    Attributes:
        method: of the predictions.
        jobs: number of jobs that were compared.
        requests: share by requests.
        planned: share by predicted walltimes, which are those of least expected cost.
        mean: share by mean runtimes; that by predictions where the method gives no mean.
    """

    method: str
    jobs: int
    requests: float
    planned: float
    mean: float

    @property
    def shares(self) -> dict[str, float]:
        """The shares, by the number that orders the jobs."""
        return {
            "requests": self.requests,
            f"mean runtimes by {self.method}": self.mean,
            f"planned runtimes by {self.method}": self.planned,
        }

    @property
    def sentence(self) -> str:
        """The shares, and whether an order by predictions can beat one by requests."""
        known = listed([f"{name} for {share:.1%}" for name, share in self.shares.items()])
        return (
            f"Which of two jobs is the shorter one? It is told by {known} of the pairs (50% is "
            f"chance; {self.compared}). {self.outlook}"
        )

    @property
    def compared(self) -> str:
        """The pairs, in words."""
        return (
            f"pairs of the last {self.jobs:,} jobs whose runtimes differ by a factor of 2, "
            "weighted by the difference; nothing is simulated"
        )

    @property
    def outlook(self) -> str:
        """A sentence on whether an order by predictions can beat one by requests."""
        beyond = "can" if self.mean > self.requests else "cannot"
        return f"So an order by predictions {beyond} beat one by requests."


def sorting_of(
    site: BacktestSite, spec: MethodSpec, *, progress: Callable[[int], object] = lambda _: None
) -> Sorting | None:
    """Compare requests and predictions of a log's last jobs; None without a pair to compare.

    Args:
        site: the log and its machines.
        spec: the method that predicts.
        progress: called with 1 at each submission, ``COMPARED + HISTORY`` times at most.
    """
    method = spec.label
    workloads = [workload for workload in site.workloads() if len(workload)]
    trace = site.trace.select(np.sort(site.places(workloads)))
    known = trace.select(np.arange(len(trace)) >= len(trace) - COMPARED - HISTORY)
    runs = list(completions(known))
    first = max(0, len(runs) - COMPARED)
    player = InProcess({method: spec.predictor()})
    found = np.full((2, len(runs)), np.nan)

    def ask(job: int) -> None:
        progress(1)
        if job >= first:
            (answer,) = player.ask(method, [runs[job].submission])
            planned = answer.predicted_walltime
            found[:, job] = planned, planned if answer.mean is None else answer.mean

    play_jobs(
        runs,
        ended=lambda job: player.observe([runs[job]]),
        submitted=ask,
        started=lambda job: player.note([runs[job]]),
    )
    compared = runs[first:]
    requests: Seconds = np.array([run.submission.requested_walltime for run in compared], float)
    runtimes = np.minimum([run.runtime for run in compared], requests)
    by_request = ordered_share(requests, runtimes)
    if np.isnan(by_request):
        return None
    planned, mean = (ordered_share(each[first:], runtimes) for each in found)
    return Sorting(
        method=method, jobs=len(compared), requests=by_request, planned=planned, mean=mean
    )
