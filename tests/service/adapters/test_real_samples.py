"""The records that real Slurm 22.05, 24.11 and 26.05 wrote, where they are at hand."""

import json
from datetime import UTC, timedelta, timezone
from pathlib import Path

import pytest

from predictors.jobs import Status
from service.adapters.runs import Reason, SkippedError
from service.adapters.sacct_text import read_sacct
from service.adapters.slurm_json import jobcomp_completion, read_sacct_json

SAMPLES = Path(__file__).parents[4] / "shared" / "samples" / "slurm"
VERSIONS = ["22.05", "24.11", "26.05"]
LOCAL = timezone(timedelta(hours=3))

pytestmark = pytest.mark.skipif(
    not SAMPLES.is_dir(), reason="needs the captured payloads in ../shared/samples/slurm"
)


def documents(version, name="jobcomp_elasticsearch.jsonl"):
    lines = (SAMPLES / version / name).read_text("utf-8").splitlines()
    return [json.loads(line)["body"].encode() for line in lines]


def outcome(body):
    try:
        return jobcomp_completion(body)
    except SkippedError as skipped:
        return skipped


def by_name(outcomes):
    runs = {}
    for found in outcomes:
        if not isinstance(found, SkippedError):
            runs.setdefault(found.completion.submission.application, []).append(found.completion)
    return runs


def rows(version, name="sacct_parsable2.txt", zone=LOCAL):
    with (SAMPLES / version / name).open(encoding="utf-8", newline="\n") as file:
        return [found for _, found in read_sacct(file, zone=zone)]


def reasons(outcomes):
    return sorted(found.reason.name for found in outcomes if isinstance(found, SkippedError))


@pytest.mark.parametrize("version", VERSIONS)
def test_of_twenty_two_documents_twenty_are_runs(version):
    outcomes = [outcome(body) for body in documents(version)]
    assert len(outcomes) == 22
    assert reasons(outcomes) == ["NEVER_RAN", "NO_LIMIT"]


@pytest.mark.parametrize("version", VERSIONS)
def test_documents_tell_what_the_samples_were_made_to_show(version):
    runs = by_name(map(outcome, documents(version)))
    assert 'pipe|name, "comma"' in runs
    assert "ünï_ğ" in runs
    assert [run.status for run in runs["requeued"]] == [Status.PREEMPTED, Status.COMPLETED]
    assert 84 <= runs["timeout"][0].runtime <= 87
    assert runs["timeout"][0].submission.requested_walltime == 60
    assert len({run.submission.job_id for run in runs["sweep"]}) == 4
    assert len({run.submission.job_id for run in runs["het"]}) == 2
    assert runs["wide"][0].submission.requested_processors == 8
    assert runs["extended"][0].submission.requested_walltime == 480


@pytest.mark.parametrize("version", ["22.05", "26.05"])
def test_documents_without_accounting_are_runs_of_the_default_cluster(version):
    bodies = documents(version, "jobcomp_elasticsearch_no_accounting.jsonl")
    clusters = {outcome(body).completion.submission.cluster for body in bodies}
    assert clusters == {"default"}


@pytest.mark.parametrize("version", VERSIONS)
def test_only_the_newest_documents_name_their_prediction(version):
    named = [
        found.prediction_id is not None
        for found in map(outcome, documents(version))
        if not isinstance(found, SkippedError)
    ]
    assert all(named) if version == "26.05" else not any(named)


@pytest.mark.parametrize("version", VERSIONS)
def test_sacct_tells_the_same_runs_as_the_documents(version):
    told = {
        (run.submission.job_id, run.start_time, run.end_time, run.runtime, run.status)
        for runs in by_name(map(outcome, documents(version))).values()
        for run in runs
    }
    printed = {
        (run.submission.job_id, run.start_time, run.end_time, run.runtime, run.status)
        for runs in by_name(rows(version)).values()
        for run in runs
    }
    assert printed == told


@pytest.mark.parametrize("version", VERSIONS)
def test_safe_rows_and_json_tell_the_same_as_local_times(version):
    plain = [found for found in rows(version) if not isinstance(found, SkippedError)]
    safe = rows(version, "sacct_parsable2_us_epoch.txt", UTC)
    assert [found for found in safe if not isinstance(found, SkippedError)] == plain
    body = (SAMPLES / version / "sacct_json.json").read_bytes()
    jobs = [found for _, found in read_sacct_json(body) if not isinstance(found, SkippedError)]
    if version != "22.05":  # its JSON has no command line, so `extended` has its final limit
        assert sorted(jobs, key=repr) == sorted(plain, key=repr)
    assert {job.completion.submission.job_id for job in jobs} == {
        row.completion.submission.job_id for row in plain
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_the_command_line_gives_the_limit_before_it_was_extended(version):
    assert by_name(rows(version))["extended"][0].submission.requested_walltime == 60


@pytest.mark.parametrize("version", VERSIONS)
def test_steps_are_skipped(version):
    outcomes = rows(version, "sacct_parsable2_steps.txt")
    assert set(reasons(outcomes)) == {"STEP", "NO_LIMIT"}
    assert sum(map(len, by_name(outcomes).values())) == 20


def test_odd_rows_are_runs_or_say_why_not():
    outcomes = rows("22.05", "sacct_odd_rows.txt", UTC)
    assert reasons(outcomes) == ["NO_LIMIT", "UNKNOWN_END", "UNKNOWN_END"]
    runs = by_name(outcomes)
    assert runs["held"][0].submission.requested_walltime == 1800
    assert "pipe|name, comma" in runs
    assert [run.status for run in runs["requeued"]] == [Status.PREEMPTED, Status.COMPLETED]


def test_reasons_are_sentences():
    assert all(reason.value and reason.value[0].islower() for reason in Reason)
