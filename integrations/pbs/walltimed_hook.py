"""PBS server hook: sets ``soft_walltime``, with which the scheduler plans and which kills nothing.

In mode ``default-limit`` a job that asks for no walltime gets one, which kills: a margin above the
upper end of its prediction's interval, if it has one that is wide enough.

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
import os
import re
import socket
import sys
import time

import pbs

DEFAULTS = {
    "mode": "observe",  # off, observe, soft, default-limit
    "host": "127.0.0.1",  # an address, never a name: looking one up has no time limit
    "port": 8580,
    "token_file": "/etc/walltimed/filter-token",  # of scope predict; without it no token is sent
    "cluster": "default",
    "budget_seconds": 0.2,  # for the whole exchange, connecting included
    "pause_seconds": 15,  # without a call after a failure
    "users": None,  # a list; null means everybody
    "queues": None,
    "predict_again_after": 3600,  # seconds of waiting after which the start is worth a new look
    "soft_floor_seconds": 60,  # a shorter prediction counts as this: PBS prolongs by its length
    "limit_margin": 1.5,  # default-limit: times the upper end of the interval,
    "limit_coverage": 0.9,  # which must hold at least this share of runtimes
}
SHORTEST_LIMIT = 60  # seconds
MARK = "walltimed_prediction"  # a custom string resource, where the site has defined it
PAUSE = "walltimed_silent_until"
AGENT = "User-Agent: walltimed_hook.py/0.2.0 (%s)"  # release and mode, for `walltimed doctor`
LARGEST_HEAD, LARGEST_ANSWER, PIECE = 8192, 65536, 8192  # bytes
LONGEST = 1e9  # seconds; more is no walltime
PREDICTION_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,9})[ \t]*(?:\r|$)", re.IGNORECASE)
UNITS = {"": 1 / 1024, "k": 1, "m": 1024, "g": 1024**2, "t": 1024**3}


class RefusedError(Exception):
    """The service refuses this job's walltime, memory or names, and no other's."""


def settings():
    """The defaults and what the hook's configuration file changes."""
    name = pbs.hook_config_filename
    if not name:
        return DEFAULTS
    with open(name) as file:
        changed = json.load(file)
    if "token" in changed:
        raise ValueError("token is now in a file: token_file")
    return dict(DEFAULTS, **changed)


def submission_of(event, job, config):
    """The job in the words of the API; nothing if it will have no walltime."""
    is_start = event.type == pbs.RUNJOB
    queue = queue_of(job)
    walltime = seconds(job.Resource_List["walltime"]) or default_walltime(queue)
    if not walltime:
        return None
    processors = processors_of(job)
    memory = kibibytes(job.Resource_List["mem"])
    fields = {
        "cluster": config["cluster"],
        "job_id": name(job.id) if is_start else None,
        "user": owner_of(job) if is_start else name(event.requestor),
        "project": project_of(job),
        "queue": queue,
        "application": name(job.Job_Name),
        "requested_walltime": walltime,
        "requested_processors": processors,
        "requested_memory": memory / (processors or 1) if memory else None,
    }
    return {key: value for key, value in fields.items() if value is not None}


def queue_of(job):
    """The job's queue: at queuejob PBS has not yet sent one without -q to the default queue."""
    return queue_name(job.queue) or queue_name(pbs.server().default_queue)


def queue_name(queue):
    """The name of a queue, which is an object or its name, perhaps with its server's."""
    return name(str(getattr(queue, "name", queue) or "").partition("@")[0])


def default_walltime(queue):
    """Seconds that PBS gives a job without a walltime, looked for where and as it does."""
    server = pbs.server()
    owners = (server.queue(queue) if queue else None, server)
    for limits in ("resources_default", "resources_max"):
        for owner in owners:
            resources = getattr(owner, limits, None)
            given = seconds(resources["walltime"]) if resources else None
            if given:
                return given
    return None


def seconds(duration):
    """Seconds of a pbs.duration; the defaults of queues and of the server come as text."""
    if isinstance(duration, str):
        duration = pbs.duration(duration)
    return int(duration) if duration else None


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
    lines.append(AGENT % config["mode"])
    token = token_in(config["token_file"])
    if token:
        lines.append("Authorization: Bearer " + token)
    content = exchange("\r\n".join([*lines, "", ""]).encode() + body, config)
    return json.loads(content.decode())


def token_in(path):
    """Return the token in a file, None without one; it is read for every call.

    What else a file holds is not repeated, as the token may be in it.
    """
    if not path or not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        words = file.read(4096).split()
    if len(words) != 1:
        raise ValueError(f"{path} does not hold one token and nothing else")
    return words[0].decode("ascii")


