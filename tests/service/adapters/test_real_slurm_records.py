"""The records that real Slurm 22.05, 24.11 and 26.05 wrote: each trap that their README lists."""

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import msgspec
import pytest

from predictors.jobs import Status
from service.adapters.runs import Reason, SkippedError
from service.adapters.sacct_text import read_sacct
from service.adapters.slurm_json import jobcomp_completion, read_sacct_json

SAMPLES = Path(__file__).parents[4] / "shared" / "samples" / "slurm"
VERSIONS = ["22.05", "24.11", "26.05"]
LOCAL = timezone(timedelta(hours=3))

pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="needs ../shared/samples/slurm")


@pytest.fixture(params=VERSIONS)
def version(request):
    return request.param


def documents(version, name="jobcomp_elasticsearch.jsonl"):
    """The documents as they were sent, in their order."""
    lines = (SAMPLES / version / name).read_text("utf-8").splitlines()
    return [json.loads(line)["body"] for line in lines]


def told_by(body):
    try:
        return jobcomp_completion(body.encode())
    except SkippedError as skipped:
        return skipped


def named(version, name):
    """Documents of this job name, and what was made of each."""
    bodies = [body for body in documents(version) if json.loads(body)["job_name"] == name]
    assert bodies
    return [(json.loads(body), told_by(body)) for body in bodies]


def rows(version, name="sacct_parsable2.txt", zone=LOCAL):
    with (SAMPLES / version / name).open(encoding="utf-8", newline="\n") as file:
        return [found for _, found in read_sacct(file, zone=zone)]


def jobs_of(version):
    """The jobs of the version's sacct --json."""
    body = (SAMPLES / version / "sacct_json.json").read_bytes()
    return [found for _, found in read_sacct_json(body)]


def reports(outcomes):
    return [found for found in outcomes if not isinstance(found, SkippedError)]


def runs(outcomes):
    return [found.completion for found in reports(outcomes)]


def reasons(outcomes):
    return sorted(found.reason.name for found in outcomes if isinstance(found, SkippedError))


def row_of(version, name):
    return [run for run in runs(rows(version)) if run.submission.application == name]


SAFE = "sacct_parsable2_us_epoch.txt"


def test_documents_rows_and_json_tell_the_same_runs(version):
    outcomes = [told_by(body) for body in documents(version)]
    assert len(outcomes) == 22
    assert reasons(outcomes) == ["NEVER_RAN", "NO_LIMIT"]

    def facts(outcomes):
        return {
            (run.submission.job_id, run.start_time, run.end_time, run.runtime, run.status)
            for run in runs(outcomes)
        }

    assert facts(outcomes) == facts(rows(version, SAFE, UTC)) == facts(jobs_of(version))


@pytest.mark.parametrize("version", ["24.11", "26.05"])
def test_json_tells_all_that_safe_rows_do(version):
    # JSON of 22.05 has no command line, so `extended` has its final limit there.
    safe = reports(rows(version, SAFE, UTC))
    assert sorted(reports(jobs_of(version)), key=repr) == sorted(safe, key=repr)


def test_rows_with_bars_and_local_times_tell_the_same_but_for_values_with_bars(version):
    plain, safe = rows(version), rows(version, SAFE, UTC)
    left_out = [str(each) == Reason.AMBIGUOUS.value for each in plain]
    assert any(left_out)
    others = [each for each, is_left_out in zip(safe, left_out, strict=True) if not is_left_out]
    assert reports(plain) == reports(others)


@pytest.mark.parametrize("version", ["22.05", "26.05"])
def test_documents_without_accounting_are_runs_of_the_default_cluster(version):
    bodies = documents(version, "jobcomp_elasticsearch_no_accounting.jsonl")
    assert {run.submission.cluster for run in runs(map(told_by, bodies))} == {"default"}


def test_steps_are_skipped(version):
    outcomes = rows(version, "sacct_parsable2_steps.txt")
    assert set(reasons(outcomes)) == {"STEP", "NO_LIMIT", "AMBIGUOUS"}
    assert len(runs(outcomes)) == 19


def test_odd_rows_are_runs_or_say_why_not():
    outcomes = rows("22.05", "sacct_odd_rows.txt", UTC)
    assert reasons(outcomes) == ["AMBIGUOUS", "NO_LIMIT", "UNKNOWN_END", "UNKNOWN_END"]
    by_name = {run.submission.application: run for run in runs(outcomes)}
    assert by_name["held"].submission.requested_walltime == 1800


def test_documents_are_in_utc_and_sacct_in_local_time_and_neither_says_so(version):
    ((document, run),) = named(version, "train_model")
    (row,) = row_of(version, "train_model")
    assert run.completion.start_time == row.start_time
    written = datetime.fromisoformat(document["@start"])
    assert written.tzinfo is None
    assert run.completion.start_time == written.replace(tzinfo=UTC).timestamp()


