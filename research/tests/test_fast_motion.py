"""The clock of plays, and the slurm.conf that is played; no Slurm is needed."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import guard
import numpy as np
import private_machine
import pytest
from fake_service import fake_service, prediction
from fast_clock import AHEAD, CRAWL, FastClock, compile_into
from fast_cluster import SlurmRecords
from guard import Guard
from installed_cluster import BUDGET_MS, FILTER
from patience import eventually
from played_conf import SiteConfError, plain_conf, read_conf
from player import Player, PlayJob, Speeds, TooFastError, Watch
from private_machine import reason_to_skip
from recorded_plays import (
    Likeness,
    RecordedPlay,
    logged_times,
    read_play,
    twin_starts,
    write_play,
)
from slurm_play import LogJob, play_job
from slurm_scripts import JOB, LUAS, Site

from predictors.jobs import Submission
from simulator.scheduling.slurm_rules import SlurmCluster, SlurmPartition, SlurmRules

START = 1_800_000_000

FAST_MOTION = Path(guard.__file__).parent

WAITS = r"""
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static struct timespec in(int seconds) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_sec += seconds;
    return time;
}
int main(void) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    sem_t semaphore;
    sigset_t alarm;
    timer_t timer;
    struct itimerspec hundred = {{0, 0}, {100, 0}};
    struct timespec until;
    long begin = time(NULL);
    sleep(100);
    printf("%ld\n", time(NULL) - begin);
    pthread_mutex_lock(&mutex);
    until = in(100);
    pthread_cond_timedwait(&condition, &mutex, &until);
    printf("%ld\n", time(NULL) - begin);
    sem_init(&semaphore, 0, 0);
    until = in(100);
    sem_timedwait(&semaphore, &until);
    printf("%ld\n", time(NULL) - begin);
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarm, NULL);
    timer_create(CLOCK_REALTIME, NULL, &timer);
    timer_settime(timer, 0, &hundred, NULL);
    int received;
    sigwait(&alarm, &received);
    printf("%ld\n", time(NULL) - begin);
    return 0;
}
"""

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


@pytest.fixture
def clock(tmp_path):
    with FastClock(tmp_path / "clock", START) as made:
        yield made


@pytest.fixture
def renewed(clock):
    """A clock that somebody renews, at a hundred times the real speed."""
    over = threading.Event()

    def renew():
        while not over.wait(0.002):
            clock.go_on(100)

    thread = threading.Thread(target=renew)
    thread.start()
    yield clock
    over.set()
    thread.join()


@needs_gcc
def test_all_waits_of_a_program_are_seconds_of_the_clock(renewed, tmp_path):
    compile_into(tmp_path)
    words = ["gcc", "-x", "c", "-", "-o", tmp_path / "waits", "-lpthread", "-lrt"]
    subprocess.run(words, input=WAITS, text=True, check=True)
    library = {"LD_PRELOAD": str(tmp_path / "fast_clock.so"), "FAST_CLOCK": str(renewed.file)}
    began = time.monotonic()
    done = subprocess.run(
        [tmp_path / "waits"], env=os.environ | library, capture_output=True, text=True, check=True
    )
    seconds = list(map(int, done.stdout.split()))
    for passed, expected in zip(seconds, (100, 200, 300, 400), strict=True):
        assert expected <= passed + 1
    assert seconds[-1] < 100 * (time.monotonic() - began) + 1
    assert time.monotonic() - began < 60


@needs_gcc
def test_a_job_ends_at_its_run_after_its_start_and_says_so_to_the_player(renewed, tmp_path):
    compile_into(tmp_path)
    pipe = f"{renewed.file}.pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    start = int(renewed.now()) - 20
    job = {"SLURM_JOB_ID": "7", "SLURM_JOB_START_TIME": str(start)}
    environment = {"FAST_CLOCK": str(renewed.file), **job}
    subprocess.run([tmp_path / "fast_job", "100"], env=environment, check=True, timeout=60)
    assert renewed.now() >= start + 100
    number, end = os.read(reader, 1000).decode().split()
    os.close(reader)
    assert (number, float(end)) == ("7", start + 100)


def test_a_clock_that_nobody_renews_crawls(clock):
    clock.go_on(1000)
    began = clock.now()
    time.sleep(0.2)
    late = clock.now() - began - 1000 * AHEAD
    assert 0 < late < 20 * CRAWL
    clock.go_on(1000)
    assert 0.1 < clock.crawled < 20


def test_a_machine_that_does_not_keep_up_is_refused(clock):
    cluster = SimpleNamespace(clock=clock)
    player = Player(cluster, Speeds(most_crawled=0.2), longest=1000)
    player._began -= 100
    clock.crawled = 15.0
    player._check()
    clock.crawled = 40.0
    with pytest.raises(TooFastError, match="crawled for 40%"):
        player._check()
    player._began -= 1000
    with pytest.raises(TooFastError, match="not over"):
        player._check()


DAEMON = """
import mmap, os, sys, time
with open(sys.argv[1], "rb") as file:
    clock = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
