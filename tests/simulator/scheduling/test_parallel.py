import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from dask_cluster import cluster, written_address
from joblib.externals.loky.process_executor import _ExecutorManagerThread
from patience import eventually

from simulator.scheduling.parallel import in_parallel
from terminal.console import CommandError, ExitCode

SCRIPT = """
import sys, time
from pathlib import Path
from simulator.scheduling.parallel import in_parallel

def begin(directory, number):
    (directory / str(number)).touch()
    time.sleep(600)

if __name__ == "__main__":
    from functools import partial
    try:
        list(in_parallel(partial(begin, Path(sys.argv[1])), range(4), processes=2))
    except KeyboardInterrupt:
        sys.exit(130)
"""
"""Each of its calls takes ten minutes."""

STARTING = """
import sys
from pathlib import Path
if "loky" in " ".join(sys.orig_argv) and "resource_tracker" not in " ".join(sys.orig_argv):
    import os, time
    Path(os.environ["BEGUN"]).touch()
    time.sleep(600)
"""
"""A ``sitecustomize`` by which a process takes long to begin."""


TRACKED = rb".*resource_tracker\.py:\d+: UserWarning: resource_tracker: .*\n  warnings\.warn\(.*\n"
"""What joblib's tracker of resources prints."""


@contextmanager
def running(script, *arguments, **environment):
    """A Python process with a group of its own, which has ended after the block."""
    process = subprocess.Popen(
        [sys.executable, script, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        env={**os.environ, **environment},
    )  # fmt: skip
    try:
        yield process
    finally:
        with_group(process, signal.SIGKILL)
        process.wait()


def with_group(process, number):
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return False
    return True


def interrupted(process):
    """The exit code after ctrl-C and what was printed; no process of the group may be left.

    joblib's tracker may name a semaphore of a process that was ended while it was made.
    """
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    eventually(lambda: not with_group(process, 0), seconds=30)
    return process.returncode, re.sub(TRACKED, b"", said)


@pytest.mark.cold
def test_ctrl_c_ends_calls_and_their_processes_without_a_word(tmp_path):
    script = tmp_path / "plays.py"
    script.write_text(SCRIPT)
    with running(script, tmp_path) as process:
        eventually(lambda: len(list(tmp_path.glob("[0-3]"))) == 2, seconds=60)
        assert interrupted(process) == (130, b"")


@pytest.mark.cold
def test_ctrl_c_ends_processes_that_begin_without_a_word(tmp_path):
    script, begun = tmp_path / "plays.py", tmp_path / "begun"
    script.write_text(SCRIPT)
    (tmp_path / "sitecustomize.py").write_text(STARTING)
    with running(script, tmp_path, PYTHONPATH=str(tmp_path), BEGUN=str(begun)) as process:
        eventually(begun.exists, seconds=60)
        assert interrupted(process) == (130, b"")


def test_an_error_ends_the_other_calls_without_a_word(capfd):
    began = time.monotonic()
    with pytest.raises(ValueError, match="negative"):
        list(in_parallel(time.sleep, [-1.0, *[600.0] * 20], processes=2))
    assert time.monotonic() - began < 60
    assert capfd.readouterr().err == ""


def test_results_that_are_not_awaited_are_given_up_without_a_word():
    began = time.monotonic()
    for _ in in_parallel(time.sleep, [0.0, 600.0, 600.0], processes=2):
        break
    assert time.monotonic() - began < 60


def test_a_call_dispatched_while_processes_end_is_given_up_without_a_word(monkeypatch):
    """Fails when joblib's private thread, whose race this provokes, has changed."""
    flag, late = _ExecutorManagerThread.flag_executor_shutting_down, []

    def flagged(thread):
        flag(thread)
        late.append(thread)
        thread.work_ids_queue.put(600)

    monkeypatch.setattr(_ExecutorManagerThread, "flag_executor_shutting_down", flagged)
    for _ in in_parallel(time.sleep, [0.0, 600.0], processes=2):
        break
    assert not late[0].is_alive()


def test_a_killed_process_is_an_error_that_names_what_to_try():
    with pytest.raises(CommandError, match="fewer --processes"):
        list(in_parallel(os._exit, [1, 1], processes=2))


@pytest.mark.parametrize("processes", [1, 2])
def test_results_come_in_the_order_of_the_tasks(processes):
    row = np.arange(20_000)
    found = in_parallel(partial(np.take, row), [7, 3, 19_999], processes=processes)
    assert list(found) == [7, 3, 19_999]


def kind_and_process_of(array):
    """A call that says where it ran; local, since other processes cannot import tests."""

    def kind_and_process(array, _):
        return type(array).__name__, os.getpid()

    return partial(kind_and_process, array)


def test_long_arrays_are_mapped_into_the_processes():
    found = in_parallel(kind_and_process_of(np.zeros(20_000)), range(2), processes=2)
    assert {kind for kind, _ in found} == {"memmap"}


def test_one_process_is_this_one():
    found = list(in_parallel(kind_and_process_of(np.zeros(3)), range(2), processes=1))
    assert found == [("ndarray", os.getpid())] * 2


@pytest.mark.parametrize("address", ["dask:", "ray:tcp://here:1", "tcp://here:1"])
def test_another_engine_is_refused_with_an_example(address):
    with pytest.raises(CommandError, match=r"such as dask:tcp://login1:8786") as refused:
        list(in_parallel(time.sleep, [0.0], distributed=address))
    assert refused.value.code == ExitCode.USAGE


def test_without_the_extra_the_package_is_named(monkeypatch):
    monkeypatch.setattr("terminal.console.find_spec", lambda _: None)
    with pytest.raises(CommandError, match=r"needs distributed.*extra distributed"):
        list(in_parallel(time.sleep, [0.0], distributed="dask:tcp://here:1"))


def test_an_address_without_a_scheduler_is_refused_in_bounded_time(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("simulator.scheduling.parallel.CONNECT_SECONDS", 0.5)
    for address, reason in (("tcp://127.0.0.1:1", "Timed out"), ("x://here:1", "scheme 'x'")):
        with pytest.raises(CommandError, match=f"answers at {address}: .*{reason}") as refused:
            list(in_parallel(time.sleep, [0.0], distributed=f"dask:{address}"))
        assert refused.value.code == ExitCode.UNAVAILABLE


@pytest.mark.cold
def test_two_workers_of_a_cluster_give_the_same_results(tmp_path):
    distributed = pytest.importorskip("distributed")
    row = np.arange(20_000)
    with cluster(tmp_path, workers=2) as address:
        with distributed.Client(address, timeout=60, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
        found = in_parallel(partial(np.take, row), [7, 3, 19_999], distributed=f"dask:{address}")
        assert list(found) == [7, 3, 19_999]
        call = kind_and_process_of(row)
        there = {pid for _, pid in in_parallel(call, range(40), distributed=f"dask:{address}")}
        assert len(there) == 2
        assert os.getpid() not in there
        with pytest.raises(ValueError, match="negative"):
            list(in_parallel(time.sleep, [0.0, -1.0], distributed=f"dask:{address}"))
        with pytest.raises(CommandError, match="scheduler cannot import dask_cluster"):
            list(in_parallel(written_address, [Path()], distributed=f"dask:{address}"))


WITHOUT_WALLTIMED = """
import importlib.metadata as metadata
known = metadata.version
def version(name):
    if name == "walltimed":
        raise metadata.PackageNotFoundError(name)
    return known(name)
metadata.version = version
"""
"""A ``sitecustomize`` of an installation without walltimed."""


@pytest.mark.cold
def test_a_cluster_without_workers_or_without_walltimed_is_refused(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_WALLTIMED)
    with cluster(tmp_path, workers=0) as address:
        monkeypatch.setattr("simulator.scheduling.parallel.CONNECT_SECONDS", 2)
        with pytest.raises(CommandError, match="has no worker"):
            list(in_parallel(time.sleep, [0.0], distributed=f"dask:{address}"))
    monkeypatch.setattr("simulator.scheduling.parallel.CONNECT_SECONDS", 60)
    with (
        cluster(tmp_path, workers=1, PYTHONPATH=str(tmp_path)) as address,
        pytest.raises(CommandError, match=r"worker \S+ cannot import walltimed: .* Python"),
    ):
        list(in_parallel(time.sleep, [0.0], distributed=f"dask:{address}"))
