"""The table of recent jobs takes little room for few of them, and grows without a difference."""

from random import Random

import pytest
from runs import a_run, ended, submission

from predictors.jobs import Submission
from predictors.memory.columns import ORDINAL, PREVIOUS, RUNTIME
from predictors.memory.job_table import JobTable


def room(table: JobTable) -> int:
    return sum(array.nbytes for array in table.columns)


def test_a_table_for_many_jobs_is_small_while_there_are_few():
    table = JobTable(20_000)
    table.add(a_run("1"))
    assert room(table) < 8_000


def test_a_table_takes_no_more_room_than_twice_the_jobs_it_keeps():
    table = JobTable(100)
    for end in range(1000):
        table.add(a_run(str(end), start=float(end)))
    assert table.columns[0].shape[1] == 201
    assert len(table) == 100


def test_each_user_s_jobs_stay_linked_while_the_table_grows():
    """More users than there was room for at first, and several reports of each that come late."""
    table = JobTable(5_000)
    runs = [
        a_run(f"{job}", user=f"u{job % 150}", start=float((job * 37) % 600), runtime=job + 1.0)
        for job in range(900)
    ]
    for run in runs:
        table.add(run)
    for user in ("u0", "u63", "u64", "u127", "u128", "u149"):
        own = [run for run in runs if run.submission.user == user]
        _, _, _, row, _ = table.window(
            Submission(user=user, requested_walltime=1.0, submit_time=1e6)
        )
        found = []
        while row >= 0:
            found.append(table.columns[0][3, row])
            row = table.columns[1][4, row]
        own.reverse()
        newest_first = sorted(own, key=lambda run: -run.end_time)
        assert found == [run.runtime for run in newest_first]


def test_every_row_keeps_the_number_of_its_job():
    """Jobs are reported late, the table grows, and its rows are moved back when it is full."""
    table = JobTable(100, names_jobs=True)
    for job in range(1000):
        table.add(a_run(str(job), start=float((job * 7) % 1000), runtime=float(job)))
        rows = [table.run_at(row, 0.0) for row in range(table.first, table.first + len(table))]
        assert all(run.job_id == str(int(run.runtime)) for run in rows)
        assert [run.end_time for run in rows] == sorted(run.end_time for run in rows)
    assert len(table) == 100
    nameless = JobTable(5)
    nameless.add(a_run("1"))
    assert nameless.run_at(nameless.first, 0.0).job_id is None


def table_of(runs, **options) -> JobTable:
    table = JobTable(**options)
    for run in runs:
        table.add(run)
    return table


def flood(runs: int):
    """Runs of one user."""
    return [ended(2e6 + each, 1.0, user="flood") for each in range(runs)]


@pytest.mark.parametrize("kept", [1, 5, 40])
def test_each_user_s_last_runs_stay_whatever_others_run(kept):
    runs = [ended(1e6 + each, 100.0, user=f"u{each % 30}") for each in range(600)] + flood(9_000)
    table = table_of(runs, capacity=1_300, kept=kept)
    for user in ("u0", "u29", "flood"):
        own = [run.end_time for run in runs if run.submission.user == user][-kept:]
        found, row = [], table.window(submission(user=user)).newest
        while row >= 0 and len(found) < kept:
            found.append(table.columns[0][4, row])
            row = table.columns[1][PREVIOUS, row]
        assert found == own[::-1]
    assert len(table) == 1_300


def test_rows_kept_before_the_first_are_at_most_as_many_as_the_capacity():
    runs = [ended(1e6 + each, 1.0, user=f"u{each}") for each in range(5_000)]
    table = table_of(runs, capacity=100, kept=5)
    assert table.columns[0].shape[1] <= 501
    assert table.window(submission(user="u4999")).newest >= 0
    assert table.window(submission(user="u0")).newest == -1
    assert len(table._interned[0]) < 400


def test_links_lead_from_each_run_to_the_one_before_it_after_rows_have_moved():
    random, runs = Random(1), []
    for each in range(9_000):
        user = f"u{random.randrange(40)}" if random.random() < 0.2 else "flood"
        runs.append(ended(1e6 + each - random.randrange(50), float(each % 977), user=user))
    table = JobTable(900, kept=20)
    seen: dict[str, list[tuple[float, int]]] = {}
    for place, run in enumerate(runs):
        table.add(run)
        seen.setdefault(run.submission.user, []).append((run.end_time, place))
    for user, ends in seen.items():
        window = table.window(submission(user=user))
        row, found = window.newest, []
        while row >= 0 and table.columns[1][ORDINAL, row] >= window.ordinal:
            found.append(table.columns[0][RUNTIME, row])
            row = table.columns[1][PREVIOUS, row]
        last = [float(place % 977) for _, place in sorted(ends)][::-1][:20]
        assert found == last, user
