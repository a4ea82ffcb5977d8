"""PBS server hook: sets ``soft_walltime``, with which the scheduler plans and which kills nothing.

    qmgr -c 'create hook walltimed'
    qmgr -c 'set hook walltimed event = "queuejob,runjob"'
    qmgr -c 'set hook walltimed alarm = 2'
    qmgr -c 'import hook walltimed application/x-python default walltimed_hook.py'
    qmgr -c 'import hook walltimed application/x-config default walltimed_hook.json'

Server hooks run one at a time inside pbs_server, and one that raises or runs into its alarm
rejects the job. So there is one exchange within a total budget, a pause after a failure, and no
way out of this file but ``accept``. Python 3.6 or newer, standard library only.
"""

import json
import math
import re
import socket
import sys
import time

import pbs

DEFAULTS = {
    "mode": "observe",  # off, observe, soft
    "host": "127.0.0.1",  # an address, never a name: looking one up has no time limit
    "port": 8580,
    "token": None,  # with scope predict, where the service asks for one
    "cluster": "default",
    "budget_seconds": 0.2,  # for the whole exchange, connecting included
    "pause_seconds": 15,  # without a call after a failure
    "users": None,  # a list; null means everybody
    "queues": None,
    "predict_again_after": 3600,  # seconds of waiting after which the start is worth a new look
}
MARK = "walltimed_prediction"  # a custom string resource, where the site has defined it
PAUSE = "walltimed_silent_until"
LARGEST_ANSWER = 65536
LONGEST = 1e9  # seconds; more is no walltime
UNITS = {"": 1 / 1024, "k": 1, "m": 1024, "g": 1024**2, "t": 1024**3}


def settings():
    """The defaults and what the hook's configuration file changes."""
    name = pbs.hook_config_filename
    if not name:
        return DEFAULTS
    with open(name) as file:
        return dict(DEFAULTS, **json.load(file))


def submission_of(event, job, config):
    """The job in the words of the API; nothing if it asks for no walltime."""
    is_start = event.type == pbs.RUNJOB
    walltime = seconds(job.Resource_List["walltime"])
    if not walltime:
        return None
    processors = processors_of(job)
    memory = kibibytes(job.Resource_List["mem"])
    fields = {
        "cluster": config["cluster"],
        "job_id": name(job.id) if is_start else None,
        "user": owner_of(job) if is_start else name(event.requestor),
        "project": project_of(job),
        "queue": name(getattr(job.queue, "name", job.queue)),
        "application": name(job.Job_Name),
        "requested_walltime": walltime,
        "requested_processors": processors,
        "requested_memory": memory / (processors or 1) if memory else None,
    }
    return {key: value for key, value in fields.items() if value is not None}


def seconds(duration):
    """Seconds of a pbs.duration."""
    return None if duration is None else int(duration)


def name(value):
    """A name as text, not endless."""
    return str(value)[:255] if value is not None and str(value) else None


def owner_of(job):
    """Who submitted the job: at its start the requestor is the scheduler."""
    return name(str(job.Job_Owner).split("@")[0])


def project_of(job):
    """The project that was named, else the account."""
    project = name(job.project)
    return project if project and project != "_pbs_project_default" else name(job.Account_Name)


def processors_of(job):
    """Cores asked for, as ``ncpus`` or as chunks: ``2:ncpus=8+1:ncpus=4``."""
    counted = job.Resource_List["ncpus"]
    if counted is not None:
        return int(counted) or None
    total = 0
    for chunk in str(job.Resource_List["select"] or "").split("+"):
        chunks = re.match(r"\d+", chunk)
        cores = re.search(r"ncpus=(\d+)", chunk)
        total += (int(chunks.group()) if chunks else 1) * (int(cores.group(1)) if cores else 1)
    return total or None


def kibibytes(size):
    """KiB of ``16gb``."""
    match = re.match(r"(\d+)([kmgt]?)b?$", str(size).lower())
    return int(match.group(1)) * UNITS[match.group(2)] or None if match else None


