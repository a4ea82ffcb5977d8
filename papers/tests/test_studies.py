"""The studies of the papers, on logs of a few hundred jobs."""

import pickle
from dataclasses import asdict, replace
from datetime import UTC, datetime

import pytest
from workloads import stretched_logs

from papers.simulations import Simulation
from papers.studies import STUDIES
from papers.study import Inputs, LogPart, StudyError, Takes
from papers.xu.retuning import PUBLISHED, TuningOptions, jobs_of
from simulator.scheduling.semantics import Semantics
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


def test_records_are_flat_and_can_be_sent_to_another_process(logs):
    inputs = Inputs(paths=[logs], limit=250, processes=1)
    for table in STUDIES["xu-schedules"].exhibits["table 5"].tables():
        records = table(inputs)
        assert pickle.loads(pickle.dumps(records)) == records
        assert len(records) == 3 * 2 * (6 + 4)  # logs, policies, estimates of both blocks
        for value in asdict(records[0]).values():
            assert isinstance(value, str | int | float | bool)


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
        part = LogPart(str(log), 5, TuningOptions("HPC2N", year, PUBLISHED))
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


@pytest.mark.parametrize(
    ("name", "exhibit"),
    [
        (name, exhibit)
        for name, study in ON_LOGS.items()
        for exhibit in study.exhibits
        if (name, exhibit) != ("rocchetti", "figure 1")  # of a formula
    ],
)
def test_a_paper_s_log_without_jobs_is_refused(name, exhibit, tmp_path):
    study = STUDIES[name]
    for log in study.logs:
        with text_writer(tmp_path / log) as file:
            file.write("; MaxProcs: 4\n")
    inputs = Inputs(paths=[tmp_path], limit=None, processes=1)
    with pytest.raises((NoJobError, StudyError), match=r"swf\.gz has no job|not there|not in"):
        study.exhibits[exhibit].make(exhibit, inputs)
