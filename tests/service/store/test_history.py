"""The log of completions: nothing lost, nothing twice, everything as it was."""

import stat
from math import inf

import pytest
from examples import examples
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from runs import a_run, read_all, reported
from sqlalchemy import make_url

from predictors.base import Memory
from predictors.jobs import Completion, Status, Submission
from service.store import Ingested, open_store

NOW = 1e10


def log_of(store) -> list[Completion]:
    reader, [runs] = store.past_runs.warm_start([Memory(window_seconds=inf)], NOW)
    reader.close()
    return list(runs)


def test_a_completion_is_read_back_as_it_was(store):
    run = Completion(
        submission=Submission(
            cluster="north",
            job_id="17.server[3]",
            user="zoë",
            group="physics",
            project="p-1",
            queue="gpu; DROP TABLE completions",
            application="näherung '%s' ?",
            requested_walltime=7200.5,
            requested_processors=128,
            requested_memory=2097152.25,
            submit_time=1700000000.123456,
        ),
        start_time=1700000001.654321,
        end_time=1700000900.1,
        runtime=898.445679,
        status=Status.OUT_OF_MEMORY,
        interactive=True,
    )
    store.write([reported(run)])
    assert log_of(store) == [run]


def test_the_first_report_of_a_run_is_the_one_that_stays(store):
    store.write([reported(a_run("1", runtime=100.0))])
    store.write([reported(a_run("1", runtime=200.0))])
    assert [run.runtime for run in log_of(store)] == [100.0]


def test_a_run_that_comes_twice_in_one_transaction_is_counted_for_the_group_that_was_first(store):
    one, two, three = a_run("1"), a_run("2"), a_run("3")
    counts = store.write([reported(one, one, two), reported(two, three), reported(one)])
    assert counts == [
        Ingested(accepted=2, duplicates=1),
        Ingested(accepted=1, duplicates=1),
        Ingested(accepted=0, duplicates=1),
    ]
    assert store.past_runs.count() == 3


def test_groups_that_are_partly_known_are_counted_exactly(store):
    store.write([reported(*(a_run(str(job)) for job in range(0, 2000, 2)))])
    halves = [
        reported(*(a_run(str(job)) for job in jobs)) for jobs in (range(1200), range(1200, 2000))
    ]
    assert store.write(halves) == [
        Ingested(accepted=600, duplicates=600),
        Ingested(accepted=400, duplicates=400),
    ]


def test_a_requeued_job_has_a_run_for_every_start(store):
    store.write([reported(a_run("1", start=100.0), a_run("1", start=900.0))])
    assert store.past_runs.count() == 2


def test_the_same_job_id_on_another_cluster_is_another_job(store):
    store.write([reported(a_run("1", cluster="north"), a_run("1", cluster="south"))])
    assert store.past_runs.clusters() == ["north", "south"]
    assert store.past_runs.count() == 2


def test_an_empty_write_is_counted_as_nothing(store):
    assert store.write([]) == []
    assert store.write([[], reported(a_run("1"))]) == [
        Ingested(accepted=0, duplicates=0),
        Ingested(accepted=1, duplicates=0),
    ]


def test_the_log_keeps_the_order_in_which_completions_came(store):
    jobs = [str(job) for job in (9, 2, 700, 31, 5, 1000)]
    store.write([reported(*(a_run(job) for job in jobs[:3])), reported(a_run(jobs[3]))])
    store.write([reported(*(a_run(job) for job in jobs[4:]))])
    assert [run.submission.job_id for run in log_of(store)] == jobs


def test_an_import_counts_every_batch_and_imports_nothing_twice(store):
    runs = [a_run(str(job)) for job in range(250)]
    first = list(store.store_reports(iter(reported(*runs)), batch=100))
    assert [(done.accepted, done.duplicates) for done in first] == [(100, 0), (100, 0), (50, 0)]
    again = list(store.store_reports(iter(reported(*runs)), batch=100))
    assert [(done.accepted, done.duplicates) for done in again] == [(0, 100), (0, 100), (0, 50)]
    assert log_of(store) == runs


def test_an_import_lets_others_write_between_its_batches(store, store_url):
    other = open_store(store_url)
    imported = store.store_reports(reported(*(a_run(str(job)) for job in range(30))), batch=10)
    next(imported)
    assert other.write([reported(a_run("new"))]) == [Ingested(accepted=1, duplicates=0)]
    assert sum(done.accepted for done in imported) == 20
    other.close()


# Numbers and texts that the edge lets through, and that databases have views of their own about.
numbers = st.floats(min_value=0.0, max_value=1e12, allow_nan=False) | st.integers(0, 1 << 40)
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.builds(
            Completion,
            submission=st.builds(
                Submission,
                cluster=texts,
                job_id=texts,
                user=st.none() | texts,
                application=st.none() | texts,
                requested_walltime=st.floats(1e-3, 1e9),
                requested_processors=st.none() | st.integers(1, (1 << 63) - 1),
                requested_memory=st.none() | numbers,
                submit_time=numbers,
            ),
            start_time=numbers,
            end_time=numbers,
            runtime=numbers,
            status=st.sampled_from(Status),
        ),
        max_size=5,
    )
)
def test_any_history_is_read_back_exactly(store, runs):
    reader = store.past_runs.warm_start([], NOW)[0]
    fresh = store.write([reported(*runs)])[0].accepted
    read = read_all(reader)
    reader.close()
    assert len(read) == fresh
    assert all(run in runs for run in read)


def test_a_sqlite_file_is_its_owners_alone(tmp_path, opening):
    file = tmp_path / "own.sqlite3"
    store = opening(f"sqlite:///{file}")
    store.upgrade()
    store.write([reported(a_run("1"))])
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in tmp_path.iterdir())


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://localhost/history"])
def test_a_database_that_cannot_be_shared_is_refused(url):
    with pytest.raises(ValueError, match=r"sqlite|mysql"):
        open_store(url)


def test_durability_can_be_lessened_but_not_turned_off(sqlite_url):
    private = open_store(sqlite_url, sqlite_synchronous="normal")
    assert private.write([reported(a_run("1"))]) == [Ingested(accepted=1, duplicates=0)]
    private.close()
    with pytest.raises(ValueError, match="'off'"):
        open_store(sqlite_url, sqlite_synchronous="off")


def test_a_url_of_postgresql_needs_no_driver(postgres_url, opening):
    plain = make_url(postgres_url).set(drivername="postgresql").render_as_string()
    store = opening(plain)
    store.check()
