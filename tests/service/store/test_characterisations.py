"""What applications are when they run alone: who says it, and which of two runs counts."""

import pytest
from msgspec.structs import replace
from runs import a_run, reported

from service.store import Characterisation, Erasure, Source, open_store

DAY = 86400.0


@pytest.fixture
def store(store_url):
    store = open_store(store_url)
    store.upgrade()
    yield store
    store.close()


def run_with(job_id, *, cpu_time, runtime=1000.0, end=1e9, tasks=4, application="cg"):
    run = a_run(job_id)
    job = replace(
        run.submission, application=application, requested_processors=tasks, submit_time=end - 2e3
    )
    times = {"start_time": end - runtime, "end_time": end, "runtime": runtime}
    return replace(run, submission=job, cpu_time=cpu_time, **times)


def known(store, cluster):
    return {
        (each.application, each.tasks): (each.execution_time, each.cpu_share, each.source)
        for each in store.characterisations(cluster)
    }


def test_the_run_that_was_disturbed_least_stands_for_its_application(store):
    cluster = a_run("x").submission.cluster
    store.write(
        [reported(run_with("1", cpu_time=1600.0), run_with("2", cpu_time=1200.0, runtime=1500.0))]
    )
    # 1,600 CPU seconds of four tasks in 1,000 s; in 1,500 s each had a fifth of a CPU only.
    assert known(store, cluster) == {("cg", 4): (1000.0, 0.4, Source.ACCOUNTING)}
    store.write(
        [reported(run_with("3", cpu_time=3200.0, runtime=800.0), run_with("4", cpu_time=40.0))]
    )
    assert known(store, cluster) == {("cg", 4): (800.0, 1.0, Source.ACCOUNTING)}
    # The same report again changes nothing, and another number of tasks is another application.
    store.write(
        [reported(run_with("3", cpu_time=1.0, runtime=800.0), run_with("5", cpu_time=9.0, tasks=1))]
    )
    assert known(store, cluster)["cg", 4] == (800.0, 1.0, Source.ACCOUNTING)
    assert known(store, cluster)["cg", 1] == (1000.0, 0.009, Source.ACCOUNTING)


def test_an_application_may_change_in_a_season(store):
    cluster = a_run("x").submission.cluster
    store.write([reported(run_with("1", cpu_time=4000.0))])
    store.write([reported(run_with("2", cpu_time=400.0, runtime=500.0, end=1e9 + 89 * DAY))])
    assert known(store, cluster)["cg", 4][0] == 1000.0
    store.write([reported(run_with("3", cpu_time=400.0, runtime=500.0, end=1e9 + 91 * DAY))])
    assert known(store, cluster)["cg", 4] == (500.0, 0.2, Source.ACCOUNTING)


def test_what_was_posted_is_changed_by_another_post_only(store):
    cluster = a_run("x").submission.cluster
    said = Characterisation(
        cluster=cluster,
        application="cg",
        tasks=4,
        execution_time=700.0,
        cpu_share=0.5,
        source=Source.POSTED,
        recorded_at=1e9,
    )
    store.write([reported(run_with("1", cpu_time=4000.0))])
    store.characterise([said])
    store.write([reported(run_with("2", cpu_time=4000.0, end=2e9))])
    assert known(store, cluster) == {("cg", 4): (700.0, 0.5, Source.POSTED)}
    store.characterise([replace(said, cpu_share=0.6)])
    assert known(store, cluster)["cg", 4][1] == 0.6


def test_the_season_is_ninety_days_to_the_second(store):
    cluster = a_run("x").submission.cluster
    last = 1e9 + 90 * DAY
    store.write([reported(run_with("1", cpu_time=4000.0))])
    store.write([reported(run_with("2", cpu_time=400.0, runtime=500.0, end=last))])
    assert known(store, cluster)["cg", 4][0] == 1000.0
    store.write([reported(run_with("3", cpu_time=400.0, runtime=500.0, end=last + 1))])
    assert known(store, cluster)["cg", 4][0] == 500.0


def test_of_runs_that_were_disturbed_as_little_the_last_one_counts(store):
    cluster = a_run("x").submission.cluster
    first, second = (
        run_with(str(runtime), cpu_time=2.0 * runtime, runtime=runtime)
        for runtime in (1000.0, 500.0)
    )
    store.write([reported(first, second)])
    assert known(store, cluster)["cg", 4] == (500.0, 0.5, Source.ACCOUNTING)
    store.write([reported(run_with("800", cpu_time=1600.0, runtime=800.0))])
    assert known(store, cluster)["cg", 4] == (800.0, 0.5, Source.ACCOUNTING)


def test_a_share_is_at_least_a_thousandth_and_at_most_a_whole_cpu(store):
    cluster = a_run("x").submission.cluster
    idle, busy = run_with("1", cpu_time=0.1), run_with("2", cpu_time=9e9, application="busy")
    unknown = run_with("3", cpu_time=250.0, tasks=None, application="one task")
    store.write([reported(idle, busy, unknown)])
    found = known(store, cluster)
    assert found["cg", 4][1] == 0.001
    assert found["busy", 4][1] == 1.0
    assert found["one task", 1][1] == 0.25


def test_a_run_of_less_than_a_second_tells_nothing(store):
    cluster = a_run("x").submission.cluster
    short = {"runtime": 0.9, "application": "short"}
    store.write([reported(run_with("1", cpu_time=1.0, **short))])
    assert known(store, cluster) == {}
    store.write([reported(run_with("2", cpu_time=1.0, runtime=1.0))])
    assert known(store, cluster) == {("cg", 4): (1.0, 0.25, Source.ACCOUNTING)}


def test_an_application_is_forgotten_with_all_its_numbers_of_tasks(store):
    runs = [run_with(str(tasks), cpu_time=4.0, tasks=tasks) for tasks in (1, 2)]
    kept = run_with("other", cpu_time=4.0, application="kept")
    store.write([reported(*runs, kept)])
    cluster = kept.submission.cluster
    assert store.drop_characterisations("south", "cg") == 0
    assert store.drop_characterisations(cluster, "cg") == 2
    assert list(known(store, cluster)) == [("kept", 4)]


@pytest.mark.parametrize("silent", [{"cpu_time": None}, {"cpu_time": 0.0}, {"application": None}])
def test_runs_that_tell_no_cpu_time_or_no_application_characterise_nothing(store, silent):
    store.write([reported(run_with("1", **{"cpu_time": 5.0, **silent}))])
    assert store.characterisations(a_run("x").submission.cluster) == []


def test_erasing_a_cluster_or_an_old_time_erases_them_too(store):
    cluster = a_run("x").submission.cluster
    for erasure in (Erasure(cluster=cluster), Erasure(before=1e9 + 1)):
        store.write([reported(run_with(str(erasure.before), cpu_time=400.0))])
        assert known(store, cluster)
        store.erase(erasure, 2e9)
        assert not known(store, cluster)
    store.write([reported(run_with("young", cpu_time=400.0))])
    store.erase(Erasure(before=1e9), 2e9)
    assert known(store, cluster), "it is just as old as the limit"