if os.fork() == 0:
    os.setsid()
os.write(1, b"%d\\n" % os.getpid())  # at once, beside the other one's
time.sleep(600)
"""
"""Two processes that live by a clock, each of which says its number."""

PLAYER = f"""
import subprocess, sys, time
from pathlib import Path
from fast_clock import FastClock
from guard import Guard
clock = FastClock(Path(sys.argv[1]), 0)
guard = Guard(clock.file)
subprocess.Popen([sys.executable, "-c", {DAEMON!r}, clock.file], start_new_session=True)
time.sleep(600)
"""


def is_running(process):
    """Whether a process has not ended; one that nobody has waited for has."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.fixture
def directory(tmp_path):
    """The directory of a play, whose name no other play has: a guard knows programs by it."""
    return Path(tempfile.mkdtemp(prefix="play-", dir=tmp_path))


def test_what_a_play_has_started_ends_with_a_player_that_is_killed(directory):
    beside = subprocess.Popen([sys.executable, "-c", DAEMON, __file__], stdout=subprocess.PIPE)
    player = subprocess.Popen(
        [sys.executable, "-c", PLAYER, directory / "clock"], text=True, stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(FAST_MOTION)}, start_new_session=True,
    )  # fmt: skip
    daemons = [int(player.stdout.readline()) for _ in range(2)]
    others = [int(beside.stdout.readline()) for _ in range(2)]
    assert all(map(is_running, (*daemons, *others)))
    player.send_signal(signal.SIGKILL)
    eventually(lambda: not any(map(is_running, daemons)) and not directory.exists())
    assert all(map(is_running, others))
    for process in others:
        os.kill(process, signal.SIGKILL)
    for process in (player, beside):
        process.wait()
        process.stdout.close()


def test_what_is_left_of_a_play_ends_before_the_player_goes_on(directory):
    with FastClock(directory / "clock", START) as clock:
        guarding = Guard(clock.file)
        daemon = subprocess.Popen(
            [sys.executable, "-c", DAEMON, clock.file], stdout=subprocess.PIPE
        )
        daemons = [int(daemon.stdout.readline()) for _ in range(2)]
        guarding.close()  # this process lives by the clock, too, and is spared
        assert not any(map(is_running, daemons))
        assert not directory.exists()
    daemon.wait()
    daemon.stdout.close()


