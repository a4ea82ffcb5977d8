"""Rules of a site from what PBS's commands print."""

import pytest

from simulator.scheduling.pbs_configuration import PbsConfigurationError, read_pbs_configuration
from simulator.scheduling.pbs_rules import PbsLimit
from simulator.scheduling.slurm_rules import SlurmPartition

SERVER = """\
#
# Create queues and set their attributes.
#
create queue workq
set queue workq queue_type = Execution
set queue workq Priority = 20
set queue workq resources_default.base_score = 5
set queue workq enabled = True
set queue workq started = True
create queue entry
set queue entry queue_type = Route
create queue large
set queue large queue_type = Execution
set queue large Priority = 100
set queue large backfill_depth = 3
set queue large default_chunk.Qlist = large
set queue large max_run = [u:PBS_GENERIC=2]
set queue large max_run += [u:bob=9]
set queue large max_run_res.mem = [o:PBS_ALL=1tb]
create queue own
set queue own queue_type = Execution
set queue own resources_default.place = scatter:excl
set queue own max_user_run = 4
#
# Set server attributes.
#
set server scheduling = True
set server default_queue = workq
set server max_run_res.ncpus = [g:PBS_GENERIC=64]
set server resources_default.ncpus = 1
set server backfill_depth = 2
set server job_sort_formula = "queue_priority + base_score - walltime / 3600 + mystery"
set sched default opt_backfill_fuzzy = high
set sched default sched_host = pbsnode
"""

STATUS = """\
Server: pbsnode
    server_state = Active
    scheduler_iteration = 300
    managers = root@a,
\troot@b
"""

SCHED_CONFIG = """\
# comment
round_robin: False\tall
by_queue: True\t\tprime
by_queue: False\t\tnon_prime
strict_ordering: true\tALL
node_sort_key: "sort_priority HIGH"\tALL
fair_share: true\tALL
preemptive_sched: true\tALL
"""


def node(name, cpus, **words):
    lines = [name, "     Mom = a", f"     resources_available.ncpus = {cpus}"]
    lines += [f"     resources_available.host = {name}"]
    return "\n".join([*lines, *(f"     {key} = {value}" for key, value in words.items()), "", ""])


QLIST = {"resources_available.Qlist": "batch,large"}
NODES = (
    node("n1", 8, state="free", sharing="default_shared")
    + node("n2", 8, state="offline", sharing="default_shared", **QLIST)
    + node("n3", 16, Priority=10, sharing="default_shared", **QLIST)
    + node("n4", 4, queue="own", sharing="default_shared")
)


@pytest.fixture
def directory(tmp_path):
    texts = {"qmgr": SERVER, "qstat": STATUS, "sched_config": SCHED_CONFIG, "nodes": NODES}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "notes.txt").write_text("nothing of PBS's")
    return tmp_path


def test_rules_are_those_of_the_site(directory):
    rules = read_pbs_configuration(directory)
    assert (rules.strict_ordering, rules.by_queue) == (True, True)
    assert (rules.scheduler_iteration, rules.backfill_depth) == (300, 2)
    assert rules.opt_backfill_fuzzy == 3600
    assert rules.job_sort_formula.startswith("queue_priority + base_score")
    assert rules.limits == (PbsLimit(entity="g", resource="ncpus", most=64),)


def test_queues_have_nodes_priorities_and_limits_of_their_own(directory):
    rules = read_pbs_configuration(directory)
    # The node of the highest priority is first; routing queues hold no jobs.
    assert rules.cluster.groups == ((1, 16, 1), (2, 8, 1), (1, 4, 1))
    assert rules.cluster.partitions == (
        SlurmPartition(name="workq", ranges=((0, 3),), tier=20, is_default=True),
        SlurmPartition(name="large", ranges=((0, 1), (2, 3)), tier=100),
        SlurmPartition(name="own", ranges=((3, 4),), exclusive=True, tier=0),
    )
    assert [queue.backfill_depth for queue in rules.queues] == [None, 3, None]
    assert [queue.limits for queue in rules.queues] == [
        (),
        (PbsLimit(entity="u", resource="jobs", most=2),),
        (PbsLimit(entity="u", resource="jobs", most=4),),
    ]


def test_what_is_not_modelled_is_listed(directory):
    assert read_pbs_configuration(directory).unmodelled == (
        "base_score in job_sort_formula is that of queue or server for every job",
        "mystery in job_sort_formula is 0 for every job",
        "fair_share: true",
        "1 nodes that are down or offline count as up",
        "max_run=[u:bob=9] of large",
        "max_run_res.mem of large",
    )


def test_the_defaults_are_those_of_openpbs(directory):
    (directory / "qmgr").write_text("create queue q\nset server scheduling = True\n")
    (directory / "qstat").unlink()
    (directory / "sched_config").write_text("strict_ordering: false ALL\n")
    rules = read_pbs_configuration(directory)
    assert (rules.strict_ordering, rules.backfill_depth, rules.by_queue) == (False, 1, True)
    assert (rules.scheduler_iteration, rules.opt_backfill_fuzzy) == (600, 60)


def test_a_sort_key_is_a_formula(directory):
    (directory / "qmgr").write_text("create queue q\nset server scheduling = True\n")
    (directory / "sched_config").write_text('by_queue: True\njob_sort_key: "walltime LOW" ALL\n')
    assert read_pbs_configuration(directory).job_sort_formula == "-walltime"


@pytest.mark.parametrize(
    ("file", "message"),
    [("qmgr", "print server"), ("nodes", "pbsnodes -av"), ("sched_config", "sched_config")],
)
def test_a_missing_text_is_named(directory, file, message):
    (directory / file).unlink()
    with pytest.raises(PbsConfigurationError, match=message):
        read_pbs_configuration(directory)


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("qmgr", "backfill_depth = 2", "backfill_depth = many", "many"),
        ("qmgr", "Qlist = large", "Qlist = huge", "Queue large has no nodes"),
        ("qmgr", "[g:PBS_GENERIC=64]", "[g:PBS_GENERIC=0]", "max_run_res.ncpus"),
        ("qmgr", "queue_priority +", "queue_priority if", "cannot read job_sort_formula"),
        ("qstat", "= 300", "= -3", "scheduler_iteration must be between 1"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(directory, file, old, new, message):
    path = directory / file
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(PbsConfigurationError, match=message):
        read_pbs_configuration(directory)
