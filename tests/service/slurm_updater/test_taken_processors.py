"""Processors that a job takes are counted as a real Slurm gave them to it.

The jobs are those of a private Slurm 22.05.8 of nodes with 2 sockets of 4 cores of 2 threads,
as squeue showed them while they waited, and the processors that each of them got.
"""

import json
from io import BytesIO
from pathlib import Path

import msgspec
import pytest

from service.adapters.job_scripts import request_in
from service.adapters.slurm_fields import gpus_in_gres
from service.contract.bodies import AskedSubmission
from service.live_queue.taken_processors import nodes_by_queue
from service.slurm_updater.machine import Machine, read_longest, read_nodes, takes_of
from service.slurm_updater.squeue import read_live_queue, read_queue

SLURM = Path(__file__).parents[2] / "data" / "slurm"
RECORDED = json.loads((SLURM / "taken_22.05.json").read_text("utf-8"))
GPUS = json.loads((SLURM / "gpus_22.05.json").read_text("utf-8"))
"""Jobs while they waited and while they ran, on a node of four GPUs and one of two and two."""
GPU_NODES = """\
n0|short|16/0/0/16|NO|2:4:2|1:00:00|gpu:a100:4
n1|short|16/0/0/16|NO|2:4:2|1:00:00|gpu:a100:2,gpu:v100:2(S:0-1)
n2|short|16/0/0/16|NO|2:4:2|1:00:00|(null)
n2|plain|16/0/0/16|NO|2:4:2|1:00:00|(null)
"""
SINFO = "n0|short|0/16/0/16|EXCLUSIVE|2:4:2\nn0|long|0/16/0/16|NO|2:4:2\n"
SPREAD = "-p long -n 2 --gpus-per-task=1 --cpus-per-gpu=3"
"""Took a node for each task, and a whole core for its third processor: 8 in place of 6."""


def queue_nodes(takes):
    return Machine(nodes=read_nodes(SINFO), takes=takes_of("select/cons_tres", takes)).queue_nodes()


def handed_over(recorded):
    """The processors of a waiting job in the queue that the updater sends."""
    shown = BytesIO(json.dumps({"jobs": [recorded["squeue"]]}).encode())
    (job,) = read_live_queue(shown, "hill", queue_nodes(recorded["takes"]))["waiting"]
    return msgspec.json.decode(job)["requested_processors"]


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda each: f"{each['takes']} {each['asked']}")
def test_a_waiting_job_is_handed_over_with_what_a_real_slurm_gave_it(recorded):
    took = 6 if recorded["asked"] == SPREAD else recorded["took"]
    assert handed_over(recorded) == took


@pytest.mark.parametrize(
    "recorded",
    [each for each in RECORDED if "gpu" not in each["asked"] and "mincpus" not in each["asked"]],
    ids=lambda each: f"{each['takes']} {each['asked']}",
)
def test_a_script_that_asks_the_same_counts_the_same(recorded):
    """`walltimed ask` reads it, and the service knows the nodes, but not where their GPUs are."""
    fields = request_in(f"#SBATCH -t 5 {recorded['asked']}\n")
    fields = {name: fields[name] for name in fields if name != "application"}
    body = AskedSubmission.model_validate_json(json.dumps(fields))
    nodes = nodes_by_queue(queue_nodes(recorded["takes"]))
    assert body.taken(body.submission(0.0), nodes).requested_processors == recorded["took"]


def test_what_is_counted_once_is_not_counted_again():
    """The updater's jobs have their processors before the service looks at them."""
    for recorded in RECORDED:
        nodes = nodes_by_queue(queue_nodes(recorded["takes"]))
        count = handed_over(recorded)
        fields = {"requested_walltime": 60, "requested_processors": count}
        body = AskedSubmission(**fields, queue=recorded["squeue"]["partition"])
        assert body.taken(body.submission(0.0), nodes).requested_processors == count


def test_a_running_job_keeps_what_it_has_and_the_updater_counts_like_the_hand_over():
    recorded = next(each for each in RECORDED if each["asked"] == "-p short -N 2")
    nodes = queue_nodes(recorded["takes"])
    running = recorded["squeue"] | {"job_state": ["RUNNING"], "start_time": 5.0, "cpus": 48}
    shown = BytesIO(json.dumps({"jobs": [running, recorded["squeue"] | {"job_id": 9}]}).encode())
    counts = [job.submission.requested_processors for job in read_queue(shown, "hill", nodes)]
    assert counts == [48, 32]


