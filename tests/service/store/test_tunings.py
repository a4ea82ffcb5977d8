"""Rounds of tuning in the store: one open per cluster, one process that runs them."""

import os
import signal
import subprocess
import sys

import msgspec
import pytest
from runs import a_run, reported

from predictors.tuning.adoption import RoundChange, Verdict
from predictors.tuning.plan import TooShortHistoryError, TuningPlan
from service.store import ActiveAdoption, Adoption, RoundOutcome, TuningState
from service.store.tables import tunings

PLAN = TuningPlan(history=50, training=100, test=100)
NOTHING = RoundOutcome(knn=None, changes=())
FOUND = RoundOutcome(
    knn=None,
    changes=[
        RoundChange(
            subject="price",
            action="kept",
            before=1.0,
            after=3.0,
            verdict=Verdict(cases=9, gain=0.1, error=None, wins=False, loses=False),
        )
    ],
)


def knn(neighbours):
    return Adoption(subject="knn", parameters={"neighbours": neighbours})


def neighbours(store):
    found = store.tunings.active()
    return {name: each["knn"].parameters["neighbours"] for name, each in found.items()}


def report(store, first, last, cluster="default"):
    runs = [
        a_run(str(n), start=float(n), runtime=60.0, cluster=cluster) for n in range(first, last)
    ]
    store.write([reported(*runs)])


def begun(store, at=1.0):
    report(store, 0, 250)
    return store.tunings.begin("default", PLAN, "history", at)


def held(store, *adopted, at=1.0, cluster="default"):
    """Run a round that adopts."""
    tuning = store.tunings.begin(cluster, PLAN, "history", at)
    store.tunings.finish(tuning, NOTHING, adopted, at)
    return tuning


def test_a_round_is_begun_and_finished(store):
    running = begun(store, 2.0)
    assert (running.state, running.origin, running.plan) == ("running", "history", PLAN)
    assert running.started_at == 2.0
    assert store.tunings.running() == [running]
    store.tunings.finish(running, FOUND, [knn(7)], 5.0)
    done = store.tunings.find(running.tuning_id)
    assert (done.state, done.finished_at, done.outcome) == ("done", 5.0, FOUND)
    assert done.error is None
    assert neighbours(store) == {"default": 7}
    assert store.tunings.running() == []
    assert store.tunings.of_cluster("default") == [done]
    assert store.tunings.of_cluster("other") == []
    assert store.tunings.find("none") is None


def test_an_interrupted_round_is_due_and_runs_anew_under_its_id(store):
    interrupted = begun(store, 1.0)
    assert store.tunings.is_due("default", PLAN)
    again = store.tunings.begin("default", PLAN, "command", 3.0)
    assert (again.tuning_id, again.origin) == (interrupted.tuning_id, "command")
    assert store.tunings.running() == [again]
    store.tunings.fail(again, "because", 4.0)
    assert not store.tunings.is_due("default", PLAN)


def test_findings_in_another_form_are_as_good_as_none(store):
    report(store, 0, 250)
    done = held(store, knn(3))
    with store._database.writing() as connection:
        connection.execute(tunings.update().values(outcome='{"adopted": true}'))
    assert store.tunings.find(done.tuning_id).outcome is None
    assert store.tunings.adopting("default") == {}


def test_a_forest_that_an_earlier_release_put_in_force_is_learned_and_never_adopted_at_a_loss(
    store,
):
    lost = Verdict(cases=900, gain=-0.0086, error=0.037, wins=False, loses=False)
    change = RoundChange(subject="forest", action="adopted", before=None, after=None, verdict=lost)
    report(store, 0, 250)
    running = begun(store, 1.0)
    adoption = Adoption(subject="forest", parameters={"runs": 5})
    store.tunings.finish(running, RoundOutcome(knn=None, changes=[change]), [adoption], 2.0)
    (found,) = store.tunings.find(running.tuning_id).outcome.changes
    assert (found.action, found.verdict) == ("learned", None)
    assert store.tunings.adopting("default")["forest"].verdict is None


def test_one_holder_at_a_time_has_the_lock_of_rounds(store_url, store, opening):
    other = opening(store_url)
    with store.tunings.lock() as is_held:
        assert is_held
        with other.tunings.lock() as is_held_too:
            assert not is_held_too
        store.write([reported(a_run("1"))])  # the lock is in nobody's way
    with other.tunings.lock() as is_held:
        assert is_held


HOLDER = """
import sys, time
from service.store import open_store
with open_store(sys.argv[1]).tunings.lock() as is_held:
    print(is_held, flush=True)
    time.sleep(600)
"""


