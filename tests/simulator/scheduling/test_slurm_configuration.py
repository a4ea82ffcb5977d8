"""Rules of a site from what scontrol prints."""

import pytest
from workloads import workload_of

from simulator.scheduling.slurm_cluster import queues_of_jobs
from simulator.scheduling.slurm_configuration import SlurmConfigurationError, read_configuration
from simulator.scheduling.slurm_rules import SlurmPartition, SlurmReservation
from simulator.scheduling.workload import WorkloadError

CONFIG = """\
Configuration data as of 2026-11-21T17:30:00
CompleteWait            = 0 sec
KillWait                = 45 sec
OverTimeLimit           = 5 min
PreemptMode             = REQUEUE
PriorityCalcPeriod      = 00:02:00
PriorityDecayHalfLife   = 14-00:00:00
PriorityFavorSmall      = Yes
PriorityMaxAge          = 1-12:00:00
PriorityType            = priority/multifactor
PriorityWeightAge       = 1000
PriorityWeightFairShare = 20000
PriorityWeightQOS       = 0
SchedulerParameters     = bf_interval=60,bf_window=2880,bf_continue,{more}
SchedulerType           = sched/backfill
SelectTypeParameters    = CR_CORE_MEMORY
SLURM_VERSION           = 26.05.5
""".replace("{more}", "time_min_as_soft_limit,bf_min_prio_reserve=5")

PARTITIONS = """\
PartitionName=batch
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   AllocNodes=ALL Default=YES QoS=N/A
   MaxNodes=UNLIMITED MaxTime=UNLIMITED MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED
   Nodes=n[01-04]
   PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO
   OverTimeLimit=NONE PreemptMode=OFF
   State=UP TotalCPUs=48 TotalNodes=4 SelectTypeParameters=NONE

PartitionName=wide
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   Nodes=n01,n[03-04]
   PriorityJobFactor=10 PriorityTier=3 RootOnly=NO ReqResv=NO OverSubscribe=EXCLUSIVE
   State=UP TotalCPUs=32 TotalNodes=3 SelectTypeParameters=NONE
"""


def node(name, cpus, state="IDLE", gres="(null)"):
    return (
        f"NodeName={name} Arch=x86_64 CoresPerSocket=4\n"
        f"   CPUAlloc=0 CPUEfctv={cpus} CPUTot={cpus} CPULoad=0.00\n"
        f"   Gres={gres}\n"
        f"   RealMemory=1 AllocMem=0 State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1\n\n"
    )


NODES = node("n01", 8) + node("n02", 16) + node("n03", 12, "IDLE~") + node("n04", 12)

QOS = """\
Name|Priority|MaxTRESPU|MaxJobsPU|MaxTRESPA|MaxJobsPA
long|0||7||
normal|0|cpu=24,mem=1T|4||
"""


@pytest.fixture
def directory(tmp_path):
    for name, text in (("config", CONFIG), ("partitions", PARTITIONS), ("nodes", NODES)):
        (tmp_path / f"{name}.txt").write_text(text)
    (tmp_path / "notes.txt").write_text("nothing of Slurm's")
    return tmp_path


def test_rules_are_those_of_the_site(directory):
    rules = read_configuration(directory)
    assert (rules.bf_interval, rules.bf_window, rules.bf_resolution) == (60, 2 * 86400, 60)
    assert rules.bf_continue
    assert rules.time_min_as_soft_limit
    assert (rules.kill_wait, rules.over_time_limit) == (45, 300)
    assert (rules.priority_weight_age, rules.priority_weight_fair_share) == (1000, 20000)
    assert (rules.priority_max_age, rules.priority_decay_half_life) == (129_600, 14 * 86400)
    assert (rules.priority_calc_period, rules.priority_favor_small) == (120, True)