def ask(submission, config):
    """The service's answer, within the budget or not at all."""
    body = json.dumps(submission).encode()
    lines = ["POST /v1/predictions HTTP/1.1", "Host: walltimed", "Connection: close"]
    lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    if config["token"]:
        lines.append("Authorization: Bearer " + config["token"])
    head, content = exchange("\r\n".join([*lines, "", ""]).encode() + body, config)
    if not re.match(rb"HTTP/1\.\d 200 ", head):
        raise ValueError(f"HTTP answer: {head[:40]!r}")
    return json.loads(content.decode())


def exchange(message, config):
    """Head and body of what comes back; every step gets what is left of the budget."""
    deadline = time.monotonic() + config["budget_seconds"]

    def within():
        left = deadline - time.monotonic()
        if left <= 0:
            raise socket.timeout("the budget is used up")
        return left

    address = config["host"]
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    socket.inet_pton(family, address)  # refuses a name
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(within())
        connection.connect((address, config["port"]))
        connection.sendall(message)
        data = b""
        while len(data) < LARGEST_ANSWER:
            connection.settimeout(within())
            chunk = connection.recv(LARGEST_ANSWER)
            if not chunk:
                break
            data += chunk
    head, _, content = data.partition(b"\r\n\r\n")
    return head, content


def is_ours_to_set(event, job, config):
    """Shrink-to-fit jobs take no soft walltime; one that somebody else has set stays."""
    wanted = job.Resource_List
    if wanted["min_walltime"] is not None or wanted["max_walltime"] is not None:
        return False
    if event.type == pbs.QUEUEJOB:
        return wanted["soft_walltime"] is None
    waited = time.time() - (seconds(job.qtime) or time.time())
    is_marked = mark_of(job) is not None
    return waited > config["predict_again_after"] and (is_marked or wanted["soft_walltime"] is None)


def mark_of(job):
    """The prediction noted down in the job."""
    try:
        return job.Resource_List[MARK]
    except Exception:  # the site has not defined the resource
        return None


def set_mark(job, prediction_id):
    """Note the prediction down; it comes back in the accounting log."""
    try:
        job.Resource_List[MARK] = prediction_id
    except Exception:  # the site has not defined the resource
        pbs.logmsg(pbs.LOG_DEBUG, f"walltimed: no resource named {MARK}")


def apply(job, answer, mode):
    """Note the prediction down; in mode soft, let the scheduler plan with it."""
    predicted = float(answer["predicted_walltime"])
    if not 0 < predicted < LONGEST:
        raise ValueError(f"no walltime: {predicted!r}")
    set_mark(job, str(answer["prediction_id"]))
    soft = max(1, math.ceil(predicted))
    if mode == "soft" and soft < seconds(job.Resource_List["walltime"]):
        job.Resource_List["soft_walltime"] = pbs.duration(soft)


def concerns(config, submission):
    """Whether the site has allowed it for this user and queue."""
    users, queues = config["users"], config["queues"]
    is_user = users is None or submission.get("user") in users
    return is_user and (queues is None or submission.get("queue") in queues)


def handle(event):
    """One event, from the job to what is set in it."""
    config = settings()
    job = event.job
    if config["mode"] == "off" or time.time() < getattr(sys, PAUSE, 0):
        return
    submission = submission_of(event, job, config)
    if submission is None or not concerns(config, submission):
        return
    if not is_ours_to_set(event, job, config):
        return
    try:
        apply(job, ask(submission, config), config["mode"])
    except Exception:
        # Kept on a module, which outlives this hook's own names.
        setattr(sys, PAUSE, time.time() + config["pause_seconds"])
        raise


event = pbs.event()
try:
    handle(event)
except Exception as error:  # anything that escapes would reject the job
    pbs.logmsg(pbs.LOG_WARNING, f"walltimed: {type(error).__name__}: {error}")
event.accept()
