"""The table of recent jobs in machine code holds what the table of structs holds."""

import numpy as np
import pytest
from runs import a_run

from predictors.memory.columns import ATTRIBUTES, END, PREVIOUS, RUNTIME, SUBMIT, USER
from predictors.memory.job_table import JobTable
from predictors.memory.table_columns import keep, table_columns


@pytest.mark.parametrize("kept", [1, 5, 40, 1000])
def test_rows_are_the_same_while_jobs_come_late_and_are_forgotten(kept):
    random = np.random.default_rng(kept)
    runs = [
        a_run(str(job), user=f"u{random.integers(4)}", start=float(start), runtime=job + 1.0)
        for job, start in enumerate(np.arange(300) * 10 + random.integers(0, 200, 300))
    ]
    numbers = np.full((6, len(runs)), np.nan, order="F")
    numbers[RUNTIME] = [run.runtime for run in runs]
    numbers[1] = [run.submission.requested_walltime for run in runs]
    numbers[SUBMIT] = [run.submission.submit_time for run in runs]
    ids = np.full((ATTRIBUTES, len(runs)), -1, np.int32, order="F")
    ids[USER] = [int(run.submission.user[1:]) for run in runs]
    starts = np.array([int(run.start_time) for run in runs])
    table, log = JobTable(kept), ((numbers, ids), (np.arange(len(runs)), starts, 0))
    by_column = table_columns(log[0], kept)
    for place, run in enumerate(runs):
        table.add(run)
        keep(by_column, kept, log, place)
        (found, names, _), newest, (first, stop) = by_column
        expected, expected_names, _ = table.columns
        rows = slice(table.first, table.first + len(table))
        for row in (RUNTIME, END, SUBMIT):
            assert (found[row, first:stop] == expected[row, rows]).all()
        links = names[PREVIOUS, first:stop] - first
        expected_links = expected_names[PREVIOUS, rows] - table.first
        assert (np.maximum(links, -1) == np.maximum(expected_links, -1)).all()
        last = table.window(run.submission)[3] - table.first
        assert max(newest[ids[USER, place]] - first, -1) == max(last, -1)
