"""Deviations of estimated from true turnarounds, workload by workload."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import NamedTuple

from papers.hanzich.nas import Arrival, idle_cluster, workload
from predictors.base import Predictor
from predictors.jobs import Completion, Submission
from predictors.methods.knn import Knn
from simulator.shared_nodes.cluster import SharedJob
from simulator.shared_nodes.pace import ESTIMATORS, ProcessorSharing
from simulator.shared_nodes.policies import PARALLEL_MPL, SHARED_POLICIES, SharedPolicy
from simulator.shared_nodes.simulation import SharedSimulation, Span, forecast

SCORED = (*(name for name in ESTIMATORS if not name.startswith("hybrid")), "hybrid-cpu")
"""The combinations of the paper; how CPU time is advanced means nothing to the hybrid."""

SEEDS = 100
"""Default number of workloads in each setting."""

WORKLOADS_OF_HISTORY = 5
"""Played beforehand, from which the hybrid's predictor learns."""

FIRST_SEED_OF_HISTORY = 10**9
"""Apart from the seeds of the workloads that are scored."""


SpansByJob = defaultdict[str, list[Span]]
"""Forecast spans by job id: at the job's arrival and at each later one."""


Errors = Mapping[str, float]
"""Fields of ``Deviation`` that are measured."""


class Conditions(NamedTuple):
    """Setting of some workloads: a part of the study.

    Attributes:
        policy: a name in ``SHARED_POLICIES``.
        local_share: fraction of the nodes that have a local user.
        seeds: number of workloads.
        scale: how many times longer the benchmarks run than supposed.
        jobs: of a workload; None takes the paper's number.
    """

    policy: str
    local_share: float
    seeds: int
    scale: float = 1.0
    jobs: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """Deviation of estimated from true turnarounds in %, averaged over a workload's jobs.

    Attributes:
        policy: as in ``Conditions``.
        local_share: as in ``Conditions``.
        estimator: a name in ``SCORED``.
        seed: of the workload.
        at_arrival: absolute, of the estimate that a job gets when it arrives.
        signed: of the same estimate, positive where it is pessimistic.
        adjusted: absolute, of the estimate at the last arrival before the job ended.
        execution: absolute, of the time between start and end that a job gets when it arrives,
            in % of the true one.
    """

    policy: str
    local_share: float
    estimator: str
    seed: int
    at_arrival: float
    signed: float
    adjusted: float
    execution: float


def score(setting: Conditions) -> list[Deviation]:
    """Return the deviations of every combination in ``SCORED``, for each seed."""
    history = learned(setting)
    return [
        Deviation(
            policy=setting.policy,
            local_share=setting.local_share,
            estimator=name,
            seed=seed,
            **errors,
        )
        for seed in range(setting.seeds)
        for name, errors in _score_workload(setting, seed, history).items()
    ]


def learned(setting: Conditions) -> Predictor:
    """Predictor of the hybrid: runtimes of the same application on shared nodes."""
    predictor = Knn(template=("application",), neighbours=10)
    for seed in range(FIRST_SEED_OF_HISTORY, FIRST_SEED_OF_HISTORY + WORKLOADS_OF_HISTORY):
        arrivals = workload(seed, scale=setting.scale)[: setting.jobs]
        truth = _truth(setting, seed, arrivals)
        for arrival in arrivals:
            truth.run(arrival.time)
            truth.submit(arrival.job)
        truth.run()
        for arrival in arrivals:
            span = truth.spans[arrival.job.job_id]
            predictor.observe(
                Completion(
                    submission=_submission(arrival, time=0.0),
                    start_time=0.0,
                    end_time=0.0,
                    runtime=span.end - span.start,
                )
            )
    return predictor


def _score_workload(setting: Conditions, seed: int, history: Predictor) -> Mapping[str, Errors]:
    """Play the truth; at each arrival let every combination estimate when all jobs will end."""
    arrivals = workload(seed, scale=setting.scale)[: setting.jobs]
    policy = SHARED_POLICIES[setting.policy]
    truth = _truth(setting, seed, arrivals)
    estimates: dict[str, SpansByJob] = {name: defaultdict(list) for name in SCORED}
    for arrival in arrivals:
        truth.run(arrival.time)
        truth.submit(_with_prediction(arrival, history))
        for name in SCORED:
            for job_id, span in _estimated(truth, policy, name).items():
                estimates[name][job_id].append(span)
    truth.run()
    return {name: _deviation(arrivals, truth, spans) for name, spans in estimates.items()}


def _truth(setting: Conditions, seed: int, arrivals: Sequence[Arrival]) -> SharedSimulation:
    needed = {arrival.job.job_id: arrival.needed_cpu_time for arrival in arrivals}
    cluster = idle_cluster(setting.local_share, seed)
    return SharedSimulation(cluster, [], SHARED_POLICIES[setting.policy], ProcessorSharing(needed))


def _estimated(truth: SharedSimulation, policy: SharedPolicy, name: str) -> dict[str, Span]:
    spans = forecast(truth.cluster, truth.queue, policy, ESTIMATORS[name])
    return {
        job_id: replace(span, start=truth.now + span.start, end=truth.now + span.end)
        for job_id, span in spans.items()
    }


def _with_prediction(arrival: Arrival, history: Predictor) -> SharedJob:
    prediction = history.predict(_submission(arrival, time=arrival.time))
    return replace(
        arrival.job,
        predicted_runtime=prediction.predicted_walltime,
        requested_walltime=prediction.requested_walltime,
    )


def _submission(arrival: Arrival, *, time: float) -> Submission:
    """Submission of a job for the predictor; its request is the largest estimate by Eq 4."""
    return Submission(
        requested_walltime=arrival.job.execution_time * (PARALLEL_MPL + 1),
        submit_time=time,
        application=arrival.benchmark,
        requested_processors=arrival.job.tasks,
    )


def _deviation(
    arrivals: Sequence[Arrival], truth: SharedSimulation, estimates: Mapping[str, Sequence[Span]]
) -> Errors:
    first, last, executions = [], [], []
    for arrival in arrivals:
        true = truth.spans[arrival.job.job_id]
        spans = estimates[arrival.job.job_id]
        turnaround, execution = true.end - arrival.time, true.end - true.start
        first.append(100 * (spans[0].end - true.end) / turnaround)
        last.append(100 * (spans[-1].end - true.end) / turnaround)
        executions.append(100 * (spans[0].end - spans[0].start - execution) / execution)
    return {
        "at_arrival": fmean(map(abs, first)),
        "signed": fmean(first),
        "adjusted": fmean(map(abs, last)),
        "execution": fmean(map(abs, executions)),
    }