def test_nodes_and_partitions_are_those_of_the_site(directory):
    cluster = read_configuration(directory).cluster
    assert cluster.groups == ((1, 8, 1), (1, 16, 1), (2, 12, 1))
    assert cluster.partitions == (
        SlurmPartition(name="batch", ranges=((0, 4),), is_default=True),
        SlurmPartition(name="wide", ranges=((0, 1), (2, 4)), exclusive=True, tier=3, job_factor=10),
    )
    assert [cluster.cpus_of(each) for each in cluster.partitions] == [48, 32]
    assert cluster.card() == (
        "1 nodes of 8 CPUs, 1 nodes of 16 CPUs, 2 nodes of 12 CPUs; partitions batch (4 nodes, "
        "tier 1), wide (3 nodes, tier 3, whole nodes)"
    )


def test_what_is_not_modelled_is_listed(directory):
    assert read_configuration(directory).unmodelled == (
        "PreemptMode=REQUEUE",
        "bf_min_prio_reserve=5",
        "memory",
    )
    (directory / "nodes.txt").write_text(NODES + node("g1", 8, gres="gpu:4,nvme:a:1(S:0,1)"))
    assert "Gres nvme" in read_configuration(directory).unmodelled
    text = PARTITIONS.replace("OverSubscribe=NO", "OverSubscribe=FORCE:4")
    (directory / "partitions.txt").write_text(text)
    assert "OverSubscribe=FORCE:4 of batch" in read_configuration(directory).unmodelled


def test_slurm_26_05_calls_partitions_of_whole_nodes_otherwise(directory):
    text = PARTITIONS.replace("RootOnly=NO ReqResv=NO OverSubscribe=EXCLUSIVE", "Exclusive=NODE")
    text = text.replace("OverSubscribe=NO", "Exclusive=USER OverSubscribe=NO")
    (directory / "partitions.txt").write_text(text)
    rules = read_configuration(directory)
    assert [each.exclusive for each in rules.cluster.partitions] == [False, True]
    assert rules.unmodelled[-1] == "Exclusive=USER of batch"


def test_gpus_of_nodes_are_counted_whatever_their_type(directory):
    assert read_configuration(directory).cluster.gpus == ()
    more = node("g1", 8, gres="gpu:a100:2(S:0-1),gpu:v100:3") + node("g2", 8, gres="nvme:1,gpu:4")
    (directory / "nodes.txt").write_text(NODES + more)
    cluster = read_configuration(directory).cluster
    assert cluster.gpus == (0, 0, 0, 0, 5, 4)
    assert "; 9 GPUs; partitions" in cluster.card()


MAINTENANCE = """\
ReservationName=maint StartTime=1792564800 EndTime=1792594800 Duration=08:20:00
   Nodes=n[02-04] NodeCnt=3 CoreCnt=40 Features=(null) PartitionName=(null) Flags=MAINT,SPEC_NODES
   TRES=cpu=40
   AllowedPartitions=(null) QOS=(null)
   Users=root Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null)
   MaxStartDelay=(null)

"""


def reservation(name, nodes="n01", flags="", times=(1792564800, 1792594800), more=""):
    """A further reservation as scontrol prints it."""
    return (
        f"ReservationName={name} StartTime={times[0]} EndTime={times[1]} Duration=08:20:00\n"
        f"   Nodes={nodes} NodeCnt=1 CoreCnt=8 Features=(null) PartitionName=wide Flags={flags}\n"
        f"{more}   TRES=cpu=8\n   Users=alice Accounts=(null) MaxStartDelay=(null)\n\n"
    )


def test_reservations_are_those_of_the_site(directory):
    text = MAINTENANCE + reservation("nightly", "ALL", "DAILY,ALL_NODES")
    text += reservation("part", "n01,n[03-04]", "PART_NODES,PURGE_COMP=00:05:00")
    (directory / "reservations.txt").write_text(text.replace("ALL ", "n[01-04] "))
    rules = read_configuration(directory)
    times = {"begin": 1792564800, "end": 1792594800}
    assert rules.cluster.reservations == (
        SlurmReservation(name="maint", ranges=((1, 4),), maintenance=True, **times),
        SlurmReservation(name="nightly", ranges=((0, 4),), period=86400, all_nodes=True, **times),
        SlurmReservation(name="part", ranges=((0, 1), (2, 4)), partition="wide", **times),
    )
    assert rules.unmodelled[-3:] == (
        "jobs in reservation nightly",
        "jobs in reservation part",
        "PURGE_COMP of reservation part",
    )


