"""Events as PBS hands them to a hook and takes them back: the files of ``pbs_python --hook``.

Captured on a real OpenPBS (tests/data/pbs), so that the hook meets what a server really shows.
"""

import re
from pathlib import Path

from pbs_stand_in import QUEUEJOB, RUNJOB, Duration, Event, Job, Server

KINDS = {"queuejob": QUEUEJOB, "runjob": RUNJOB}
JOB, SERVER = "pbs.event().job.", "pbs.server()."
_RUNNING = re.compile(r"pbs\.server\(\)\.job\(([^)]*)\)\.")
_QUEUE_DEFAULT = re.compile(r"pbs\.server\(\)\.queue\((\w+)\)\.resources_default\[walltime\]")
_RESOURCE = re.compile(r"Resource_List\[(\w+)\]")


def lines_of(*files: Path) -> dict[str, str]:
    """What the files say, by what stands in front of the first ``=`` of a line."""
    lines = [line for file in files for line in file.read_text().splitlines()]
    return dict(line.partition("=")[::2] for line in lines)


def event_of(lines: dict[str, str]) -> Event:
    """The event of an ``.in`` file, and of the ``.data`` beside it at runjob."""
    kind = lines["pbs.event().type"]
    job_id = None
    if kind == "runjob":
        running = next(match for match in map(_RUNNING.match, lines) if match)
        job_id, prefix = running[1], running[0]
    else:
        prefix = JOB
    told = {name.removeprefix(prefix): value for name, value in lines.items() if prefix in name}
    return Event(KINDS[kind], _job(told, job_id), requestor=lines["pbs.event().requestor"])


def _job(told: dict[str, str], job_id: str | None) -> Job:
    wanted = {
        match[1]: Duration.of(value) if match[1].endswith("walltime") else value
        for name, value in told.items()
        if (match := _RESOURCE.fullmatch(name))
    }
    job = Job(queue=told.get("queue", ""), **wanted)
    job.id, job.Job_Name, job.Job_Owner = job_id, told["Job_Name"], told.get("Job_Owner")
    job.Account_Name, job.project = told.get("Account_Name"), told.get("project")
    job.qtime = int(told["qtime"]) if "qtime" in told else None
    return job


def server_of(lines: dict[str, str]) -> Server:
    """The server, as a ``.data`` file shows it."""
    defaults = {
        match[1]: (value, None)
        for name, value in lines.items()
        if (match := _QUEUE_DEFAULT.fullmatch(name))
    }
    return Server(lines.get(f"{SERVER}default_queue"), queues=defaults)


def set_in(lines: dict[str, str]) -> dict[str, str]:
    """Resources of the job that an ``.out`` file names, walltimes in seconds."""
    found = {}
    for name, value in lines.items():
        match = _RESOURCE.fullmatch(name.removeprefix(JOB))
        if match:
            found[match[1]] = str(Duration.of(value)) if match[1].endswith("walltime") else value
    return found


def resources_of(event: Event) -> dict[str, str]:
    """Resources of the job after the hook, in the same words."""
    return {
        name: str(value) for name, value in event.job.Resource_List.items() if value is not None
    }