def test_memory_is_that_of_the_job_for_each_processor_that_it_takes():
    recorded = next(each for each in RECORDED if each["asked"] == "-p short -N 2")
    shown = BytesIO(json.dumps({"jobs": [recorded["squeue"] | {"memory_per_node": 1600}]}).encode())
    (job,) = read_live_queue(shown, "hill", queue_nodes("CR_Core"))["waiting"]
    assert msgspec.json.decode(job)["requested_memory"] == 2 * 1600 * 1024 / 32


@pytest.mark.parametrize(
    ("select", "parameters", "takes"),
    [
        ("select/linear", "CR_Memory", "node"),
        ("select/cons_tres", "CR_CORE_MEMORY", "core"),
        ("select/cons_res", "CR_Socket,CR_LLN", "socket"),
        ("select/cons_tres", "CR_CPU_MEMORY", "cpu"),
        ("", "", "cpu"),
    ],
)
def test_what_a_job_takes_at_least_is_in_slurms_configuration(select, parameters, takes):
    assert takes_of(select, parameters) == takes


@pytest.mark.parametrize(
    ("sinfo", "takes", "found"),
    [
        ("n|a|0/8/0/8|EXCLUSIVE|2:4:2", "core", (8, 1, True)),  # CPUs=8: each is a core
        ("n|a|0/16/0/16|NO|2:4:2", "node", (16, 1, True)),
        ("n|a|0/16/0/16|FORCE:4|2:4:2", "socket", (16, 8, False)),
        ("n|a|0/16/0/16", "core", (16, 1, False)),
        ("n|a|0/16/0/16|NO|x:y:z", "core", (16, 1, False)),
        ("n|a|0/4/0/4|EXCLUSIVE|1:4:1\nm|a|0/8/0/8|EXCLUSIVE|1:8:1\nk|a|0/8/0/8|EXCLUSIVE|1:8:1",
         "cpu", (8, 1, True)),
    ],
)  # fmt: skip
def test_nodes_of_a_partition_are_its_most_frequent_kind(sinfo, takes, found):
    (nodes,) = Machine(nodes=read_nodes(sinfo), takes=takes).queue_nodes()
    assert (nodes.processors, nodes.unit, nodes.whole) == found


@pytest.mark.parametrize("recorded", GPUS, ids=lambda each: each["asked"])
def test_gpus_that_a_job_asks_for_are_those_that_a_real_slurm_gave_it(recorded):
    jobs = {"jobs": [recorded["waiting"], recorded["running"] | {"job_id": 99}]}
    queue = read_live_queue(BytesIO(json.dumps(jobs).encode()), "hill")
    asked, given = (msgspec.json.decode(queue[kind][0]) for kind in ("waiting", "running"))
    if "--exclusive" in recorded["asked"]:
        assert (asked["gpus"], given["gpus"]) == (1, 4), "the whole node's"
        return
    assert asked.get("gpus") == given.get("gpus")
    assert ("gpus" in given) == ("gpu" in recorded["asked"])


def test_each_gpu_of_a_partition_stands_for_its_share_of_a_node():
    nodes = nodes_by_queue(Machine(nodes=read_nodes(GPU_NODES), takes="core").queue_nodes())
    assert {name: each.per_gpu for name, each in nodes.items()} == {"short": 4, "plain": 0}
    assert read_longest(GPU_NODES) == {"short": 3600.0, "plain": 3600.0}


@pytest.mark.parametrize(
    ("gres", "gpus"),
    [
        ("gres:gpu", 1),
        ("gres/gpu:a100:2,gres/gpu:v100=1", 3),
        ("gpu:a100:4(IDX:0,2-4)", 4),
        ("gpu:1g.5gb:7(S:0-1),shard:28", 7),
        ("gpu:0", 0),
        ("gpu:(IDX:)(", 1),
        ("(null)", 0),
        (["gpu:2"], 0),
        (None, 0),
    ],
)
def test_gpus_are_counted_in_whatever_slurm_writes(gres, gpus):
    assert gpus_in_gres(gres) == gpus
