"""The studies of the papers, on logs of a few hundred jobs."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from workloads import stretched_logs

from simulator.scheduling.semantics import Semantics
from simulator.studies import STUDIES
from simulator.studies.simulations import Simulation
from simulator.studies.study import StudyError, Takes, names_of, play_all, require_machines
from simulator.studies.xu.published import jobs_of
from simulator.traces.cleaning import NoJobError
from simulator.traces.swf import MalformedLineError, Reject
from terminal.files import text_writer

ON_LOGS = {name: study for name, study in STUDIES.items() if study.takes is Takes.DIRECTORY}


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Generated logs under the names of the real ones; six months, so that there are months."""
    names = {log for study in ON_LOGS.values() for log in study.logs}
    return stretched_logs(
        tmp_path_factory.mktemp("logs"), names, jobs=300, times=30,
        # The beginning of 2004; that of HPC2N is played in 2004 and in 2005.
        begins=lambda name: 1096588800 if name.startswith("HPC2N") else 1072915200,
    )  # fmt: skip


@pytest.mark.parametrize("name", ON_LOGS)
def test_a_study_plays_its_runs_and_reports_every_one(name, logs):
    study = STUDIES[name]
    runs = study.runs([logs], 250)
    with ThreadPoolExecutor(1) as executor:
        played = list(play_all(study, runs, executor))
    report = study.report(played)
    assert len(played) == len(runs)
    simulations = [getattr(part, "run", part) for part, _ in played]
    assert all(run.group.split(",")[0] in report for run in simulations)
    assert "paper" in report


def test_a_run_takes_the_year_the_size_and_the_days_it_names(logs):
    log = str(logs / "SDSC-DS-2004-2.1-cln.swf.gz")
    whole = Simulation(trace=log, semantics=Semantics(), estimates="exact")
    assert len(replace(whole, year=2004).workload()) == len(whole.workload())
    with pytest.raises(NoJobError, match="no job that can be simulated"):
        replace(whole, year=2003).workload()
    wide = replace(whole, least_processors=4).workload()
    assert 0 < len(wide) < len(whole.workload())
    assert wide.processors.min() >= 4
    days = replace(whole, days=20, load=0.5).workload()
    assert 0 < len(days) < len(whole.workload())
    assert days.submit.max() - days.submit.min() <= 20 * 86400


def test_the_first_jobs_of_a_year_are_counted_within_it(logs):
    log = logs / "HPC2N-2002-2.2-cln.swf.gz"
    semantics, first = Semantics(), []
    for year in (2004, 2005):
        run = Simulation(trace=str(log), semantics=semantics, estimates="exact", year=year, limit=5)
        assert len(run.workload()) == 5
        first.append(run.jobs().submit[0])
        [part] = STUDIES["xu"].runs([log], 5, year=year)
        times = [each.submission.submit_time for each in jobs_of(part)]
        assert len(times) == 5
        assert {datetime.fromtimestamp(time, UTC).year for time in times} == {year}
    assert first[0] < first[1]


@pytest.mark.parametrize(
    "error",
    [
        MalformedLineError(Reject(7, "3 fields instead of 18")),
        NoJobError("log.swf", "played", {"never-ran": 3}),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_is_wrong_with_a_log_is_said_by_another_process_too(error):
    told = pickle.loads(pickle.dumps(error))
    assert (type(told), str(told)) == (type(error), str(error))


@pytest.mark.parametrize("name", ["klusacek", "rocchetti", "tang", "xu-schedules"])
def test_a_paper_s_log_without_jobs_is_refused(name, tmp_path):
    study = STUDIES[name]
    for log in study.logs:
        with text_writer(tmp_path / log) as file:
            file.write("; MaxProcs: 4\n")
    for part in study.runs([tmp_path], None):
        with pytest.raises(NoJobError, match=r"swf\.gz has no job"):
            study.play(part)


def test_the_first_log_of_an_unknown_machine_is_named(tmp_path):
    """A log without jobs is left to the study, which says that it has none."""
    job = "1 0 0 60 2 -1 -1 2 600 -1 1 7 1 1 1 1 -1 -1\n"
    texts = {"known": f"; MaxNodes: 4\n{job}", "empty": "; Note: none\n", "one": job, "two": job}
    logs = [tmp_path / name for name in texts]
    for log in logs:
        log.write_text(texts[log.name])
    require_machines(logs[:2])
    with pytest.raises(StudyError, match=r"^one does not tell the size"):
        require_machines(logs)


def test_logs_are_told_apart_by_their_files_or_by_their_paths():
    assert list(names_of([Path("a/one.swf.gz"), Path("a/two.swf")]).values()) == ["one", "two"]
    same = [Path("a/log.swf"), Path("b/log.swf"), Path("c.2024.swf")]
    assert list(names_of(same).values()) == ["a/log.swf", "b/log.swf", "c"]


@pytest.mark.parametrize("method", ["least-cost", "auto:every=2000"])
def test_a_log_of_few_jobs_is_calibrated_without_numbers_that_are_none(method, tmp_path):
    log = tmp_path / "few.swf"
    log.write_text("".join(f"{n} {n} 0 9 1 -1 -1 1 9 -1 1 1 1 1 1 1 -1 -1\n" for n in range(1, 5)))
    study = STUDIES["calibration"]
    played = [(part, study.play(part)) for part in study.runs([log], None, method=method)]
    assert "nan" not in study.report(played)
    assert all(len(level.tenths) == 4 for _, found in played for level in found.levels)


@pytest.mark.parametrize("name", ["calibration", "wait-prediction"])
def test_a_log_without_jobs_is_refused_and_no_goal_reached_on_it(name, tmp_path):
    study = STUDIES[name]
    (tmp_path / "empty.swf").write_text("; MaxProcs: 4\n")
    given = {"method": "least-cost"} if name == "calibration" else {}
    [part, *_] = study.runs([tmp_path / "empty.swf"], None, **given)
    with pytest.raises(NoJobError, match=r"empty\.swf has no job"):
        study.play(part)
