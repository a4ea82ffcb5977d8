"""Rounds of tuning in the store: one at a time, taken once, given back, never half finished."""

from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from runs import a_run, reported

from predictors.tuning.plan import TooShortHistoryError, TuningPlan
from service.store import Adoption, TuningLostError, TuningState, open_store
from service.store.tables import tunings

PLAN = TuningPlan(history=50, training=100, test=100)


@pytest.fixture
def store(store_url):
    store = open_store(store_url)
    yield store
    store.close()


def knn(neighbours):
    return Adoption(subject="knn", parameters={"neighbours": neighbours})


def neighbours(store):
    found = store.tunings.in_force()
    return {name: each["knn"].adoption.parameters["neighbours"] for name, each in found.items()}


def report(store, first, last, cluster="default"):
    runs = [
        a_run(str(n), start=float(n), runtime=60.0, cluster=cluster) for n in range(first, last)
    ]
    store.write([reported(*runs)])


def asked(store, at=1.0):
    report(store, 0, 250)
    return store.tunings.ask("default", PLAN, "request", at)


def test_a_round_is_asked_for_taken_told_about_and_finished(store):
    waiting = asked(store)
    assert (waiting.state, waiting.origin, waiting.plan) == ("waiting", "request", PLAN)
    assert store.tunings.waiting() == [waiting]
    taken = store.tunings.take(waiting.tuning_id, 2.0)
    assert (taken.state, taken.started_at, taken.attempts) == (TuningState.RUNNING, 2.0, 1)
    store.tunings.tell(taken, {"step": 3}, 4.0)
    assert store.tunings.find(taken.tuning_id).progress == {"step": 3}
    store.tunings.finish(taken, {"adopted": True}, [knn(7)], 5.0)
    done = store.tunings.find(taken.tuning_id)
    assert (done.state, done.finished_at, done.outcome) == ("done", 5.0, {"adopted": True})
    assert done.error is None
    assert neighbours(store) == {"default": 7}
    assert store.tunings.of_cluster("default") == [done]
    assert store.tunings.of_cluster("other") == []
    assert store.tunings.find("none") is None


