"""Queues as the simulator takes them, on dedicated and on shared nodes."""

import asyncio
from itertools import count

import numpy as np
import pytest
from compiled_engine import compiled_versions
from shared_nodes import nodes

from predictors.jobs import Submission
from predictors.memory.error_ratios import ENOUGH_RATIOS
from service.live_queue import playing
from service.live_queue.playing import (
    AWAITED,
    FIRST_DEPTH,
    NOBODY,
    FreeProcessors,
    PlayingLimits,
    nearer_starts,
    play_pools,
    queue_columns,
    with_job,
)
from service.live_queue.shared_nodes import SharedQueue, play_shared
from service.live_queue.snapshot import (
    JobState,
    LiveJob,
    Pool,
    QueueSnapshot,
    RuntimeEstimate,
    SchedulerRules,
    SharedUse,
)
from service.worker.processes import ForecastProcess, nothing
from simulator.scheduling.forecast import nominal_coverage
from simulator.scheduling.simulate import warm_up
from simulator.shared_nodes.policies import SHARED_POLICIES

STEPS = [float(step) for step in range(10, 210, 10)]
USUAL = RuntimeEstimate(runtime=100.0, priority=1.0)


def job(job_id, user="ada", *, started=None, processors=None, **fields):
    submission = Submission(
        requested_walltime=3600.0,
        submit_time=0.0,
        user=user,
        job_id=job_id,
        requested_processors=processors,
    )
    state = JobState.WAITING if started is None else JobState.RUNNING
    return LiveJob(submission=submission, state=state, start_time=started, **fields)


def snapshot(*jobs, now=0.0):
    return QueueSnapshot(
        cluster="hill",
        taken_at=now,
        rules=SchedulerRules(),
        pools=(Pool(processors=4),),
        jobs=jobs,
    )


def shared(queue, estimates, count=1):
    policy = SHARED_POLICIES["uniform-backfilling"]
    return SharedQueue(snapshot=queue, estimates=estimates, nodes=nodes(count), policy=policy)


@pytest.mark.parametrize(
    ("user", "owner"), [("bob", 0), ("ada", 1), ("eve", NOBODY), (None, NOBODY)]
)
def test_a_job_of_a_what_if_varies_with_those_of_its_own_user_alone(user, owner):
    queue = snapshot(job("1", "bob"), job("2", "ada"), job("3", None))
    columns = queue_columns(queue, [USUAL] * 3)
    pool = with_job(queue, columns, job("added", user), USUAL)
    assert pool.queue.waiting.owner.tolist()[3:] == [owner]


def test_jobs_on_shared_nodes_take_what_their_own_distribution_says():
    estimate = RuntimeEstimate(runtime=100.0, priority=1.0, quantiles=STEPS)
    played = play_shared(shared(snapshot(job("a")), [estimate]), [], 50)
    assert played.ends.expected.tolist() == [100.0]
    assert (played.ends.lower, played.ends.upper) == (STEPS[0], STEPS[-1])


