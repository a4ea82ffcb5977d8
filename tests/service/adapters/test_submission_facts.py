"""Facts beyond names and sizes in records of Slurm and PBS, and in tables of any form."""

import json
from datetime import UTC

import pytest

from predictors.facts import Facts, script_hash_of
from service.adapters.csv_table import read_table
from service.adapters.pbs import read_accounting
from service.adapters.runs import SkippedError
from service.adapters.sacct_text import read_sacct
from service.adapters.slurm_json import jobcomp_completion, sacct_completion
from service.adapters.table_columns import ColumnsError

SACCT = (
    "JobIDRaw|User|Submit|Start|End|Timelimit|State|ReqTRES|AllocTRES|QOS|WorkDir|SubmitLine|"
    "Constraints|ReqNodes\n"
    "7|ada|1700000000|1700000010|1700000070|60|COMPLETED|cpu=4,node=2|"
    "cpu=4,node=2,gres/gpu=8,gres/gpu:a100=8|high|/home/ada/run7|sbatch case.sh 7|ivy|2\n"
)


def test_a_row_of_sacct_has_facts():
    ((_, report),) = read_sacct(SACCT.splitlines())
    assert report.completion.submission.facts == Facts(
        work_dir="/home/ada/run7",
        submit_line="sbatch case.sh 7",
        qos="high",
        nodes=2,
        gpus=8,
        gpu_type="a100",
        constraint="ivy",
    )


def test_a_document_of_jobcomp_has_the_hash_of_its_script_and_its_host():
    document = {
        "jobid": 7, "state": "COMPLETED", "elapsed": 60, "time_limit": 600, "total_nodes": 1,
        "@submit": "2023-11-01T00:00:00", "@start": "2023-11-01T00:01:00",
        "@end": "2023-11-01T00:02:00", "tres_req": "cpu=4,node=2,gres/gpu:v100=3", "qos": "high",
        "work_dir": "/home/ada/run\u00077", "script": "#!/bin/sh\nrun 7\n", "alloc_node": "login1",
    }  # fmt: skip
    facts = jobcomp_completion(json.dumps(document).encode()).completion.submission.facts
    assert facts == Facts(
        work_dir="/home/ada/run?7",
        script_hash=script_hash_of("run"),
        qos="high",
        nodes=2,
        gpus=3,
        gpu_type="v100",
        submit_host="login1",
    )


def test_a_job_of_sacct_json_has_facts():
    job = {
        "job_id": 7, "state": {"current": ["COMPLETED"]}, "allocation_nodes": "2",
        "time": {"submission": 1700000000, "start": 1700000010, "end": 1700000070, "elapsed": 60,
                 "limit": {"set": True, "infinite": False, "number": 10}},
        "tres": {"requested": [{"type": "node", "count": 2},
                               {"type": "gres", "name": "gpu", "count": 4}]},
        "working_directory": "/home/ada", "qos": "high", "constraints": "ivy",
        "submit_line": "sbatch case.sh",
    }  # fmt: skip
    facts = sacct_completion(json.dumps(job).encode()).completion.submission.facts
    assert (facts.nodes, facts.gpus, facts.gpu_type) == (2, 4, None)
    assert (facts.work_dir, facts.qos, facts.constraint) == ("/home/ada", "high", "ivy")


def test_a_record_of_pbs_has_its_chunks_and_gpus():
    line = (
        "11/01/2023 10:00:00;E;71.server;user=ada owner=ada@login1 queue=short ctime=1698830000 "
        "start=1698830060 end=1698830660 Resource_List.walltime=01:00:00 Exit_status=0 "
        "Resource_List.nodect=3 Resource_List.select=2:ncpus=8:ngpus=2+1:ncpus=1"
    )
    ((_, report),) = read_accounting([line])
    assert report.completion.submission.facts == Facts(
        nodes=3, gpus=4, constraint="2:ncpus=8:ngpus=2+1:ncpus=1", submit_host="login1"
    )


def test_a_record_without_facts_has_none():
    line = (
        "11/01/2023 10:00:00;E;71.server;user=ada ctime=1698830000 start=1698830060 end=1698830660"
    )
    ((_, report),) = read_accounting([f"{line} Resource_List.walltime=01:00:00"])
    assert report.completion.submission.facts is None


ROW = (
    "id;limit;sub;beg;fin;dir;gib;rule\n1;600;1700000000;1700000000;1700000060;/home/ada;-2.5;map\n"
)
COLUMNS = (
    "job_id=id,requested_walltime=limit:s,submit_time=sub:s,start_time=beg:s,end_time=fin:s,"
    "workdir=dir"
)


def test_columns_of_a_table_become_facts_and_features():
    named = f"{COLUMNS},feature_input_gib=gib,feature_rule=rule"
    ((_, report),) = read_table(ROW.splitlines(), zone=UTC, columns=[named])
    assert report.completion.submission.facts == Facts(
        work_dir="/home/ada", features={"input_gib": -2.5, "rule": "map"}
    )


def test_more_features_than_there_may_be_are_refused_by_name():
    named = ",".join([COLUMNS, *(f"feature_{n}=gib" for n in range(9))])
    with pytest.raises(ColumnsError, match="at most 8 fields feature_NAME"):
        list(read_table(ROW.splitlines(), zone=UTC, columns=[named]))


@pytest.mark.parametrize(
    "cell", ["[]", "{", '{"a": 1e16}', '{"a": []}', json.dumps(dict.fromkeys("abcdefghi", 1))]
)
def test_features_that_are_none_are_refused_by_line_and_field(cell):
    quoted = '"' + cell.replace('"', '""') + '"'
    lines = ["job_id,requested_walltime,submit_time,start_time,end_time,features"]
    ((line, found),) = read_table(
        [*lines, f"1,600,1700000000,1700000000,1700000060,{quoted}"], zone=UTC
    )
    assert isinstance(found, SkippedError)
    assert "features" in str(found)
    assert line == 2
