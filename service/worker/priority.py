"""Keeping out of the event loop's way: what else runs waits, so that no request has to."""

import ctypes
import gc
import os
import platform
import sys

SLICE_NANOSECONDS = 100_000
"""The shortest that Linux grants; its default is some milliseconds."""

SWITCH_SECONDS = 0.001
"""How long a thread may keep the event loop waiting; Python's default of 5 ms ruins p99."""

COLLECTION_THRESHOLD = 20_000
"""Objects between garbage collections; Python's default of 700 is a few requests here."""

LOWEST_PRIORITY = 19
"""As ``nice`` counts."""

_SYSTEM_CALL = {"x86_64": 314, "aarch64": 274, "riscv64": 274, "ppc64le": 355, "s390x": 345}
"""Of ``sched_setattr``, by machine; only the newest C libraries have a function for it."""

_RESET_ON_FORK = 1


class _Attributes(ctypes.Structure):
    """``struct sched_attr`` of Linux, in its first version."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
    )


def take_short_slices() -> bool:
    """Make this thread run in short slices, and so, when it wakes, before threads with longer ones.

    A thread that writes or compiles may keep the processor for its whole slice, milliseconds,
    while a request waits. Since Linux 6.12 a thread may ask for slices of its own: it gets no more
    time than the others, but gets it sooner. Older kernels ignore it. Threads and processes that
    this thread starts do not inherit it.

    Returns:
        Whether the kernel took it; False wherever there is no such thing, or it is forbidden.
    """
    number = _SYSTEM_CALL.get(platform.machine())
    if platform.system() != "Linux" or number is None:
        return False
    if os.sched_getscheduler(0) != os.SCHED_OTHER:  # somebody has decided otherwise
        return False
    wanted = _Attributes(
        size=ctypes.sizeof(_Attributes),
        policy=os.SCHED_OTHER,
        flags=_RESET_ON_FORK,
        nice=os.getpriority(os.PRIO_PROCESS, 0),
        runtime=SLICE_NANOSECONDS,
    )
    answer: int = ctypes.CDLL(None).syscall(number, 0, ctypes.byref(wanted), 0)
    return answer == 0


def settle_process() -> None:
    """Keep long pauses away from requests: what was learned so far is not garbage-collected."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECTION_THRESHOLD)
    sys.setswitchinterval(SWITCH_SECONDS)


def give_way(process_id: int) -> None:
    """Let a process run only when no other wants to.

    The lowest priority alone is not enough: such a process rarely gets its turn, but then keeps
    the processor for milliseconds, in which no prediction is answered.
    """
    if hasattr(os, "SCHED_IDLE"):  # Linux
        os.sched_setscheduler(process_id, os.SCHED_IDLE, os.sched_param(0))
    else:
        os.setpriority(os.PRIO_PROCESS, process_id, LOWEST_PRIORITY)
