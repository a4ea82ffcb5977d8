"""A stand-in for the ``pbs`` module that PBS gives its hooks, as far as the hook uses it."""

import json
import signal
import sys
import time
import types
from contextlib import contextmanager
from pathlib import Path

HOOK = Path(__file__).parents[2] / "integrations" / "pbs" / "walltimed_hook.py"
ALARM = 10
"""Seconds, where a site has 2: on a busy machine nothing but a hook that waits takes so long."""

RESOURCES = ("walltime", "soft_walltime", "min_walltime", "max_walltime", "ncpus", "mem", "select")
OURS = ["walltimed_prediction", "walltimed_length", "walltimed_priority"]
"""Resources of the hook, where a site has defined them."""


class Duration(int):
    """``pbs.duration``: made of seconds or of text, compared and printed as PBS does."""

    def __new__(cls, value):
        if isinstance(value, str):
            hours, minutes, seconds = value.split(":")
            value = int(hours) * 3600 + int(minutes) * 60 + int(seconds)
        return super().__new__(cls, value)

    @classmethod
    def of(cls, written):
        """As PBS writes one: ``00:10:00``, or seconds."""
        return cls(written if ":" in written else int(written))


class Resources(dict):
    """``Resource_List``: None for what was not asked for, an error for what does not exist."""

    def __init__(self, *, is_marked: bool, **wanted):
        super().__init__(dict.fromkeys([*RESOURCES, *OURS * is_marked]))
        self.update(wanted)

    def __setitem__(self, name, value):
        if name not in self:
            raise KeyError(f"no such resource: {name}")
        super().__setitem__(name, value)


class Job:
    """A job as ``queuejob`` shows it; ``runjob`` knows its id and owner too."""

    def __init__(self, *, is_marked: bool = True, queue="batch", **wanted):
        self.id = None
        self.Job_Name, self.Account_Name, self.project = "relax", "zeolite", "_pbs_project_default"
        self.queue = queue and types.SimpleNamespace(name=queue)
        self.Job_Owner = None
        self.qtime = None
        self.Resource_List = Resources(is_marked=is_marked, **wanted)


class Server:
    """``pbs.server()``: where a job without a queue goes, and what it gets without a walltime.

    Args:
        default_queue: its name.
        default, most: seconds of ``resources_default.walltime`` and ``resources_max.walltime``.
        queues: the same two of every queue, by name; None for a queue is one that is not there.
    """

    def __init__(self, default_queue="workq", default=None, most=None, queues=None):
        self.default_queue = default_queue and types.SimpleNamespace(name=default_queue)
        self.resources_default, self.resources_max = limits(default), limits(most)
        self.queues = {"workq": (None, None), "batch": (None, None)} | (queues or {})

    def queue(self, name):
        assert "@" not in name, "as the real one does"
        if self.queues.get(name) is None:
            return None
        default, most = map(limits, self.queues[name])
        return types.SimpleNamespace(name=name, resources_default=default, resources_max=most)


def limits(walltime):
    """Resources of a server or queue with this walltime, as text, or with none."""
    seconds = walltime and Duration(walltime)
    text = seconds and f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return Resources(is_marked=False, walltime=text)


class Event:
    """What happened; ``accept`` and ``reject`` end the hook by SystemExit, as the real ones do."""

    def __init__(self, kind, job, requestor="carol"):
        self.type, self.job, self.requestor = kind, job, requestor
        self.verdict = None

    def accept(self):
        self.verdict = "accepted"
        raise SystemExit

    def reject(self, _message=""):
        self.verdict = "rejected"
        raise SystemExit


QUEUEJOB, RUNJOB = 1, 2


class Run:
    """One run of the hook: the verdict, what it logged, how long it took, and its own names."""

    def __init__(self, event, config_file, server=None, *, logs=True):
        module = types.ModuleType("pbs")
        self.log = []
        module.event = lambda: event
        module.server = lambda: server or Server()
        module.duration = Duration
        module.QUEUEJOB, module.RUNJOB = QUEUEJOB, RUNJOB
        module.LOG_DEBUG, module.LOG_WARNING = 7, 4
        module.logmsg = self._logmsg if logs else refuse_to_log
        module.hook_config_filename = config_file
        self.names = {"__name__": "__main__"}
        began = time.monotonic()
        sys.modules["pbs"] = module
        try:
            with alarm():
                exec(compile(HOOK.read_text(), HOOK, "exec"), self.names)
        except SystemExit:
            pass
        except BaseException:  # noqa: BLE001  what escapes a hook rejects the job
            event.verdict = "rejected"
        finally:
            del sys.modules["pbs"]
        self.seconds = time.monotonic() - began
        self.verdict, self.resources = event.verdict, event.job.Resource_List
        self.warnings = [message for level, message in self.log if level == module.LOG_WARNING]

    def _logmsg(self, level, message):
        self.log.append((level, message))


def refuse_to_log(_level, _message):
    """What OpenPBS 23.06 does that was built with Python 3.10 or newer."""
    raise SystemError("PY_SSIZE_T_CLEAN macro must be defined for '#' formats")


@contextmanager
def alarm():
    """What pbs_server does to a hook that takes too long: an interrupt, and the job is rejected."""

    def interrupt(_number, _frame):
        raise KeyboardInterrupt

    handler = signal.signal(signal.SIGALRM, interrupt)
    delay, interval = signal.setitimer(signal.ITIMER_REAL, ALARM)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, delay, interval)
        signal.signal(signal.SIGALRM, handler)


def run_hook(directory, event, server=None, *, logs=True, **config) -> Run:
    """Run the hook on an event, configured as a site does."""
    file = directory / "hook.json"
    file.write_text(json.dumps(config))
    return Run(event, str(file), server, logs=logs)
