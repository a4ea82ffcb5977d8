"""A start on a part of the log ends where a start on all of it would."""

import random
from functools import cache
from math import inf

import pytest
from runs import a_run, reported

from predictors.base import Memory
from predictors.jobs import Submission
from predictors.registry import PREDICTORS
from service.metrics import Metrics
from service.settings import Settings
from service.store import open_store
from service.worker.live_state import LiveState

pytestmark = pytest.mark.lengthy(30)

NOW = 1e10
DAY = 86400.0
MEMORIES = [
    Memory(jobs_per_user=3),
    Memory(latest_jobs=40),
    Memory(window_seconds=2000.0),
    Memory(jobs_per_user=2, latest_jobs=25, window_seconds=1000.0),
    Memory(jobs_per_user=5, latest_jobs=100_000),
]


def a_history(seed: int, *, jobs: int = 300, ties: bool = False):
    """Runs of some busy and some rare users on two clusters, reported out of order."""
    chance = random.Random(seed)
    runs = []
    for job in range(jobs):
        start = float(chance.randrange(10_000))
        runtime = float(chance.randrange(10) * 100 if ties else chance.random() * 5000)
        user = f"u{int(chance.paretovariate(0.7)) % 25}" if chance.random() < 0.95 else None
        cluster = "north" if chance.random() < 0.8 else "south"
        runs.append(a_run(str(job), start=start, runtime=runtime, user=user, cluster=cluster))
    return runs


def part_of(store, memory: Memory, now: float = NOW):
    reader, [runs] = store.past_runs.warm_start([memory], now)
    reader.close()
    return list(runs)


def last(runs, count: int):
    return runs[len(runs) - count :] if count < len(runs) else runs


def remembered(log, memory: Memory, now: float = NOW) -> set[str]:
    """Ids of the jobs that ``memory`` asks for, straight from its definition."""
    found = []
    for cluster in {run.submission.cluster for run in log}:
        # Sorting is stable: of runs that ended together, the latest observed comes last.
        ends = sorted((r for r in log if r.submission.cluster == cluster), key=lambda r: r.end_time)
        newest = min(now, ends[-1].end_time)
        found += last(ends, memory.latest_jobs)
        found += [run for run in ends if run.end_time >= newest - memory.window_seconds]
        for user in {run.submission.user for run in ends} - {None}:
            found += last([r for r in ends if r.submission.user == user], memory.jobs_per_user)
    return {run.submission.job_id for run in found}


@pytest.fixture(params=range(3))
def log(request, store):
    runs = a_history(request.param)
    for start in range(0, len(runs), 70):
        store.write([reported(*runs[start : start + 70])])
    return runs


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_warm_start_reads_what_the_memory_asks_for_in_log_order(store, log, memory):
    part = part_of(store, memory)
    read = [run.submission.job_id for run in part]
    assert len(set(read)) == len(read)
    assert remembered(log, memory) <= set(read)
    for cluster in store.past_runs.clusters():
        own = [run for run in part if run.submission.cluster == cluster]
        assert own == [run for run in log if run in own]


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_warm_start_reads_little_else(store, log, memory):
    # One run of each user more than asked for comes along at most; no two end at once here.
    users = {(run.submission.cluster, run.submission.user) for run in log}
    assert len(part_of(store, memory)) <= len(remembered(log, memory)) + len(users)


def test_runs_that_ended_at_the_same_time_are_never_cut_apart(store):
    log = a_history(7, ties=True)
    store.write([reported(*log)])
    for memory in MEMORIES:
        read = {run.submission.job_id for run in part_of(store, memory)}
        assert remembered(log, memory) <= read


def test_an_endless_window_reads_the_whole_log(store, log):
    part = part_of(store, Memory(window_seconds=inf))
    north = [run for run in log if run.submission.cluster == "north"]
    south = [run for run in log if run.submission.cluster == "south"]
    assert part == north + south


def test_end_times_in_the_future_do_not_move_the_window(store):
    clock_jump = a_run("jump", start=1e9)
    store.write([reported(a_run("old", start=0.0), a_run("new", start=9_000.0), clock_jump)])
    part = part_of(store, Memory(window_seconds=5_000.0), now=10_000.0)
    assert [run.submission.job_id for run in part] == ["new", "jump"]


def test_an_empty_history_has_nothing_to_read(store):
    assert part_of(store, Memory(jobs_per_user=5, latest_jobs=5, window_seconds=5.0)) == []
    assert part_of(store, Memory(window_seconds=inf)) == []


def test_of_the_clusters_that_are_wanted_those_without_history_have_nothing_to_read(store):
    store.write([reported(*(a_run("1", cluster=name) for name in ("north", "south")))])
    memories = [Memory(latest_jobs=2), Memory(window_seconds=9.0), Memory(window_seconds=inf)]
    for memory in memories:
        reader, [runs] = store.past_runs.warm_start([memory], NOW, ["east", "north"])
        reader.close()
        assert [run.submission.cluster for run in runs] == ["north"]


