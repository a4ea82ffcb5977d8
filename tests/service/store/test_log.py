"""Following the log from several places at once."""

import threading

import psycopg
import pytest
from running_service import eventually
from runs import a_run, read_all, reported
from sqlalchemy import make_url

from predictors.base import Memory
from service.store import Erasure, StoreUnavailableError, open_store, postgres
from service.store.postgres import PostgresLogReader
from service.store.rows import COMPLETION, completion_row


def jobs(runs) -> list[str]:
    return [run.submission.job_id for run in runs]


@pytest.fixture
def elsewhere(store_url, opening):
    """The same database as another process sees it."""
    return opening(store_url)


def test_two_workers_see_each_others_completions_in_one_order(store, elsewhere, reader):
    other = elsewhere.reader()
    for job in range(0, 40, 2):
        store.write([reported(a_run(str(job)))])
        elsewhere.write([reported(a_run(str(job + 1)))])
    everything = [str(job) for job in range(40)]
    assert jobs(read_all(reader)) == jobs(read_all(other)) == everything
    other.close()


def test_no_news_until_somebody_writes(store, reader):
    assert read_all(reader) == []
    assert not reader.has_news()
    store.write([reported(a_run("1"))])
    reader.refresh()
    assert reader.has_news()
    assert jobs(reader.read(10)) == ["1"]
    assert reader.read(10) == []
    reader.refresh()
    assert not reader.has_news()


def test_news_lasts_until_all_of_it_is_read(store, reader):
    store.write([reported(*(a_run(str(job)) for job in range(5)))])
    reader.refresh()
    assert jobs(reader.read(2)) == ["0", "1"]
    assert reader.has_news()
    assert jobs(reader.read(3)) == ["2", "3", "4"]
    assert reader.read(3) == []


def test_a_run_stored_after_the_newest_were_forgotten_is_read(store, reader):
    store.write([reported(a_run("1"), a_run("2"))])
    reader.refresh()
    assert jobs(read_all(reader)) == ["1", "2"]
    store.erasures.erase(Erasure(before=1e11), now=1e9)
    store.write([reported(a_run("3"))])
    reader.refresh()
    assert jobs(read_all(reader)) == ["3"]


def test_lag_counts_what_is_still_to_be_read(store, reader):
    store.write([reported(*(a_run(str(job)) for job in range(600)))])
    reader.refresh()
    assert reader.lag() == 600
    reader.read(100)
    assert reader.lag() == 500
    assert len(read_all(reader, limit=1000)) == 500
    assert reader.lag() == 0


def test_lag_of_more_than_a_reader_holds_is_still_told(store, reader):
    for _ in store.store_reports(reported(*(a_run(str(job)) for job in range(6000)))):
        pass
    reader.refresh()
    assert reader.lag() == 6000
    assert len(read_all(reader, limit=1000)) == 6000


def test_a_duplicate_is_no_news(store, reader):
    store.write([reported(a_run("1"))])
    read_all(reader)
    store.write([reported(a_run("1"))])
    assert read_all(reader) == []
    assert reader.lag() == 0


def test_a_warm_start_and_its_reader_meet_without_gap_or_overlap(store):
    store.write([reported(*(a_run(str(job)) for job in range(10)))])
    reader, [past] = store.past_runs.warm_start([Memory(jobs_per_user=100)], 1e10)
    store.write([reported(a_run("10"))])
    assert jobs(past) == [str(job) for job in range(10)]
    assert jobs(read_all(reader)) == ["10"]
    reader.close()


def test_a_notification_wakes_a_reader_without_anybody_asking(postgres_url, monkeypatch):
    monkeypatch.setattr(postgres, "_POLL_SECONDS", 1000.0)  # or it would look by itself
    store, elsewhere = open_store(postgres_url), open_store(postgres_url)
    reader = store.reader()
    reader.refresh()
    for job in "123":
        elsewhere.write([reported(a_run(job))])
        eventually(reader.has_news)
        assert jobs(reader.read(10)) == [job]
    for opened in (reader, store, elsewhere):
        opened.close()


def test_rows_that_commit_out_of_order_are_all_read(postgres_url, opening):
    store = opening(postgres_url)
    reader = store.reader()
    with _transaction(postgres_url) as late, _transaction(postgres_url) as early:
        _append(late, 1, a_run("A"))
        _append(early, 2, a_run("B"))
        early.commit()
        assert read_all(reader) == []
        assert reader.lag() == 1
        late.commit()
    assert jobs(read_all(reader)) == ["A", "B"]
    assert reader.lag() == 0
    reader.close()