def exchange(message, config):
    """The body of what comes back; every step gets what is left of the budget."""
    deadline = time.monotonic() + config["budget_seconds"]
    address = config["host"]
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    socket.inet_pton(family, address)  # refuses a name

    with socket.socket(family, socket.SOCK_STREAM) as connection:

        def limited():
            left = deadline - time.monotonic()
            if left <= 0:
                raise socket.timeout("the budget is used up")
            connection.settimeout(left)
            return connection

        def receive():
            piece = limited().recv(PIECE)
            if not piece:
                raise ValueError("the answer is cut short")
            return piece

        limited().connect((address, config["port"]))
        limited().sendall(message)
        return body_of(receive)


def body_of(receive):
    """The body of an answer 200, which says how long it is; ``receive`` gives the next piece."""
    head, end, body = b"", b"", b""
    while not end:
        if len(head) > LARGEST_HEAD:
            raise ValueError("a head without end")
        head, end, body = (head + receive()).partition(b"\r\n\r\n")
    if re.match(rb"HTTP/1\.\d (400|422) ", head):
        raise RefusedError("the service takes no such job")
    if not re.match(rb"HTTP/1\.\d 200 ", head):
        raise ValueError(f"HTTP answer: {head[:40]!r}")
    length = LENGTH.search(head)
    if not length or int(length.group(1)) > LARGEST_ANSWER:
        raise ValueError("an answer of no length, or too long")
    while len(body) < int(length.group(1)):
        body += receive()
    return body[: int(length.group(1))]


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
    """Note the prediction down, before the one that it replaces: both come back in the log."""
    if not is_prediction_id(prediction_id):
        return
    replaced = str(mark_of(job) or "").partition(".")[0]
    mark = f"{prediction_id}.{replaced}" if is_prediction_id(replaced) else prediction_id
    try:
        job.Resource_List[MARK] = mark
    except Exception:  # the site has not defined the resource
        pbs.logmsg(pbs.LOG_DEBUG, f"walltimed: no resource named {MARK}")


def is_prediction_id(value):
    """Whether the service could have named a prediction so."""
    return isinstance(value, str) and PREDICTION_ID.fullmatch(value) is not None


def apply(job, answer, submission, config):
    """Note the prediction down; let the scheduler plan with it, as far as the mode goes."""
    walltime = submission["requested_walltime"]
    predicted = positive(answer["predicted_walltime"])
    if predicted > walltime:
        raise ValueError("the prediction is above the request")
    limit = None
    if config["mode"] == "default-limit" and job.Resource_List["walltime"] is None:
        limit = default_limit(answer, walltime, config)
    set_mark(job, answer.get("prediction_id"))
    if limit:
        job.Resource_List["walltime"] = pbs.duration(limit)
    soft = math.ceil(max(predicted, config["soft_floor_seconds"]))
    if config["mode"] in {"soft", "default-limit"} and soft < (limit or walltime):
        job.Resource_List["soft_walltime"] = pbs.duration(soft)


def default_limit(answer, walltime, config):
    """A limit to kill at, in whole seconds, below the walltime that PBS is about to give the job.

    None if the answer has no interval that is wide enough and rests on the user's history.
    """
    interval = answer.get("interval")
    if not interval or answer["basis"].get("reason") != "history":
        return None
    if positive(interval["coverage"]) < config["limit_coverage"]:
        return None
    longest = max(positive(interval["upper"]), positive(answer["predicted_walltime"]))
    margin = max(1.0, positive(config["limit_margin"]))
    limit = math.ceil(max(SHORTEST_LIMIT, longest * margin))
    return limit if limit < walltime else None


def positive(value):
    """The value, if it is a number of seconds above 0 in range; anything else changes nothing."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 < value <= LONGEST:
        raise ValueError(f"no walltime: {str(value)[:40]}")
    return value


def concerns(config, submission):
    """Whether the site has allowed it for this user and queue."""
    users, queues = config["users"], config["queues"]
    is_user = users is None or submission.get("user") in users
    return is_user and (queues is None or submission.get("queue") in queues)


def handle(event):
    """One event, from the job to what is set in it."""
    config = settings()
    job = event.job
    if config["mode"] == "off" or time.monotonic() < getattr(sys, PAUSE, 0):
        return
    submission = submission_of(event, job, config)
    if submission is None or not concerns(config, submission):
        return
    if not is_ours_to_set(event, job, config):
        return
    try:
        apply(job, ask(submission, config), submission, config)
    except RefusedError:  # or any user could keep the hook from the jobs of all others
        raise
    except Exception:
        # Kept on a module, which outlives this hook's own names; by a clock that nobody sets.
        setattr(sys, PAUSE, time.monotonic() + config["pause_seconds"])
        raise


event = pbs.event()
try:
    handle(event)
except Exception as error:  # anything that escapes would reject the job
    pbs.logmsg(pbs.LOG_WARNING, f"walltimed: {type(error).__name__}: {error}")
event.accept()