def test_limits_are_seconds_or_minutes_or_a_word_or_absent(version):
    ((document, run),) = named(version, "train_model")
    assert document["time_limit"] == run.completion.submission.requested_walltime == 300
    assert row_of(version, "train_model")[0].submission.requested_walltime == 300
    ((document, reason),) = named(version, "unlimited")
    assert "time_limit" not in document
    assert reason.reason is Reason.NO_LIMIT
    assert row_of(version, "unlimited") == []


def test_the_recorded_limit_is_the_last_one_and_the_command_line_has_the_first(version):
    ((_, run),) = named(version, "extended")
    assert run.completion.submission.requested_walltime == 480
    assert row_of(version, "extended")[0].submission.requested_walltime == 60


def test_a_requeued_job_comes_twice_under_one_id_first_as_pending(version):
    (first, cut_short), (second, run) = named(version, "requeued")
    assert first["state"] == "PENDING"
    assert first["jobid"] == second["jobid"]
    assert cut_short.completion.status is Status.PREEMPTED
    assert run.completion.status is Status.COMPLETED
    assert cut_short.completion.runtime > 0
    assert cut_short.completion.start_time < run.completion.start_time
    assert [row.status for row in row_of(version, "requeued")] == [
        Status.PREEMPTED,
        Status.COMPLETED,
    ]


def test_a_job_cancelled_while_it_waited_never_ran(version):
    ((document, reason),) = named(version, "cancel_pending")
    assert document["total_nodes"] == 0
    assert reason.reason is Reason.NEVER_RAN
    assert row_of(version, "cancel_pending") == []


def test_a_timeout_ran_longer_than_its_limit(version):
    ((_, run),) = named(version, "timeout")
    assert run.completion.status is Status.TIMEOUT
    assert run.completion.runtime > run.completion.submission.requested_walltime == 60
    assert run.completion.usage == 1.0


def test_array_tasks_have_ids_of_their_own_and_the_last_one_that_of_the_array(version):
    tasks = named(version, "sweep")
    ids = {run.completion.submission.job_id for _, run in tasks}
    assert len(ids) == len(tasks) == 4
    assert str(tasks[0][0]["array_job_id"]) in ids


def test_components_of_a_het_job_are_jobs_and_ordinary_jobs_have_het_job_id_0(version):
    components = named(version, "het")
    assert len({run.completion.submission.job_id for _, run in components}) == 2
    assert all(document["het_job_id"] for document, _ in components)
    ((ordinary, _),) = named(version, "train_model")
    assert ordinary["het_job_id"] == 0


def same_job(version, report):
    """The run of the same job in sacct's rows."""
    job_id = report.completion.submission.job_id
    safe = runs(rows(version, SAFE, UTC))
    (found,) = [run for run in safe if run.submission.job_id == job_id]
    return found


def test_names_keep_their_separators_where_the_record_kept_them(version):
    name = 'pipe|name, "comma"'
    ((_, run),) = named(version, name)
    assert run.completion.submission.application == name
    row = same_job(version, run)
    assert row.submission.application == "pipe|name, `comma`", "sacct writes a backtick"
    assert (row.start_time, row.runtime) == (run.completion.start_time, run.completion.runtime)


def test_letters_that_the_database_lost_are_lost_in_sacct_only(version):
    ((_, run),) = named(version, "ünï_ğ")
    assert same_job(version, run).submission.application == (
        "ünï_ğ" if version == "24.11" else "ünï_?"
    )


def test_unset_numbers_are_sentinels_and_unset_text_is_empty_or_null(version):
    for run in runs(map(told_by, documents(version))):
        written = msgspec.json.encode(run).decode()
        assert not [n for n in (65534, 4294967294, 2**64 - 2) if f":{n}" in written]
        texts = msgspec.structs.asdict(run.submission).values()
        assert not {"", "null", "None"} & {text for text in texts if isinstance(text, str)}


def test_the_job_script_is_in_no_run(version):
    scripts = 0
    for body in documents(version):
        script, told = json.loads(body).get("script"), told_by(body)
        scripts += bool(script)
        if script and not isinstance(told, SkippedError):
            assert script not in repr(told)
            assert "sleep" not in repr(told)
    assert bool(scripts) is (version != "26.05")


def test_the_prediction_is_in_documents_from_26_05_on_and_in_sacct_always(version):
    ((_, run),) = named(version, "train_model")
    assert (run.prediction_id is not None) is (version == "26.05")
    assert all(row.prediction_id for row in reports(rows(version)))