def test_transactions_follow_each_other_as_numbers_do(postgres_url):
    """In the order of their texts 10 and 100 came before 9: whoever read 100 never saw 9."""
    store = open_store(postgres_url)
    for place, xid in enumerate((9, 10, 99, 100)):
        with _transaction(postgres_url) as settled:
            _append(settled, place, a_run(str(xid)))
            settled.execute(
                "UPDATE completions SET xid = %s::text::xid8 WHERE seq = %s", (xid, place)
            )
            settled.commit()
    reader, [past] = store.past_runs.warm_start([Memory(jobs_per_user=100)], 1e10)
    from_the_beginning = store.reader()
    assert jobs(past) == jobs(read_all(from_the_beginning)) == ["9", "10", "99", "100"]
    for opened in (reader, from_the_beginning, store):
        opened.close()


def test_a_warm_start_leaves_what_is_not_settled_to_its_reader(postgres_url, opening):
    store = opening(postgres_url)
    store.write([reported(a_run("0"))])
    with _transaction(postgres_url) as late, _transaction(postgres_url) as early:
        _append(late, 1001, a_run("A"))
        _append(early, 1002, a_run("B"))
        early.commit()
        reader, [past] = store.past_runs.warm_start([Memory(jobs_per_user=100)], 1e10)
        late.commit()
        assert jobs(past) == ["0"]
    assert jobs(read_all(reader)) == ["A", "B"]
    reader.close()


def test_a_history_from_a_dump_of_another_server_is_read_after_an_upgrade(postgres_url, opening):
    store = opening(postgres_url)
    with _transaction(postgres_url) as restored:
        _append(restored, 1, a_run("1"))
        restored.execute("UPDATE completions SET xid = '999999999999'")
        restored.commit()
    reader = store.reader()
    assert read_all(reader) == []
    reader.close()
    store.upgrade()
    reader = store.reader()
    assert jobs(read_all(reader)) == ["1"]
    reader.close()


def test_writers_in_many_threads_lose_and_double_nothing(store_url, reader):
    """Everybody sends overlapping batches in another order, as adapters that retry do."""
    accepted = []

    def send(seed: int) -> None:
        mine = open_store(store_url)
        order = sorted(range(300), key=lambda job: (job * 7919 + seed * 104729) % 300)
        for place in range(0, 300, 50):
            batch = [a_run(str(job)) for job in order[place : place + 50]]
            accepted.append(mine.write([reported(*batch)])[0].accepted)
        mine.close()

    threads = [threading.Thread(target=send, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    read = jobs(read_all(reader))
    assert sum(accepted) == len(read) == 300
    assert set(read) == {str(job) for job in range(300)}


def _transaction(url: str) -> psycopg.Connection:
    place = make_url(url)
    return psycopg.connect(
        host=place.query["host"], dbname=place.database, user=place.username, autocommit=False
    )


def _append(connection: psycopg.Connection, seq: int, run) -> None:
    marks = ", ".join(["%s"] * (len(COMPLETION) + 1))
    connection.execute(
        f"INSERT INTO completions (seq, {', '.join(COMPLETION)}) VALUES ({marks})",
        (seq, *completion_row(run)),
    )


def test_a_server_that_takes_no_connection_is_told_without_anybody_asking():
    """No refresh is needed to learn of it, and nothing is said to be unread meanwhile."""
    told = StoreUnavailableError("away")
    reader = PostgresLogReader({"host": "127.0.0.1", "port": 1}, lambda _: told, "0")
    assert reader.lag() == 0
    eventually(lambda: reader.error is told)
    reader.close()


def test_a_reader_that_was_closed_opens_no_connection_for_those_who_come_late(
    postgres_url, opening
):
    store = opening(postgres_url)
    reader = store.reader()
    reader.refresh()
    assert reader._connection is not None
    reader.close()
    reader.refresh()
    assert reader._connection is None


def test_a_server_that_is_away_is_not_asked_all_the_time():
    asked = []
    reader = PostgresLogReader({"host": "127.0.0.1", "port": 1}, asked.append, "0")
    eventually(lambda: asked)
    reader._closed.wait(0.1)
    assert len(asked) < 20, "once a second, and not thousands of times"
    reader.close()