@cache
def a_long_log():
    """Two months of a busy cluster and of a small one, in the order of their ends."""
    chance = random.Random(1)
    runs = [
        a_run(
            str(job),
            start=60 * DAY * chance.random(),
            runtime=5000 * chance.random(),
            user=f"u{int(chance.paretovariate(0.7)) % 60}",
            cluster="north" if chance.random() < 0.9 else "south",
        )
        for job in range(26_000)
    ]
    return sorted(runs, key=lambda run: run.end_time)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def long_store(request, tmp_path_factory):
    """A store on either database that holds the long log; nobody changes it."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('long') / 'walltimed.sqlite3'}"
    else:
        url = request.getfixturevalue("postgres").create_database()
    opened = open_store(url)
    opened.upgrade()
    for _ in opened.store_reports(reported(*a_long_log())):
        pass
    yield opened
    opened.close()


def a_state(method: str) -> LiveState:
    """One that has learned nothing yet."""
    histories = {name: {"history": 1000} for name in ("least-cost", "attention", "forest")}
    return LiveState(Settings(method=method, predictors=histories), Metrics())


@pytest.fixture(scope="module")
def all_learned():
    """What the whole of the long log teaches a service with a method, learned once."""

    @cache
    def learned(method: str) -> LiveState:
        state = a_state(method)
        state.apply(a_long_log())
        return state

    return learned


@pytest.mark.parametrize("method", ["max-usage", "knn", "least-cost", "percentile"])
def test_a_service_knows_after_a_warm_start_what_it_knew(long_store, all_learned, method):
    log, whole, warm = a_long_log(), all_learned(method), a_state(method)
    reader, parts = long_store.past_runs.warm_start(warm.memories, NOW)
    reader.close()
    recent, windows = map(list, parts)
    warm.remember(recent, windows)
    assert len(recent) < len(log)
    assert len(windows) < len(log)
    assert warm.clusters == whole.clusters == ["north", "south"]
    for cluster in whole.clusters:
        before, after = whole.of(cluster), warm.of(cluster)
        if method != "percentile":  # its own old answers rested on a window that is older still
            assert after.error_ratios.ascending() == before.error_ratios.ascending()
        for user in {run.submission.user for run in log}:
            assert after.accuracy_groups.of(user) == before.accuracy_groups.of(user)
            job = Submission(user=user, requested_walltime=3600.0, submit_time=61 * DAY)
            for name in PREDICTORS:
                assert after.predictors[name].predict(job) == before.predictors[name].predict(job)


@pytest.mark.parametrize(
    ("memory", "read"),
    [
        (Memory(latest_jobs=2), "3 4"),
        (Memory(latest_jobs=1), "4"),
        (Memory(window_seconds=100.0), "3 4"),
        (Memory(window_seconds=99.9), "4"),
        (Memory(window_seconds=199.0, latest_jobs=1), "3 4"),
        (Memory(latest_jobs=9), "0 1 2 3 4"),
    ],
)
def test_of_jobs_of_nobody_just_the_last_are_read(store, memory, read):
    store.write([reported(*(a_run(str(n), start=100.0 * n, user=None) for n in range(5)))])
    assert [run.submission.job_id for run in part_of(store, memory)] == read.split()


@pytest.mark.parametrize(
    ("latest", "window", "read"),
    [
        (2, inf, ["3 4", "0 1 2"]),
        (2, 250.0, ["3 4", "2"]),
        (2, 100.0, ["3 4", ""]),
        (5, inf, ["0 1 2 3 4", ""]),
        (9, inf, ["0 1 2 3 4", ""]),
        (0, 100.0, ["4", "3 4"]),
    ],
)
def test_the_latest_runs_of_an_earlier_part_are_not_read_again(store, latest, window, read):
    """Run 4 ends last; of its user the first memory has the last run, of the second none."""
    store.write([reported(*(a_run(str(n), start=100.0 * n) for n in range(5)))])
    memories = [Memory(latest_jobs=latest, jobs_per_user=1), Memory(window_seconds=window)]
    reader, parts = store.past_runs.warm_start(memories, NOW)
    reader.close()
    assert [[run.submission.job_id for run in part] for part in parts] == [
        each.split() for each in read
    ]


@pytest.mark.parametrize(("jobs", "read"), [(1, "4"), (2, "3 4"), (9, "0 1 2 3 4")])
def test_of_a_user_just_the_last_runs_are_read(store, jobs, read):
    store.write([reported(*(a_run(str(n), start=100.0 * n) for n in range(5)))])
    part = part_of(store, Memory(jobs_per_user=jobs))
    assert [run.submission.job_id for run in part] == read.split()


def test_clusters_come_by_their_latest_end_and_then_by_name(store):
    ends = {"west": 100.0, "north": 900.0, "east": 100.0}
    store.write([reported(*(a_run("1", start=at, cluster=name) for name, at in ends.items()))])
    store.write([reported(a_run("2", start=50.0, cluster="north"))])
    assert store.past_runs.active_clusters() == ["north", "east", "west"]
    assert [(each.cluster, each.runs, each.last_end) for each in store.past_runs.sizes()] == [
        ("east", 1, 700.0),
        ("north", 2, 1500.0),
        ("west", 1, 700.0),
    ]


def test_a_warm_start_is_planned_through_indexes(postgres_url, opening):
    """After an import statistics are missing or misleading."""
    store = opening(postgres_url)
    with store._database.reading() as connection:
        store._database.prefer_indexes(connection)
        for plan in ("seqscan", "bitmapscan", "hashjoin", "mergejoin"):
            assert connection.exec_driver_sql(f"SHOW enable_{plan}").scalar() == "off"
