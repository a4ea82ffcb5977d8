"""The configuration of PBS that is played, and plays in its accounting log; no PBS is needed."""

import pytest
from fast_pbs import PbsRecords
from pbs_play import cycle_seconds, play_job, rows_of
from played_pbs import plain_server, read_server
from slurm_play import LogJob

from predictors.jobs import Submission
from simulator.scheduling.slurm_rules import SlurmCluster, SlurmPartition

SERVER = """\
create queue workq
set queue workq queue_type = Execution
set queue workq acl_users = alice
create queue short
set queue short queue_type = Execution
set queue short Priority = 150
set queue short max_run = [u:PBS_GENERIC=2]
set server default_queue = short
set server managers = root@*
set server backfill_depth = 3
set sched default job_sort_formula = -walltime
"""

NODES = """\
a
     Mom = a
     resources_available.ncpus = 8
     sharing = default_excl
     Priority = 7

empty
     Mom = a
     resources_available.ncpus = 0
"""

LOGGED = Submission(requested_walltime=600.0, submit_time=60.0)
JOB = LogJob(7, 60, 12, 300, 10, 5, 0, "short", LOGGED)


@pytest.fixture
def site(tmp_path):
    for name, text in (("server", SERVER), ("nodes", NODES), ("conf", "strict_ordering: true\n")):
        (tmp_path / name).write_text(text)
    return read_server(tmp_path)


def test_what_decides_on_schedules_is_kept_of_a_server(site):
    assert site.sched_config.strip() == "strict_ordering: true"
    assert site.commands == [
        "set queue workq queue_type = Execution",
        "create queue short",
        "set queue short queue_type = Execution",
        "set queue short Priority = 150",
        "set queue short max_run = [u:PBS_GENERIC=2]",
        "set sched default job_sort_formula = -walltime",
        "set server default_queue = short",
        "set server backfill_depth = 3",
        "set node n0 Priority = 7",
    ]
    assert site.changes[0] == "acl_users of queue, managers of server play no part."


def test_each_node_of_a_play_is_a_host_of_its_own(site):
    lines = site.vnodes().splitlines()
    assert lines[0] == "$configversion 2"
    assert lines[2:] == [
        "n0: resources_available.host = n0",
        "n0: resources_available.ncpus = 8",
        "n0: sharing = default_excl",
    ]


def test_a_plain_server_is_in_strict_order_and_gives_whole_nodes():
    plain = plain_server(2, "by_queue: True\nstrict_ordering: false\tALL\n")
    assert plain.sched_config == "by_queue: True\nstrict_ordering: true all\n"
    assert len(plain.nodes) == 2
    assert plain.commands == ["set server resources_default.place = scatter:excl"]


def test_an_order_by_predictions_takes_the_place_of_the_sites_formula(site):
    commands = site.ordered(36000).commands
    assert "set queue short Priority = 150" in commands
    ratio = "(eligible_time + 14400) / max(600, min(43200, walltimed_length or walltime))"
    overdue = "min(1, max(0, eligible_time - 36000)) * (1000000000000 + eligible_time)"
    formula = f"max({ratio}, {overdue})"
    found = [each for each in commands if "job_sort_formula" in each]
    assert found == [f'set server job_sort_formula = "{formula}"']
    created = commands.index("create resource walltimed_length type=long")
    assert created < len(commands) - 1, "PBS refuses a formula of a resource that is not there"


def test_a_predicted_length_is_a_resource_of_its_job():
    queue = SlurmPartition(name="short", ranges=((0, 4),), exclusive=True)
    cluster = SlurmCluster(groups=((4, 8, 1),), partitions=(queue,))
    assert "walltimed_length=180" in play_job(JOB._replace(length_minutes=3), cluster).options
    assert not any("walltimed_length" in word for word in play_job(JOB, cluster).options)


@pytest.mark.parametrize(
    ("exclusive", "size", "select"),
    [(True, 12, "2:ncpus=8"), (False, 12, "12:ncpus=1"), (False, 5, "1:ncpus=5")],
)
def test_a_job_asks_for_whole_nodes_or_for_cpus_of_as_few_as_can_be(exclusive, size, select):
    queue = SlurmPartition(name="short", ranges=((0, 4),), exclusive=exclusive)
    cluster = SlurmCluster(groups=((4, 8, 1),), partitions=(queue,))
    played = play_job(JOB._replace(size=size), cluster)
    assert f"select={select}" in played.options
    assert "walltime=600" in played.options


RECORDS = """\
01/15/2027 08:00:01;Q;0.pbsnode;queue=short
01/15/2027 08:00:02;S;0.pbsnode;user=alice queue=short qtime=1800000060 start=1800000062
01/15/2027 08:05:02;E;0.pbsnode;user=alice queue=short qtime=1800000060 start=1800000062 \
exec_vnode=(n0:ncpus=8)+(n3:ncpus=8) end=1800000365 Exit_status=0
"""


def test_starts_and_ends_are_read_as_they_are_written(tmp_path):
    file = tmp_path / "20270115"
    file.write_text(RECORDS[: RECORDS.index(" exec_vnode")])
    records = PbsRecords(tmp_path)
    assert (list(records.starts()), records.ends()) == (["0.pbsnode"], 0)
    file.write_text(RECORDS)
    assert (list(records.starts()), records.ends()) == ([], 1)


def test_a_play_is_read_from_the_accounting_log():
    (row,) = rows_of(RECORDS, 1_800_000_000, ["0.pbsnode"], [JOB])
    times = (row["submit"], row["start"], row["end"], row["wanted_run"])
    assert times == (60, 62, 365, 300)
    assert (row["partition"], row["nodes"], row["state"]) == ("short", "n0 n3", "0")


def test_the_duration_of_a_cycle_is_that_between_two_lines_of_the_scheduler():
    line = "01/15/2027 08:00:{};0080;pbs_sched;Req;;{} Scheduling Cycle\n"
    times = (("01.500000", "Starting"), ("03.000000", "Leaving"))
    assert cycle_seconds("".join(line.format(*each) for each in times)) == 1.5
    assert cycle_seconds("") == 0.0
