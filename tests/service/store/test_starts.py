"""Starts of jobs as facts: kept in their order, once each, and erased with their user."""

from math import inf

import pytest
from runs import a_run, reported

from predictors.memory.running_jobs import Start
from service.store import Erasure


def start_of(job, *, start=1_000.0, known_from=None, **known):
    run = a_run(job, start=start, **known)
    return Start(run.submission, run.start_time, known_from or start + 5.0)


def jobs(found):
    return [each.submission.job_id for each in found]


def test_starts_are_read_in_their_order_and_count_once(store):
    first, second = start_of("1", application="a.out"), start_of("2", start=900.0)
    store.starts.add([first, second])
    store.starts.add([start_of("1", known_from=9_999.0), start_of("3")])
    assert jobs(store.starts.since(0)) == ["1", "2", "3"]
    found = store.starts.newest("default")
    assert found[:2] == [first, second]
    assert store.starts.last() >= 3


def test_starts_are_stored_with_the_queue_that_showed_them(store):
    put = {"received_at": 1.0, "started": [start_of("1")]}
    assert store.queues.replace("default", 1, b"queue", **put)
    assert not store.queues.replace(
        "default", 1, b"another", received_at=1.0, started=[start_of("2")]
    )
    assert jobs(store.starts.newest("default")) == ["1"]


def test_the_starts_of_a_cluster_are_read_with_the_ends_that_are_known(store):
    run = a_run("1", start=1_000.0, runtime=600.0)
    store.write([reported(run, a_run("2", start=500.0, runtime=100.0))])
    store.starts.add([start_of("1"), start_of("2", start=2_000.0), start_of("1", cluster="north")])
    assert [each.end_time for each in store.starts.newest("default")] == [1_600.0, inf]
    assert [each.end_time for each in store.starts.since(0)] == [1_600.0, inf, inf]
    assert sorted(store.starts.clusters()) == ["default", "north"]


@pytest.mark.parametrize(
    ("erasure", "left"),
    [
        (Erasure(users=frozenset({"bob"})), ["1", "3"]),
        (Erasure(job="3", cluster="north"), ["1", "2"]),
        (Erasure(cluster="north"), ["1", "2"]),
        (Erasure(before=1_500.0), ["2", "3"]),
        (Erasure(after=1_500.0), ["1"]),
    ],
)
def test_starts_are_erased_with_what_they_belong_to(store, erasure, left):
    store.starts.add(
        [
            start_of("1"),
            start_of("2", user="bob", start=2_000.0),
            start_of("3", cluster="north", start=3_000.0),
        ]
    )
    store.erasures.erase(erasure, now=5_000.0)
    assert jobs(store.starts.since(0)) == left


def test_old_starts_are_dropped(store):
    store.starts.add([start_of("1"), start_of("2", known_from=9_000.0)])
    assert store.starts.drop_before(5_000.0) == 1
    assert jobs(store.starts.since(0)) == ["2"]
