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
        [[run_with("3", cpu_time=1.0, runtime=800.0), run_with("5", cpu_time=9.0, tasks=1)]]
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
