"""The event loop's thread gets shorter slices, and only that thread."""

import os
import platform
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from service.worker import priority
from service.worker.priority import SLICE_NANOSECONDS, take_short_slices

RELEASE = tuple(int(part) for part in platform.release().split(".")[:2] if part.isdecimal())
TAKES_SLICES = platform.system() == "Linux" and RELEASE >= (6, 12)


def in_thread(function):
    """The function's answer from a thread of its own, whose settings end with it."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def slice_of_this_thread():
    """In nanoseconds, from the kernel's own account."""
    sched = Path(f"/proc/self/task/{threading.get_native_id()}/sched").read_text()
    found = [line.split()[-1] for line in sched.splitlines() if line.startswith("se.slice")]
    return int(float(found[0])) if found else None


@pytest.mark.skipif(not TAKES_SLICES, reason="needs Linux 6.12")
def test_a_thread_and_not_those_that_it_starts_gets_short_slices():
    def slices():
        if not take_short_slices():
            pytest.skip("this machine does not let us")
        return slice_of_this_thread(), in_thread(slice_of_this_thread)

    mine, of_another = in_thread(slices)
    if mine is None:
        pytest.skip("this kernel does not tell a thread's slice")
    assert mine == SLICE_NANOSECONDS
    assert of_another > mine


def test_nothing_is_asked_of_other_systems(monkeypatch):
    monkeypatch.setattr(priority.platform, "system", lambda: "Darwin")
    assert not take_short_slices()


@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="needs Linux")
def test_what_somebody_else_decided_stays():
    def batch():
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        return take_short_slices(), os.sched_getscheduler(0)

    assert in_thread(batch) == (False, os.SCHED_BATCH)
