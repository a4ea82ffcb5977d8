"""The cluster's last runs, a bounded number of each user, by definition and whatever came late."""

from random import Random

import numpy as np
import pytest
import reference_distributions as reference
from runs import ended, submission

from predictors.compiled import of_same_types
from predictors.memory import last_runs
from predictors.memory.columns import END, NONE_KEPT, RUNTIME, UNIT
from predictors.memory.job_table import JobTable

find, unit_of = of_same_types(last_runs.last_runs), of_same_types(last_runs.unit_of)

LATER = 1e7


def table_of(runs, **options):
    table = JobTable(**options)
    for run in runs:
        table.add(run)
    return table


def window_of(table, *, kept=True):
    window = table.window(submission(LATER, user="u0"))
    return window if kept else window._replace(ordinal=NONE_KEPT)


def found(table, most, *, kept=True):
    """Runtimes of the last runs."""
    window = window_of(table, kept=kept)
    rows = find(table.columns, window, (window.first, window.stop), most)
    return table.columns[0][RUNTIME, rows].tolist()


def unit(table):
    window = window_of(table)
    return unit_of(table.columns, window, (window.first, window.stop))


def by_definition(runs, most):
    ordered = sorted(runs, key=lambda run: run.end_time)[::-1]
    listed = [reference.Run.of(run.submission, run.end_time, run.runtime) for run in ordered]
    return [run.r for run in reference.last_runs(listed, *most)]


def made(random, *, count=3_000, flooding=0.7):
    """Runs of 40 users and of one more, whose runs often follow each other; many come late."""
    runs, user = [], "u0"
    for each in range(count):
        if random.random() < 0.3:
            user = "flood" if random.random() < flooding else f"u{random.randrange(40)}"
        end = 1e6 + 2 * each - random.choice((0, 0, 1, 301, 4_001))
        runs.append(ended(end, float(each), user=user if each % 50 else None))
    return runs


@pytest.mark.parametrize("most", [(1_000, 20), (64, 4), (16, 4), (16, 1), (3, 3)])
@pytest.mark.parametrize("seed", range(5))
def test_they_are_those_of_the_definition(most, seed):
    runs = made(Random(seed))
    expected = by_definition(runs, most)
    assert found(table_of(runs, capacity=5_000), most) == expected
    assert found(table_of(runs, capacity=5_000, kept=40), most) == expected


def test_runs_without_a_user_are_bounded_as_if_one_user_s():
    runs = [ended(1e6 + each, float(each), user=None) for each in range(99)]
    assert found(table_of(runs, capacity=100), (50, 7)) == [98, 97, 96, 95, 94, 93, 92]


def test_the_search_ends_where_runs_of_few_users_alternate_for_long():
    runs = [ended(1e6, 1.0, user="u0")]
    runs += [ended(2e6 + each, 2.0, user=f"v{each % 2}") for each in range(last_runs.MOST_STEPS)]
    table = table_of(runs, capacity=10_000)
    assert found(table, (100, 5)) == [2.0] * 10 == by_definition(runs, (100, 5))


@pytest.mark.parametrize("length", [1, 20, 21, 999, 20_000, 50_000])
def test_an_array_of_any_length_changes_as_much_as_its_bounded_number_of_runs(length):
    """Also where all that the table has in order are its runs, and others' are kept apart."""
    usual = [ended(1e6 + each, 100.0, user=f"u{each % 60}") for each in range(3_000)]
    array = [ended(2e6 + each, 1.0, user="flood") for each in range(length)]
    table = table_of([*usual, *array], capacity=22_000, kept=192)
    runs = min(length, 20)
    assert unit(table) == pytest.approx((1_000 - runs) / 1_000 * 100 + runs / 1_000)
    with_bound = found(table, last_runs.IN_UNIT, kept=False)
    assert len(with_bound) == (1_000 if length < 22_000 else 20), "of those in order"


def test_kept_runs_count_the_same_whether_older_ones_are_dropped_or_not():
    """A service that has just started has read each user's last runs only."""
    random = Random(7)
    runs = sorted(made(random, count=9_000, flooding=0.9), key=lambda run: run.end_time)
    table, seen, read = table_of(runs, capacity=700, kept=20), {}, []
    for run in runs[::-1]:
        user = run.submission.user
        seen[user] = seen.get(user, 0) + 1
        if len(read) < 700 or (user and seen[user] <= 20):
            read.append(run)
    started = table_of(read[::-1], capacity=700, kept=20)
    assert found(table, (500, 20)) == found(started, (500, 20))
    assert unit(table) == unit(started)


@pytest.mark.parametrize("seed", range(5))
def test_a_noted_unit_answers_where_it_rests_on_rows_that_count(seed):
    """Jobs that are scored search fewer rows than jobs that are asked about, and no kept ones."""
    random, most = Random(seed), last_runs.IN_UNIT
    table = table_of(made(random, count=9_000, flooding=0.9), capacity=6_000, kept=20)
    windows = [window_of(table), window_of(table, kept=False)]
    numbers = table.columns[0]
    noted = 0
    for _ in range(300):
        window, first = random.choice(windows), random.randrange(table.first, table.first + 3_000)
        rows = first, random.choice((random.randrange(first, window.stop), window.stop - 5))
        noted += not np.isnan(numbers[UNIT, rows[1] - 1])
        runtimes = numbers[RUNTIME, find(table.columns, window, rows, most)]
        expected = np.floor(runtimes).mean() if len(runtimes) else 0.0
        assert unit_of(table.columns, window, rows) == pytest.approx(expected, rel=1e-12)
    assert noted > 50


def test_the_unit_is_noted_until_a_run_changes_it():
    runs = [ended(1e6 + 10 * each, float(each), user=f"u{each % 9}") for each in range(90)]
    table = table_of(runs, capacity=100, kept=30)
    before = unit(table)
    last = table.first + len(table) - 1
    assert table.columns[0][UNIT, last] == before == np.mean(range(90))
    table.add(ended(1e6 + 5, 9_000.0, user="u1"))
    assert np.isnan(table.columns[0][UNIT, table.first + 1 :]).all()
    assert unit(table) == pytest.approx((before * 90 + 9_000) / 91)
    window = window_of(table, kept=False)
    stop = window.first + int(np.sum(table.columns[0][END, : window.stop] <= 1e6 + 20))
    assert unit_of(table.columns, window, (window.first, stop)) == np.mean([0, 9_000, 1, 2])
    assert unit_of(table.columns, window, (window.first, window.first)) == 0.0