def test_a_running_job_on_a_shared_node_takes_what_is_left():
    use = SharedUse(execution_time=None, cpu_share=0.5, used_cpu_time=40.0)
    running = job("a", started=0.0, nodes=(0,), shared_use=use)
    left = [seconds for seconds in STEPS if seconds > 80]
    shares = [left[step * len(left) // 20] for step in range(20)]
    queue = snapshot(running, now=80.0)
    assert queue.time_behind(running) == 80.0
    estimate = RuntimeEstimate(runtime=100.0, priority=1.0, quantiles=shares)
    played = play_shared(shared(queue, [estimate]), [0.1], 50)
    assert played.running_ends.lower == pytest.approx([left[0] - 80.0])
    assert played.running_ends.upper == pytest.approx([left[-1] - 80.0])


def test_a_job_without_quantiles_varies_by_the_ratios_and_a_known_one_not_at_all():
    use = SharedUse(execution_time=100.0)
    queue = snapshot(job("a"), job("b", shared_use=use))
    estimates = [USUAL, RuntimeEstimate(runtime=100.0, priority=1.0, quantiles=STEPS)]
    played = play_shared(shared(queue, estimates, 2), [0.5] * ENOUGH_RATIOS, 5)
    assert played.ends.lower.tolist() == [50.0, 100.0]
    assert played.ends.upper.tolist() == [100.0, 100.0]


@pytest.mark.cold
@pytest.mark.usefixtures("real_process")
@pytest.mark.parametrize(("prepare", "compiled"), [(nothing, False), (warm_up, True)])
def test_only_a_process_for_dedicated_machines_waits_for_the_engines_compiler(prepare, compiled):
    process = ForecastProcess(600.0, prepare=prepare)

    async def run():
        queue = shared(snapshot(job("a")), [RuntimeEstimate(runtime=60.0, priority=1.0)])
        played = await process.run(play_shared, queue, [], 0)
        return played.ends.expected.tolist(), await process.run(compiled_versions)

    try:
        ends, versions = asyncio.run(run())
    finally:
        process.close()
    assert ends == [60.0]
    assert (versions > 0) is compiled


def long_queue(count):
    return queue_columns(snapshot(*(job(str(number)) for number in range(count))), [USUAL] * count)


def test_jobs_end_by_the_median_and_are_planned_by_their_requests():
    skewed = [200.0] * 11 + [3000.0] * 9
    known = RuntimeEstimate(2900.0, 1.0, skewed, likely=200.0)
    queue = snapshot(
        job("runs", "ada", started=0.0, processors=4),
        job("first", "bob", processors=4),
        job("last", "eve", processors=4),
        now=100.0,
    )
    pools = queue_columns(queue, [known] * 3).pools
    (played,) = play_pools(pools, SchedulerRules(), [], 19)
    assert played.running_ends.expected.tolist() == [100]
    assert played.starts.expected.tolist() == [100, 300]
    assert played.ends.expected.tolist() == [300, 500]
    assert played.starts.upper[-1] > 500, "the expected start is not the end of its range"
    assert pools[0].queue.waiting.estimate.tolist() == [2900, 2900]


def test_a_live_queue_tells_starts_where_most_futures_have_them_within_the_hour():
    """Of two running jobs one ends after 100 s in most futures, both after 2,000 s."""
    often_long = RuntimeEstimate(1900.0, 1.0, [100.0] * 9 + [2000.0] * 11, likely=2000.0)
    known = RuntimeEstimate(50.0, 1.0, [50.0] * 20, likely=50.0)
    queue = snapshot(
        job("one", "ada", started=0.0, processors=2),
        job("two", "bob", started=0.0, processors=2),
        job("small", "eve", processors=2),
        job("large", "eve", processors=4),
        now=10.0,
    )
    pools = queue_columns(queue, [often_long, often_long, known, known]).pools
    live, posted = (
        play_pools(pools, SchedulerRules(), [], 19, limits)[0]
        for limits in (PlayingLimits(None, 1e6), None)
    )
    assert posted.starts.expected.tolist() == [1990, 2040]
    assert live.starts.expected.tolist() == [90, 2040]
    assert live.ends.expected.tolist() == [140, 2090]


@pytest.mark.parametrize(
    ("futures", "told"),
    [
        ([9000, 4000, 4000], 9000),  # beyond the hour
        ([3000, 500, 600, 900], 700),
        ([1300, 500, 600, 900], 1300),  # near enough
        ([3000, 0, 0, 2900, 3100], 3000),
        ([3000, 1200, 0, 2900], 600),  # of two that hold as many the earlier one
        ([3000], 3000),
    ],
)
def test_a_start_within_the_hour_is_near_most_futures(futures, told):
    other = [0] * len(futures)
    starts = [np.array(each) for each in zip(futures, other, strict=True)]
    assert nearer_starts(starts).tolist() == [told, 0]


def test_ranges_over_too_few_futures_are_left_out(monkeypatch):
    monkeypatch.setattr(playing, "perf_counter", count(0.0, 1.0).__next__)
    pools, ratios = queue_columns(snapshot(job("1")), [USUAL]).pools, [1.0] * ENOUGH_RATIOS
    assert play_pools(pools, SchedulerRules(), ratios, 5)[0].coverage == nominal_coverage(5)
    (short,) = play_pools(pools, SchedulerRules(), ratios, 19, PlayingLimits(None, 10.0))
    assert (short.samples, short.coverage, short.no_interval) == (0, None, "no-time")
    assert short.starts.lower is None
    (long,) = play_pools(pools, SchedulerRules(), ratios, 19, PlayingLimits(None, 50.0))
    assert long.samples >= 9
    assert long.coverage >= 0.8


def test_without_time_the_first_jobs_are_played_and_no_other_futures():
    ratios = [1.0] * ENOUGH_RATIOS
    (played,) = play_pools(
        long_queue(FIRST_DEPTH + 1).pools, SchedulerRules(), ratios, 19, PlayingLimits(0.0, 0.0)
    )
    assert len(played.starts.expected) == FIRST_DEPTH
    assert (played.samples, played.coverage, played.no_interval) == (0, None, "no-time")


def test_all_jobs_of_a_what_if_are_played_and_other_futures_while_there_is_time():
    pools, ratios = long_queue(FIRST_DEPTH + 1).pools, [1.0] * ENOUGH_RATIOS
    (played,) = play_pools(pools, SchedulerRules(), ratios, 19, AWAITED._replace(total=0.0))
    assert len(played.starts.expected) == FIRST_DEPTH + 1
    assert (played.samples, played.no_interval) == (0, "no-time")


def test_with_time_all_jobs_are_played_as_without_a_limit():
    pools, ratios = long_queue(FIRST_DEPTH + 1).pools, [1.0] * ENOUGH_RATIOS
    found = [
        play_pools(pools, SchedulerRules(), ratios, 2, limits)[0]
        for limits in (None, PlayingLimits(600.0, 600.0))
    ]
    assert [each.samples for each in found] == [2, 2]
    assert found[0].starts.expected.tolist() == found[1].starts.expected.tolist()


@pytest.mark.parametrize(
    ("processors", "duration", "start"),
    [(1, 5, 0), (2, 10, 0), (2, 11, 20), (3, 5, 20), (4, 5, 30)],
)
def test_a_job_takes_the_first_gap_between_the_others(processors, duration, start):
    spans = [(-5.0, 20.0, 2), (10.0, 20.0, 1), (20.0, 30.0, 1)]
    free = FreeProcessors.beside(spans, 4)
    assert free.first_gap(processors, duration) == start
