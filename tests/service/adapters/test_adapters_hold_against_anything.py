"""Whatever a record holds, an adapter gives a whole run or a reason: it never breaks."""

import json
import math
from collections import Counter
from datetime import UTC
from pathlib import Path

import pytest
from history_samples import SAMPLES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.adapters import pbs, sacct_text, slurm_json
from service.adapters.history_files import READERS, seen_format
from service.adapters.runs import SkippedError
from service.store import ReportedCompletion

DATA = Path(__file__).parents[2] / "data"
DOCUMENTS = [
    json.loads(line)["document"]
    for line in (DATA / "slurm" / "jobcomp.jsonl").read_text("utf-8").splitlines()
]
JOBS = json.loads((DATA / "slurm" / "sacct_26.05.json").read_text())["jobs"]
ROWS = (DATA / "slurm" / "sacct.txt").read_text("utf-8").splitlines(keepends=True)
EXPORTED = (DATA / "slurm" / "xdmod.txt").read_text("utf-8").splitlines(keepends=True)
RECORDS = (DATA / "pbs" / "accounting.txt").read_text().splitlines()

numbers = (
    st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([65534, 4294967294, 4294967295, 2**64 - 2])
)
words = st.text() | st.sampled_from(
    ["Unknown", "UNLIMITED", "2031-02-03T04:05:06", "9999-12-31T23:59:59"]
)
values = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)


COUNTED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
"""Of tests whose examples are counted together."""


@pytest.fixture
def outcomes():
    """What came out of all examples; where nothing but reasons did, nothing was shown of runs."""
    counted = Counter()
    yield counted
    assert counted[ReportedCompletion] > 0, counted


def assert_whole(outcome, outcomes=None, *, is_relative=False):
    """A run with every number finite and in order, every name fit for a database.

    Times of SWF without a start of the log begin at 0.
    """
    if outcomes is not None:
        outcomes[type(outcome)] += 1
    if isinstance(outcome, SkippedError):
        return
    assert isinstance(outcome, ReportedCompletion)
    run, submission = outcome.completion, outcome.completion.submission
    assert is_relative or submission.submit_time > 0
    assert 0 <= submission.submit_time <= run.start_time <= run.end_time < math.inf
    assert 0 <= run.runtime <= run.end_time - run.start_time
    assert 0 < submission.requested_walltime < math.inf
    assert submission.requested_processors is None or submission.requested_processors >= 1
    assert submission.requested_memory is None or 0 < submission.requested_memory < math.inf
    for name in (
        submission.cluster,
        submission.job_id,
        submission.user,
        submission.group,
        submission.project,
        submission.queue,
        submission.application,
    ):
        assert name is None or (name and "\0" not in name and name.encode() and len(name) <= 255)


def read(adapter, *args):
    try:
        return adapter(*args)
    except SkippedError as skipped:
        return skipped


@COUNTED
@given(st.sampled_from(DOCUMENTS), st.data())
def test_jobcomp_documents_with_strange_values(outcomes, document, data):
    changes = data.draw(st.dictionaries(st.sampled_from(sorted(document)), values, max_size=4))
    assert_whole(
        read(slurm_json.jobcomp_completion, json.dumps(document | changes).encode()), outcomes
    )


@given(st.sampled_from(DOCUMENTS), st.data())
def test_a_document_cut_anywhere_is_no_document(document, data):
    body = json.dumps(document).encode()
    cut = data.draw(st.integers(min_value=0, max_value=len(body) - 1))
    assert isinstance(read(slurm_json.jobcomp_completion, body[:cut]), SkippedError)


@given(st.binary())
def test_jobcomp_bodies_of_any_bytes(body):
    assert isinstance(read(slurm_json.jobcomp_completion, body), SkippedError)


