"""The latest queue of each cluster, and the sums of how far off forecasts of waits were."""

import pytest
from msgspec.structs import replace
from runs import a_run, reported

from service.store import Erasure, WaitScore

SCORE = WaitScore(
    queue="long",
    made="arrival",
    jobs=1.0,
    wait=100.0,
    absolute_error=30.0,
    error=-30.0,
    intervals=2.0,
    covered=1.0,
)
TWICE = replace(
    SCORE, jobs=2.0, wait=200.0, absolute_error=60.0, error=-60.0, intervals=4.0, covered=2.0
)


def put(store, version, content=b"queue", cluster="north", scores=()):
    return store.queues.replace(cluster, version, content, received_at=1.0, scores=scores)


def test_a_queue_is_replaced_by_the_next_version_of_it_alone(store):
    assert store.queues.read("north") is None
    assert put(store, 1, b"first")
    assert not put(store, 1, b"another process's first")
    assert not put(store, 3, b"of somebody who missed one")
    assert store.queues.read("north") == (1, b"first")
    assert put(store, 2, b"second")
    assert store.queues.read("north") == (2, b"second")


def test_clusters_have_queues_of_their_own(store):
    assert put(store, 1, b"north")
    assert put(store, 1, b"south", cluster="south")
    assert put(store, 2, b"later", cluster="south")
    assert store.queues.versions() == {"north": 1, "south": 2}
    assert store.queues.read("north") == (1, b"north")


def test_scores_add_up_by_cluster_queue_and_when_they_were_made(store):
    since, short = replace(SCORE, made="since"), replace(SCORE, queue="short")
    assert put(store, 1, scores=[SCORE, since, short])
    assert put(store, 2, scores=[SCORE])
    assert put(store, 1, cluster="south", scores=[SCORE])
    assert store.queues.scores("north") == [TWICE, since, short]
    assert store.queues.scores("south") == [SCORE]
    assert put(store, 3, scores=[since])
    assert store.queues.scores("north") == [TWICE, replace(TWICE, made="since"), short]


def test_a_queue_that_is_not_stored_scores_nothing(store):
    assert put(store, 1, scores=[SCORE])
    assert not put(store, 1, scores=[SCORE])
    assert store.queues.scores("north") == [SCORE]


@pytest.mark.parametrize("order", [1, -1])
def test_the_first_start_after_a_submission_is_that_of_the_job(store, order):
    """Job ids come round again, and a job that was requeued has started twice."""
    starts = (900.0, 1000.0, 1500.0)[::order]
    runs = [a_run("1", start=start, runtime=10.0) for start in starts]
    others = [a_run(job, start=3000.0) for job in ("2", "3")]
    store.write([reported(*runs, *others, a_run("4", start=5.0, cluster="south"))])
    sought = {"1": 1000.0, "2": 3000.0, "3": 3000.1, "4": 0.0, "never": 0.0}
    assert store.queues.starts("default", sought) == {"1": 1000.0, "2": 3000.0}


def test_starts_of_a_thousand_jobs_are_found(store):
    store.write([reported(*(a_run(str(job), start=1000.0 + job) for job in range(1003)))])
    found = store.queues.starts("default", {str(job): 0.0 for job in range(1003)})
    assert found == {str(job): 1000.0 + job for job in range(1003)}


def test_the_queue_of_an_erased_user_is_handed_over_again(store):
    put(store, 1, scores=[SCORE])
    store.erasures.erase(Erasure(users=frozenset({"ada"})), now=1.0)
    assert store.queues.read("north") is None
    assert store.queues.scores("north") == [SCORE]
    store.erasures.erase(Erasure(cluster="north"), now=2.0)
    assert store.queues.scores("north") == []