PLAYER_OF_PBS = """
import sys, time
from pathlib import Path
from guard import Guard
from private_machine import PrivateMachine
machine = PrivateMachine(parent=Path(sys.argv[1]))
guard = Guard(machine.directory / "clock")
with machine:
    print(machine.pid, flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(reason_to_skip() is not None, reason=str(reason_to_skip()))
def test_the_machine_of_a_pbs_ends_with_a_player_that_is_killed(tmp_path):
    paths = os.pathsep.join(map(str, (FAST_MOTION, Path(private_machine.__file__).parent)))
    player = subprocess.Popen(
        [sys.executable, "-c", PLAYER_OF_PBS, tmp_path], text=True, stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": paths}, start_new_session=True,
    )  # fmt: skip
    machine = int(player.stdout.readline())
    assert is_running(machine)
    player.send_signal(signal.SIGKILL)
    eventually(lambda: not is_running(machine) and not list(tmp_path.iterdir()))
    player.wait()
    player.stdout.close()


SITE = """\
# of a site
ClusterName=big
AuthType=auth/munge
SchedulerParameters=bf_continue,bf_interval=60,\\
bf_max_job_user=5,bf_max_time=120
SelectType=select/cons_res
SelectTypeParameters=CR_Core_Memory
PriorityType=priority/multifactor
PriorityWeightAge=1000   # and
PriorityWeightFairshare=5000
NodeName=DEFAULT RealMemory=64000 Sockets=2
Include nodes.conf
PartitionName=DEFAULT MaxTime=1-0
PartitionName=batch Nodes=n[01-03] Default=YES AllowGroups=staff
PartitionName=wide Nodes=n[01-04] PriorityTier=3 OverSubscribe=EXCLUSIVE
"""


@pytest.fixture
def site(tmp_path):
    (tmp_path / "slurm.conf").write_text(SITE)
    (tmp_path / "nodes.conf").write_text("NodeName=n[01-04] CoresPerSocket=4 Weight=2 Gres=gpu:2\n")
    return read_conf(tmp_path / "slurm.conf")


def test_what_decides_on_schedules_is_kept_of_a_slurm_conf(site):
    assert list(site.nodes) == ["n01", "n02", "n03", "n04"]
    assert site.nodes["n03"] == {"Sockets": "2", "CoresPerSocket": "4", "Weight": "2"}
    text = "\n".join(site.lines)
    assert "PriorityWeightAge=1000" in text
    assert "bf_continue,bf_interval=60," in text
    assert "Nodes=n[01-04] PriorityTier=3 OverSubscribe=EXCLUSIVE" in text
    assert "CR_CORE\n" in text
    for left_out in ("Fairshare", "munge", "AllowGroups", "MaxTime=1-0", "bf_max_job_user"):
        assert left_out not in text


def test_what_is_changed_of_a_slurm_conf_is_said(site):
    said = " ".join(site.changes)
    for name in ("bf_max_job_user=5", "Fairshare", "AllowGroups, MaxTime", "CR_CORE", "cons_res"):
        assert name in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NodeName=a\nPartitionName=p Nodes=a\nNodeSet=s Nodes=a\n", "line 3"),
        ("NodeName=a\nnothing\n", "line 2"),
        ("ClusterName=a\n", "no NodeName"),
    ],
)
def test_a_slurm_conf_that_cannot_be_played_is_refused_by_its_line(text, message, tmp_path):
    file = tmp_path / "slurm.conf"
    file.write_text(text)
    with pytest.raises(SiteConfError, match=message):
        read_conf(file)


def test_a_slurm_conf_of_a_play_has_a_port_for_each_node(tmp_path):
    text = plain_conf(2).text(tmp_path, "host", "root", [100, 101, 102])
    assert "SlurmctldPort=100" in text
    assert "NodeName=n1 NodeHostname=host NodeAddr=127.0.0.1 Port=102" in text


def test_a_play_is_read_as_it_was_written(tmp_path):
    row = {
        "job": 5, "submit": 60, "start": 90, "end": 400, "size": 2, "limit_minutes": 10,
        "time_min_minutes": 0, "length_minutes": 6, "wanted_run": 300, "partition": "all",
        "nodes": "n[0-1]", "state": "COMPLETED",
    }  # fmt: skip
    write_play(tmp_path / "play.csv.gz", [row, {**row, "start": 70}])
    play = read_play(tmp_path / "play.csv.gz")
    assert play.wait.tolist() == [30, 10]
    assert play.limit.tolist() == [600, 600]
    assert play.length.tolist() == [360, 360]
    assert play.overrun.tolist() == [10, 30]
    likeness = Likeness.of(play, play.start + np.array([0, 400]), 31)
    assert (likeness.within_interval, likeness.within_300) == (0.5, 0.5)
    assert (likeness.median, likeness.other_wait) == (200, 220)


TWO_NODES = SlurmCluster(
    groups=((2, 1, 1),),
    partitions=(SlurmPartition(name="all", ranges=((0, 2),), exclusive=True),),
)


def played_job(submit, minutes):
    logged = Submission(requested_walltime=36_000.0, submit_time=0.0)
    return play_job(LogJob(7, submit, 1, 300, 600, 0, minutes, "all", logged), TWO_NODES, 300)


def test_site_factors_of_a_play_differ_by_those_of_the_updater_and_by_age():
    assert played_job(60, 0).site_factor is None
    longest = played_job(60, 600).site_factor
    assert played_job(60, 30).site_factor - longest == 86400 - 4 * 1800
    assert played_job(1060, 600).site_factor - longest == -1000


def test_a_player_sets_the_site_factor_of_a_job_that_it_has_submitted(clock, tmp_path):
    (tmp_path / "slurmctld.log").write_text("[…] _job_complete: JobId=1 done\n")
    calls = []
    cluster = SimpleNamespace(
        records=SlurmRecords(tmp_path), clock=clock, reports=list,
        submit=lambda run, *options: calls.append((run, *options)) or "1",
        set_site_factor=lambda job, factor: calls.append((job, factor)),
    )  # fmt: skip
    player = Player(cluster, Speeds(), longest=60)
    player.zero = START
    assert player.play([PlayJob(0, 300, ["-N", "1"], 79_200)]) == ["1"]
    assert calls == [(300, "-N", "1"), ("1", 79_200)]


def test_a_player_expects_the_end_of_a_job_at_its_limit(clock):
    assert played_job(60, 0).longest == 600 * 60 + 300
    lines = [("1", f"{START + 7000}"), ("2", f"{START + 500}")]
    records = SimpleNamespace(starts=list, ends=lambda: 0)
    watch = Watch(SimpleNamespace(clock=clock, reports=lambda: lines, records=records))
    watch.excess = {"1": 6100.0, "2": 0.0}  # 1 may run 900 s, and would run 7000
    watch.look()
    assert sorted(watch.ends) == [START + 500, START + 900]


LOG = """\
[2027-01-15T08:01:35.205] sched/backfill: _attempt_backfill: beginning
[2027-01-15T08:03:03.015] _slurm_rpc_submit_batch_job: JobId=1 InitPrio=4294901759 usec=3561
[2027-01-15T08:03:35.500] sched/backfill: _attempt_backfill: beginning
[2027-01-15T08:03:35.500] sched/backfill: _attempt_backfill: beginning
[2027-01-15T08:20:00.000] cleanup_completing: JobId=2 completion process took 90 seconds
slurmctld: cleanup_completing: JobId=2 completion process took 90 seconds
"""


def test_the_log_of_a_play_says_when_cycles_begin_and_nodes_of_killed_jobs_are_free():
    numbers = dict.fromkeys(
        ("submit", "start", "end", "size", "limit", "time_min", "length", "wanted_run"),
        np.array([62, 70, 80]),
    )
    play = RecordedPlay(
        **numbers, partition=[], nodes=[], state=["COMPLETED", "TIMEOUT", "TIMEOUT"]
    )
    times = logged_times(LOG, play, SlurmRules(epilog=3, kill_wait=30))
    assert times.cycles == (95_500,)  # second 0 is 08:02, before which a cycle plans nothing
    assert (times.epilogs, times.first_epilogs) == ((3, 30, 30), (3, 90, 30))


def test_the_twin_of_a_play_with_site_factors_orders_by_predicted_lengths():
    columns = {
        "submit": [0, 10, 20], "start": [0, 0, 0], "end": [600, 600, 600], "size": [2, 2, 2],
        "limit": [600, 3600, 3600], "time_min": [0, 0, 0], "length": [600, 1200, 60],
        "wanted_run": [600, 600, 600],
    }  # fmt: skip
    play = RecordedPlay(
        **{name: np.array(column) for name, column in columns.items()},
        partition=["all"] * 3, nodes=[""] * 3, state=["COMPLETED"] * 3,
    )  # fmt: skip
    first, second, third = twin_starts(play, SlurmRules(cluster=TWO_NODES), 2)
    assert first < third < second


@pytest.mark.skipif(not LUAS, reason="needs lua with lua-socket")
def test_the_filter_of_a_play_tells_nothing_of_the_one_script_of_all_its_jobs(tmp_path):
    site = Site(tmp_path, LUAS[0])
    with fake_service(prediction()) as service:
        config = FILTER.format(port=service.port, budget_ms=BUDGET_MS)
        (tmp_path / "walltimed_config.lua").write_text(config)
        site.submit(JOB | {"script": "true\n", "work_dir": "/tmp"})
        (asked,) = service.requests
    assert (asked["user"], asked["requested_walltime"]) == ("carol", 3600)
    assert not {"script_hash", "work_dir", "requested_nodes"} & set(asked)