@COUNTED
@given(st.sampled_from(JOBS), st.data())
def test_sacct_json_with_strange_values(outcomes, job, data):
    changes = data.draw(st.dictionaries(st.sampled_from(sorted(job)), values, max_size=4))
    time = data.draw(st.dictionaries(st.sampled_from(sorted(job["time"])), values, max_size=3))
    body = json.dumps({"jobs": [job | {"time": job["time"] | time} | changes]})
    for _, outcome in slurm_json.read_sacct_json(body.encode()):
        assert_whole(outcome, outcomes)


@COUNTED
@given(st.sampled_from(ROWS[1:]), st.data())
def test_sacct_rows_with_strange_cells(outcomes, row, data):
    cells = row.rstrip("\n").split("\x1f")
    at = data.draw(st.integers(min_value=0, max_value=len(cells) - 1))
    cells[at] = str(data.draw(numbers | words))
    for _, outcome in sacct_text.read_sacct([ROWS[0], "\x1f".join(cells)]):
        assert_whole(outcome, outcomes)


@COUNTED
@given(st.sampled_from(EXPORTED), st.data())
def test_exports_for_xdmod_with_strange_cells(outcomes, row, data):
    cells = row.rstrip("\n").split("|")
    at = data.draw(st.integers(min_value=1, max_value=len(cells) - 1))
    cells[at] = str(data.draw(numbers | words)).replace("|", "")
    for _, outcome in sacct_text.read_sacct(["|".join(cells)]):
        assert_whole(outcome, outcomes)


@COUNTED
@given(
    st.sampled_from([ROWS[0], EXPORTED[0]]),
    st.lists(st.sampled_from(ROWS + EXPORTED) | st.text(max_size=200), max_size=6),
)
def test_sacct_files_of_any_lines(outcomes, first, lines):
    for _, outcome in sacct_text.read_sacct([first, *lines]):
        assert_whole(outcome, outcomes)


@COUNTED
@given(st.sampled_from(RECORDS), st.data())
def test_accounting_records_with_strange_values(outcomes, record, data):
    words_of = record.split(" ")
    at = data.draw(st.integers(min_value=0, max_value=len(words_of) - 1))
    key = words_of[at].partition("=")[0]
    words_of[at] = f"{key}={data.draw(numbers | words)}"
    assert_whole(read(pbs.completion_of, " ".join(words_of)), outcomes)


@given(st.text())
def test_accounting_lines_of_any_text(line):
    assert_whole(read(pbs.completion_of, line))


def test_every_reader_has_a_sample_with_runs_whose_format_is_seen(tmp_path):
    assert SAMPLES.keys() == READERS.keys()
    file = tmp_path / "log"
    for name, contents in SAMPLES.items():
        for content in contents:
            file.write_bytes(content)
            history = READERS[name](str(file), None, UTC)
            assert seen_format(content) == name
            assert history.count == len(list(history.reports)) > 0


@pytest.mark.parametrize("name", READERS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(data=st.data())
def test_every_reader_gives_whole_runs_or_reasons_of_a_file_with_changed_bytes(
    name, data, tmp_path
):
    content = data.draw(st.sampled_from(SAMPLES[name]))
    first = data.draw(st.integers(min_value=0, max_value=len(content)))
    last = data.draw(st.integers(min_value=first, max_value=min(len(content), first + 30)))
    written = str(data.draw(numbers | words)).encode("utf-8", "replace") + data.draw(st.binary())
    (tmp_path / "log").write_bytes(content[:first] + written + content[last:])
    try:
        history = READERS[name](str(tmp_path / "log"), None, UTC)
    except SkippedError:
        return
    for report in history.reports:
        assert_whole(report, is_relative=name == "swf")
    assert all(reject.reason for reject in history.rejected)


@pytest.mark.parametrize("record", [r for r in RECORDS if ";E;" in r])
def test_an_accounting_record_cut_before_its_end_time_is_no_run(record):
    for cut in range(record.index(" end=")):
        assert isinstance(read(pbs.completion_of, record[:cut]), SkippedError)
