"""Which queues have processors of their own."""

import json

import pytest

from simulator.traces.partitions import (
    PartitionsError,
    host_names,
    partitions_of_log,
    read_partitions,
)
from simulator.traces.swf import read_swf


def partitions_of(tmp_path, content):
    file = tmp_path / "partitions"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return {each.name: each.processors for each in read_partitions(file)}


def row(partition, nodes, cpus):
    return {
        "partition": {"name": partition},
        "nodes": {"nodes": nodes, "total": len(nodes)},
        "cpus": {"maximum": cpus, "total": 0},
    }


def test_lines_name_a_queue_and_its_processors(tmp_path):
    assert partitions_of(tmp_path, "# mine\nbatch 4096\ngpu  512\n") == {"batch": 4096, "gpu": 512}


def test_a_node_that_two_partitions_share_counts_once(tmp_path):
    rows = [row("batch", ["n[1-4]"], 16), row("debug", ["n4"], 16), row("gpu", ["g1", "g2"], 8)]
    assert partitions_of(tmp_path, {"sinfo": rows}) == {"batch + debug": 64, "gpu": 16}


def test_a_node_joins_queues_that_were_apart(tmp_path):
    nodes = [
        {"name": "a", "cpus": 4, "partitions": ["one"]},
        {"name": "b", "cpus": 4, "partitions": ["two"]},
        {"name": "c", "cpus": 4, "partitions": ["one", "two"]},
    ]
    assert partitions_of(tmp_path, {"nodes": nodes}) == {"one + two": 12}


def test_nodes_of_pbs_without_a_queue_serve_all_others(tmp_path):
    nodes = {
        "g1": {"resources_available": {"ncpus": 8}, "queue": "gpu"},
        "g2": {"resources_available": {"ncpus": 8, "Qlist": "gpu,ml"}},
        "n1": {"resources_available": {"ncpus": 32}},
    }
    assert partitions_of(tmp_path, {"nodes": nodes}) == {"(other queues)": 32, "gpu + ml": 16}


def test_lists_of_nodes_are_read_as_slurm_writes_them():
    assert list(host_names("n[08-10,2],login")) == ["n08", "n09", "n10", "n2", "login"]
    assert list(host_names("r[1-2]c[0-1]")) == ["r1c0", "r1c1", "r2c0", "r2c1"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("batch many\n", "line 1 is not a queue and its processors"),
        ("# nothing\n", "names no partition with processors"),
        ('{"jobs": []}', "neither sinfo nor nodes"),
        ('{"sinfo": [{"node": 1}]}', "is not what sinfo --json or pbsnodes -F json prints"),
        ('{"sinfo": ', "Expecting value"),
        ('{"nodes": [{"name": "n[0-9]", "cpus": "x", "partitions": []}]}', "invalid literal"),
    ],
)
def test_what_is_no_description_of_partitions_is_refused(tmp_path, content, complaint):
    with pytest.raises(PartitionsError, match=complaint):
        partitions_of(tmp_path, content)


def test_an_endless_range_of_nodes_is_refused(tmp_path):
    with pytest.raises(PartitionsError, match="too long"):
        partitions_of(tmp_path, {"sinfo": [row("batch", ["n[1-99999999999]"], 1)]})


def test_rows_of_sinfo_with_nodes_of_several_sizes_count_their_sum(tmp_path):
    mixed = {**row("batch", ["n[1-3]"], 32), "cpus": {"minimum": 8, "maximum": 32, "total": 56}}
    assert partitions_of(tmp_path, {"sinfo": [mixed, row("debug", ["d1"], 8)]}) == {
        "batch": 56,
        "debug": 8,
    }


def log_of(tmp_path, *jobs, processors=8):
    """A log of jobs, each with submission, wait, run time, processors and queue."""
    lines = [
        f"{number} {submit} {wait} {run} {size} -1 -1 {size} 100 -1 1 1 1 1 {queue} -1 -1 -1"
        for number, (submit, wait, run, size, queue) in enumerate(jobs, 1)
    ]
    header = f"; UnixStartTime: 0\n; MaxProcs: {processors}\n"
    (tmp_path / "log.swf").write_text(header + "\n".join(lines) + "\n")
    return read_swf(str(tmp_path / "log.swf"))


def test_a_queue_of_the_log_has_what_its_jobs_held_at_once(tmp_path):
    """In queue 1 jobs hold 2, then 2 + 3, then, as the first ends, 3 + 1; in queue 2 always 3."""
    log = log_of(tmp_path, (0, 0, 10, 2, 1), (0, 5, 20, 3, 1), (2, 8, 30, 1, 1), (0, 0, 50, 3, 2))
    found = partitions_of_log(log, {1: "batch"})
    assert {each.name: each.processors for each in found} == {"batch": 5, "2": 3}


@pytest.mark.parametrize(
    ("jobs", "complaint"),
    [
        ([(0, 0, 10, 6, 1), (10, 1, 10, 6, 2)], "12 processors in all, and the machine has 8"),
        ([(0, 0, 10, 6, 1), (10, 1, 10, 6, 1)], "in one queue"),
        ([(0, -1, 10, 2, 1), (10, -1, 10, 2, 2)], "does not say when jobs started"),
    ],
)
def test_queues_of_a_log_that_are_no_machines_are_refused(tmp_path, jobs, complaint):
    with pytest.raises(PartitionsError, match=complaint):
        partitions_of_log(log_of(tmp_path, *jobs), {})


def test_a_warning_before_json_is_passed_over(tmp_path):
    file = tmp_path / "nodes.json"
    nodes = {"nodes": [{"name": "n1", "cpus": 8, "partitions": ["batch"]}]}
    file.write_text(f"scontrol: warning: x\n{json.dumps(nodes, indent=1)}")
    assert [each.processors for each in read_partitions(file)] == [8]