@pytest.mark.parametrize(
    ("text", "unmodelled"),
    [
        (
            reservation("local", times=("2026-10-21T08:00:00", "2026-10-21T16:20:00")),
            "reservation local, whose times are not Unix seconds (SLURM_TIME_FORMAT=%s)",
        ),
        (
            reservation("cores", more="     NodeName=n01 CoreIDs=0-3\n"),
            "reservation cores of cores",
        ),
        (reservation("ahead", flags="TIME_FLOAT"), "TIME_FLOAT of reservation ahead"),
    ],
)
def test_a_reservation_that_is_not_modelled_takes_no_nodes_and_is_listed(
    directory, text, unmodelled
):
    (directory / "reservations.txt").write_text(text)
    rules = read_configuration(directory)
    assert rules.cluster.reservations == ()
    assert unmodelled in rules.unmodelled


def test_nodes_that_are_down_or_drained_take_no_jobs(directory):
    down = node("n03", 12, "DOWN*") + node("n04", 12, "IDLE+DRAIN")
    (directory / "nodes.txt").write_text(node("n01", 8) + node("n02", 16, "POWERED_DOWN") + down)
    cluster = read_configuration(directory).cluster
    assert [each.ranges for each in cluster.partitions] == [((0, 2),), ((0, 1),)]
    assert "2 nodes of 12 CPUs, of which 2 are down or drained" in cluster.card()
    jobs = workload_of([(0, 25, 60, 60)], 48)
    with pytest.raises(WorkloadError, match=r"25 processors, partition batch 24 on nodes .* up"):
        queues_of_jobs(jobs, cluster)


def test_soft_limits_are_those_of_slurm_25_05_4_and_later(directory):
    (directory / "config.txt").write_text(CONFIG.replace("26.05.5", "24.11.5"))
    assert not read_configuration(directory).time_min_as_soft_limit


def test_limits_are_those_of_the_normal_qos(directory):
    (directory / "qos.txt").write_text(QOS)
    rules = read_configuration(directory)
    assert (rules.max_jobs_per_user, rules.max_cpus_per_user) == (4, 24)
    assert (rules.max_jobs_per_account, rules.max_cpus_per_account) == (0, 0)


def test_a_missing_text_is_named(directory):
    (directory / "nodes.txt").unlink()
    with pytest.raises(SlurmConfigurationError, match="what scontrol show node prints"):
        read_configuration(directory)


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("config", "bf_interval=60", "bf_interval=soon", "soon"),
        ("config", "bf_interval=60", "bf_interval=-1", "bf_interval must be between 1"),
        ("config", "45 sec", "unknown", "unknown is no duration"),
        (
            "partitions",
            "Nodes=n[01-04]",
            "Nodes=(null)",
            "Partition batch has no nodes that are up",
        ),
        ("nodes", "CPUTot=8 ", "", "CPUTot is missing"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(directory, file, old, new, message):
    path = directory / f"{file}.txt"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(SlurmConfigurationError, match=message):
        read_configuration(directory)


def test_without_accounts_age_and_fair_share_are_ignored(directory):
    config = directory / "config.txt"
    config.write_text(f"{CONFIG}AccountingStorageType = accounting_storage/none\n")
    rules = read_configuration(directory)
    assert (rules.priority_weight_age, rules.priority_weight_fair_share) == (0, 0)
    config.write_text(f"{CONFIG}AccountingStorageType = accounting_storage/slurmdbd\n")
    assert read_configuration(directory).priority_weight_age == 1000