def test_asking_for_an_open_round_is_answered_with_it_however_many_ask_at_once(store_url, store):
    report(store, 0, 250)
    others = [open_store(store_url) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(lambda one: one.tunings.ask("default", PLAN, "history", 1.0), others)
        assert len({answer.tuning_id for answer in answers}) == 1
    taken = store.tunings.take(store.tunings.waiting()[0].tuning_id, 2.0)
    assert store.tunings.ask("default", PLAN, "command", 3.0) == taken
    for other in others:
        other.close()


def test_a_round_is_taken_by_one_process_alone(store_url, store):
    waiting = asked(store)
    others = [open_store(store_url) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(lambda one: one.tunings.take(waiting.tuning_id, 2.0), others))
    assert len([one for one in taken if one is not None]) == 1
    for other in others:
        other.close()


def test_clusters_have_rounds_and_parameters_of_their_own(store):
    first = asked(store)
    report(store, 0, 250, cluster="other")
    second = store.tunings.ask("other", PLAN, "request", 1.0)
    assert first.tuning_id != second.tuning_id
    for number, tuning in enumerate((first, second)):
        taken = store.tunings.take(tuning.tuning_id, 2.0)
        store.tunings.finish(taken, {}, [knn(number + 1)], 3.0)
    assert neighbours(store) == {"default": 1, "other": 2}


def test_the_parameters_adopted_last_are_in_force(store):
    report(store, 0, 250)
    for number, adopted in enumerate(([knn(3)], [knn(4)], [])):
        waiting = store.tunings.ask("default", PLAN, "request", float(number))
        taken = store.tunings.take(waiting.tuning_id, float(number))
        store.tunings.finish(taken, {}, adopted, float(number))
    assert neighbours(store) == {"default": 4}
    assert [one.asked_at for one in store.tunings.of_cluster("default")] == [2.0, 1.0, 0.0]


def test_each_subject_is_in_force_with_what_it_replaced_and_may_come_back(store):
    report(store, 0, 250)
    weights = Adoption(
        subject="attention", parameters={"weights": "new"}, content=b"\x00arrays", made_until=7.0
    )
    back = Adoption(subject="attention", parameters=None)
    before = store.tunings.version()
    assert before == 0
    for number, adopted in enumerate(([knn(3), weights], [knn(4)], [back])):
        waiting = store.tunings.ask("default", PLAN, "request", float(number))
        taken = store.tunings.take(waiting.tuning_id, float(number))
        store.tunings.finish(taken, {}, adopted, float(number))
        if number == 1:
            found = store.tunings.in_force()["default"]
            assert found["attention"].adoption == weights
            assert found["attention"].replaced is None
            assert found["knn"].replaced.parameters == {"neighbours": 3}
    found = store.tunings.in_force()["default"]
    assert found["attention"].adoption == back
    assert found["attention"].replaced.content == b"\x00arrays"
    assert found["knn"].adoption == knn(4)
    assert store.tunings.version() > before


def test_a_silent_round_is_given_back_and_its_first_process_can_write_no_more(store):
    first = store.tunings.take(asked(store).tuning_id, 2.0)
    assert not store.tunings.any_silent(1.9)
    assert store.tunings.give_back_silent(9.0, silent_since=1.9) == 0
    assert store.tunings.any_silent(2.0)
    assert store.tunings.give_back_silent(9.0, silent_since=2.0) == 1
    second = store.tunings.take(first.tuning_id, 10.0)
    assert second.attempts == 2
    for write in (
        lambda: store.tunings.tell(first, {}, 11.0),
        lambda: store.tunings.finish(first, {}, [knn(9)], 11.0),
        lambda: store.tunings.fail(first, "no", 11.0),
    ):
        with pytest.raises(TuningLostError):
            write()
    assert store.tunings.in_force() == {}
    store.tunings.finish(second, {}, [], 12.0)
    assert store.tunings.find(first.tuning_id).state == TuningState.DONE


def test_a_round_is_given_back_by_the_process_that_has_it_alone(store):
    first = store.tunings.take(asked(store).tuning_id, 2.0)
    store.tunings.give_back(first, 3.0)
    second = store.tunings.take(first.tuning_id, 4.0)
    store.tunings.give_back(first, 5.0)
    assert store.tunings.find(first.tuning_id) == second
    store.tunings.finish(second, {}, [], 6.0)
    store.tunings.give_back(second, 7.0)
    assert store.tunings.find(first.tuning_id).state == TuningState.DONE


def test_a_round_whose_processes_keep_dying_fails(store):
    tuning_id = asked(store).tuning_id
    for attempt in range(3):
        store.tunings.give_back(store.tunings.take(tuning_id, float(attempt)), float(attempt))
        if attempt < 2:
            waiting = store.tunings.find(tuning_id)
            assert (waiting.state, waiting.finished_at) == ("waiting", None)
    failed = store.tunings.find(tuning_id)
    assert (failed.state, failed.error) == ("failed", "Its process died, 3 times.")
    assert failed.finished_at == 2.0
    assert store.tunings.take(tuning_id, 9.0) is None


def test_a_failed_round_says_why_and_makes_room(store):
    taken = store.tunings.take(asked(store).tuning_id, 2.0)
    store.tunings.fail(taken, "because", 3.0)
    assert store.tunings.find(taken.tuning_id).error == "because"
    assert store.tunings.ask("default", PLAN, "request", 4.0).tuning_id != taken.tuning_id


def test_too_short_a_history_is_refused(store):
    report(store, 0, 249)
    report(store, 0, 9, cluster="other")
    with pytest.raises(TooShortHistoryError, match="needs 250 completions, there are 249"):
        store.tunings.ask("default", PLAN, "request", 1.0)
    assert store.tunings.waiting() == []


def test_a_round_is_due_after_enough_new_completions_of_the_cluster(store):
    report(store, 0, 249)
    assert not store.tunings.is_due("default", PLAN)
    report(store, 249, 250)
    assert store.tunings.is_due("default", PLAN)
    taken = store.tunings.take(store.tunings.ask("default", PLAN, "history", 1.0).tuning_id, 2.0)
    store.tunings.finish(taken, {}, [], 3.0)
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
    waiting = asked(store)
    store.tunings.fail(store.tunings.take(waiting.tuning_id, 2.0), "no", 3.0)
    old = [{"tuning_id": f"t{n}", "asked_at": 10.0 + n} for n in range(100)]
    same = {"cluster": "default", "state": "done", "origin": "request", "attempts": 1}
    with store._database.writing() as connection:
        plan = msgspec.json.encode(PLAN).decode()
        connection.execute(
            tunings.insert(), [{**each, **same, "plan": plan, "horizon": 1} for each in old]
        )
    listed = store.tunings.of_cluster("default")
    assert [round_.tuning_id for round_ in listed] == [f"t{n}" for n in range(99, -1, -1)]