def test_the_lock_of_rounds_ends_with_a_process_that_is_killed(store_url, store):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, store_url], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "True\n"
        with store.tunings.lock() as is_held:
            assert not is_held
        os.kill(process.pid, signal.SIGKILL)
    for _ in range(1000):
        with store.tunings.lock() as is_held:
            if is_held:
                return
    pytest.fail("the lock outlived its process")


def test_clusters_have_rounds_and_parameters_of_their_own(store):
    report(store, 0, 250)
    report(store, 0, 250, cluster="other")
    first = store.tunings.begin("default", PLAN, "history", 1.0)
    second = store.tunings.begin("other", PLAN, "history", 2.0)
    assert store.tunings.running() == [first, second]
    for number, tuning in enumerate((first, second)):
        store.tunings.finish(tuning, NOTHING, [knn(number + 1)], 3.0)
    assert neighbours(store) == {"default": 1, "other": 2}


def test_each_subject_is_in_force_with_what_it_replaced_and_may_come_back(store):
    report(store, 0, 250)
    price = Adoption(subject="price", parameters=3.5, made_until=7.0)
    back = Adoption(subject="price", parameters=None)
    assert store.tunings.version() == 0
    held(store, knn(3), price, at=0.0)
    held(store, knn(4), at=1.0)
    found = store.tunings.active()["default"]
    assert found["price"] == ActiveAdoption(parameters=3.5, made_until=7.0, replaced=None)
    assert found["knn"].replaced == {"neighbours": 3}
    before = store.tunings.version()
    held(store, back, at=2.0)
    held(store, at=3.0)
    found = store.tunings.active()["default"]
    assert found["price"] == ActiveAdoption(parameters=None, made_until=None, replaced=3.5)
    assert found["knn"].parameters == {"neighbours": 4}
    assert store.tunings.version() > before
    assert [one.started_at for one in store.tunings.of_cluster("default")] == [3.0, 2.0, 1.0, 0.0]


def test_a_round_that_has_ended_is_not_changed_and_adopts_nothing_more(store):
    tuning = begun(store)
    store.tunings.fail(tuning, "because", 3.0)
    failed = store.tunings.find(tuning.tuning_id)
    assert (failed.state, failed.error) == (TuningState.FAILED, "because")
    store.tunings.finish(tuning, NOTHING, [knn(9)], 11.0)
    store.tunings.fail(tuning, "once more", 12.0)
    assert store.tunings.find(tuning.tuning_id) == failed
    assert store.tunings.active() == {}
    assert store.tunings.begin("default", PLAN, "history", 4.0).tuning_id != tuning.tuning_id


def test_too_short_a_history_is_refused(store):
    report(store, 0, 249)
    report(store, 0, 9, cluster="other")
    with pytest.raises(TooShortHistoryError, match=r"250.*249"):
        store.tunings.begin("default", PLAN, "history", 1.0)
    assert store.tunings.running() == []


def test_a_round_is_due_after_enough_new_completions_of_the_cluster(store):
    report(store, 0, 249)
    assert not store.tunings.is_due("default", PLAN)
    report(store, 249, 250)
    assert store.tunings.is_due("default", PLAN)
    held(store)
    report(store, 250, 349)
    report(store, 0, 500, cluster="other")
    assert not store.tunings.is_due("default", PLAN)
    report(store, 349, 350)
    assert store.tunings.is_due("default", PLAN)


def test_the_latest_completions_come_in_log_order(store):
    report(store, 50, 100)
    report(store, 0, 20)
    report(store, 0, 5, cluster="other")
    latest = store.tunings.latest_completions("default", 60)
    assert [int(one.submission.job_id) for one in latest] == [*range(50, 100), *range(10, 20)]
    assert len(store.tunings.latest_completions("default", 1000)) == 70


def test_the_newest_hundred_rounds_are_listed(store):
    store.tunings.fail(begun(store), "no", 3.0)
    old = [{"tuning_id": f"t{n}", "started_at": 10.0 + n} for n in range(100)]
    same = {"cluster": "default", "state": "done", "origin": "history"}
    with store._database.writing() as connection:
        plan = msgspec.json.encode(PLAN).decode()
        connection.execute(
            tunings.insert(), [{**each, **same, "plan": plan, "horizon": 1} for each in old]
        )
    listed = store.tunings.of_cluster("default")
    assert [round_.tuning_id for round_ in listed] == [f"t{n}" for n in range(99, -1, -1)]
