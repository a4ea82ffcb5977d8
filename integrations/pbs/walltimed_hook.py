"""PBS server hook: sets ``soft_walltime``, with which the scheduler plans and which kills nothing.

In mode ``default-limit`` a job that asks for no walltime gets one, which kills: a margin above the
upper end of its prediction's interval, if it has one that is wide enough.

    qmgr -c 'create hook walltimed'
    qmgr -c 'set hook walltimed event = "queuejob,runjob"'
    qmgr -c 'set hook walltimed alarm = 2'
    qmgr -c 'import hook walltimed application/x-python default walltimed_hook.py'
    qmgr -c 'import hook walltimed application/x-config default walltimed_hook.json'

Server hooks run one at a time inside pbs_server, and one that raises or runs into its alarm
rejects the job. So there is a total budget for all exchanges, a pause after a failure, and no way
out of this file but ``accept``. Python 3.6 or newer, standard library only.
"""

import contextlib
import json
import math
import os
import re
import socket
import sys
import time

import pbs

OFF = "/etc/walltimed/walltimed.off"  # made by `walltimed connect --off`: no job is touched
DEFAULTS = {
    "mode": "observe",  # off, observe, order, soft, default-limit
    "host": "127.0.0.1",  # an address, never a name: looking one up has no time limit
    "port": 8580,
    "token_file": "/etc/walltimed/filter-token",  # of scope predict; without it no token is sent
    "cluster": "default",
    "budget_seconds": 0.2,  # for all exchanges of a job, connecting included
    "accuracy": False,  # whether a second call fetches the priority of the user's accuracy group
    "pause_seconds": 15,  # without a call after a failure
    "users": None,  # a list; null means everybody
    "queues": None,
    "predict_again_after": 3600,  # seconds of waiting after which the start is worth a new look
    "soft_floor_seconds": 60,  # a shorter prediction counts as this: PBS prolongs by its length
    "limit_margin": 1.5,  # default-limit: times the upper end of the interval,
    "limit_coverage": 0.9,  # which must hold at least this share of runtimes
    "facts": True,  # whether directory, command line, GPUs, ... are told: docs/api.md
}
SHORTEST_LIMIT = 60  # seconds
FEWEST_RUNS = 5  # of the user's: with fewer no interval is known to have held for them
MARK = "walltimed_prediction"  # a custom string resource, where the site has defined it
LENGTH_RESOURCE = "walltimed_length"  # likewise, whole seconds; job_sort_formula orders by it
PRIORITY_RESOURCE = "walltimed_priority"  # likewise, 1 to 49; for a formula, too
PAUSE = "walltimed_silent_until"
AGENT = "User-Agent: walltimed_hook.py/0.3.0 (%s)"  # release and mode, for `walltimed doctor`
LARGEST_HEAD, LARGEST_ANSWER, PIECE = 8192, 65536, 8192  # bytes
LONGEST = 1e9  # seconds; more is no walltime
PREDICTION_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,9})[ \t]*(?:\r|$)", re.IGNORECASE)
LONGEST_LINE = 4096
UNPRINTABLE, TAG = re.compile(r"[^ -~]+"), re.compile(r"<[^<>]{0,99}>")
UNITS = {"": 1 / 1024, "k": 1, "m": 1024, "g": 1024**2, "t": 1024**3}


class RefusedError(Exception):
    """Raised when the service refuses the fields of this job (400 or 422)."""


def settings():
    """Return the defaults with the changes of the hook's configuration file."""
    name = pbs.hook_config_filename
    if not name:
        return DEFAULTS
    with open(name) as file:
        changed = json.load(file)
    if "token" in changed:
        raise ValueError("token is now in a file: token_file")
    return dict(DEFAULTS, **changed)


def submission_of(event, job, config):
    """Return the fields of the submission for the API; None if the job will have no walltime."""
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
    if config["facts"]:
        fields.update(facts_of(event, job))
    return {key: value for key, value in fields.items() if value is not None}


def facts_of(event, job):
    """Return further facts that PBS knows of a job; one that cannot be read is left out."""
    select = resource(job, "select")
    found = {
        "work_dir": line(variable(job, "PBS_O_WORKDIR")),
        "submit_line": line(TAG.sub(" ", attribute(job, "Submit_arguments"))),
        "gpus": gpus_in(resource(job, "ngpus"), select),
        "array_size": tasks_in(attribute(job, "array_indices_submitted")),
        "constraint": line(select),
        "dependency": line(attribute(job, "depend").partition(":")[0]),
        "submit_host": line(attribute(event, "requestor_host"))[:255],
        "interactive": attribute(job, "interactive").lower() in {"1", "true"},
    }
    return {key: value for key, value in found.items() if value}


def attribute(owner, key):
    """Return an attribute of a job or event as text, which is empty where there is none."""
    try:
        value = getattr(owner, key)
    except Exception:  # of PBS's own kinds
        return ""
    return "" if value is None else str(value)


def resource(job, key):
    """Return a requested resource as text, which is empty where the site has none."""
    try:
        value = job.Resource_List[key]
    except Exception:  # of PBS's own kinds
        return ""
    return "" if value is None else str(value)


def variable(job, key):
    """Return a variable of the job's environment, or an empty text."""
    try:
        return str(job.Variable_List[key])
    except Exception:  # of PBS's own kinds
        return ""


def line(text):
    """Return a path or command line in printable characters."""
    return UNPRINTABLE.sub("?", " ".join(text[:LONGEST_LINE].split()))


def gpus_in(total, select):
    """Return the GPUs of a job, from ``ngpus`` or chunks such as ``2:ncpus=8:ngpus=2``."""
    if total.isdigit():
        return int(total)
    count = 0
    for chunk in select.split("+"):
        times, each = re.match(r"\d{1,9}(?=:|$)", chunk), re.search(r":ngpus=(\d{1,9})", chunk)
        count += (int(times.group()) if times else 1) * int(each.group(1)) if each else 0
    return count


def tasks_in(indices):
    """Return the number of tasks of an array of ``1-10:2,15``; 0 without."""
    count = 0
    for part in indices.partition("%")[0].split(","):
        found = re.match(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?$", part)
        if not found:
            return 0
        first, last, step = found.groups()
        count += max(0, (int(last or first) - int(first)) // max(1, int(step or 1)) + 1)
    return count


def queue_of(job):
    """Return the job's queue; at queuejob a job without -q is not yet in the default queue."""
    return queue_name(job.queue) or queue_name(pbs.server().default_queue)


def queue_name(queue):
    """Return the name of a queue from an object, a name or NAME@SERVER."""
    return name(str(getattr(queue, "name", queue) or "").partition("@")[0])


def default_walltime(queue):
    """Return the seconds that PBS gives a job without a walltime, searched as PBS does."""
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
    """Return the seconds of a pbs.duration, or of text, as queues and server have it."""
    if isinstance(duration, str):
        duration = pbs.duration(duration)
    return int(duration) if duration else None


def name(value):
    """Return a name as text, cut to 255 characters."""
    return str(value)[:255] if value is not None and str(value) else None


def owner_of(job):
    """Return the user who submitted the job; at its start the requestor is the scheduler."""
    return name(str(job.Job_Owner).split("@")[0])


def project_of(job):
    """Return the project of the job, else its account."""
    project = name(job.project)
    return project if project and project != "_pbs_project_default" else name(job.Account_Name)


def processors_of(job):
    """Return the requested cores, from ``ncpus`` or chunks such as ``2:ncpus=8+1:ncpus=4``."""
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
    """Return the KiB of a size such as ``16gb``."""
    match = re.match(r"(\d+)([kmgt]?)b?$", str(size).lower())
    return int(match.group(1)) * UNITS[match.group(2)] or None if match else None


def ask(path, question, config, deadline):
    """Return the service's answer before the deadline; raises an error otherwise."""
    body = json.dumps(question).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: walltimed", "Connection: close"]
    lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines.append(AGENT % config["mode"])
    token = token_in(config["token_file"])
    if token:
        lines.append("Authorization: Bearer " + token)
    content = exchange("\r\n".join([*lines, "", ""]).encode() + body, config, deadline)
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


def exchange(message, config, deadline):
    """Send a request and return the body of the answer; each step gets the rest of the budget."""
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
    """Return the body of an answer with status 200 and a length; ``receive`` reads a piece."""
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
    """Return whether soft_walltime may be set: not for shrink-to-fit jobs or if a user did."""
    wanted = job.Resource_List
    if wanted["min_walltime"] is not None or wanted["max_walltime"] is not None:
        return False
    if event.type == pbs.QUEUEJOB:
        return wanted["soft_walltime"] is None
    waited = time.time() - (seconds(job.qtime) or time.time())
    is_marked = mark_of(job) is not None
    return waited > config["predict_again_after"] and (is_marked or wanted["soft_walltime"] is None)


def mark_of(job):
    """Return the prediction id in the mark of the job."""
    try:
        return job.Resource_List[MARK]
    except Exception:  # the site has not defined the resource
        return None


def set_mark(job, prediction_id):
    """Store the prediction id, and the one it replaces, in the mark; the log returns both."""
    if not is_prediction_id(prediction_id):
        return
    replaced = str(mark_of(job) or "").partition(".")[0]
    mark = f"{prediction_id}.{replaced}" if is_prediction_id(replaced) else prediction_id
    try:
        job.Resource_List[MARK] = mark
    except Exception:  # the site has not defined the resource
        log(pbs.LOG_DEBUG, f"no resource named {MARK}")


def log(level, message):
    """Write a line to the server's log, if this PBS can.

    OpenPBS 23.06 that was built with Python 3.10 or newer raises SystemError instead.
    """
    with contextlib.suppress(Exception):
        pbs.logmsg(level, f"walltimed: {message}")


def set_number(job, resource, number):
    """Store a whole number, by which the scheduler's formula orders the queue."""
    try:
        job.Resource_List[resource] = number
    except Exception:  # the site has not defined the resource
        log(pbs.LOG_DEBUG, f"no resource named {resource}")


def priority_of(submission, config, deadline):
    """Return the priority of the accuracy group of the job's user, a whole number."""
    waiting = {
        "job_id": "submitted",
        "user": submission.get("user"),
        "requested_walltime": submission["requested_walltime"],
        "submit_time": time.time(),
    }
    question = {"cluster": config["cluster"], "jobs": [waiting]}
    answer = ask("/v1/priorities", question, config, deadline)
    return int(positive(answer["priorities"][0]["initial_priority"]))


def is_prediction_id(value):
    """Return whether a value has the form of a prediction id."""
    return isinstance(value, str) and PREDICTION_ID.fullmatch(value) is not None


def apply(job, answer, submission, config):
    """Store the prediction in the job, and set its soft walltime or limit if the mode says so."""
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
    if config["mode"] in {"order", "soft", "default-limit"}:
        length = math.ceil(
            max(mean_of(answer, walltime) or predicted, config["soft_floor_seconds"])
        )
        set_number(job, LENGTH_RESOURCE, min(length, int(limit or walltime)))
    if config["mode"] == "soft":
        soft = math.ceil(max(upper_of(answer), predicted, config["soft_floor_seconds"]))
        if soft < walltime:
            job.Resource_List["soft_walltime"] = pbs.duration(soft)


def upper_of(answer):
    """Return the upper end of the interval, which one job in twenty outlives; 0 without one."""
    interval = answer.get("interval")
    return positive(interval["upper"]) if interval else 0


def mean_of(answer, walltime):
    """Return the mean runtime; None if the answer has none."""
    if answer.get("mean_walltime") is None:
        return None
    mean = positive(answer["mean_walltime"])
    if mean > walltime:
        raise ValueError("the mean is above the request")
    return mean


def default_limit(answer, walltime, config):
    """Return the default limit in whole seconds, below the walltime that PBS would give the job.

    None if the answer has no interval that is wide enough and rests on the user's history, or if
    all known runs lasted next to nothing: they failed at once, or their records are wrong.
    """
    interval = answer.get("interval")
    if not interval or answer["basis"].get("reason") != "history":
        return None
    if positive(answer["basis"]["jobs"]) < FEWEST_RUNS:
        return None
    if positive(interval["coverage"]) < config["limit_coverage"]:
        return None
    longest = max(positive(interval["upper"]), positive(answer["predicted_walltime"]))
    if longest <= SHORTEST_LIMIT:
        return None
    margin = max(1.0, positive(config["limit_margin"]))
    limit = math.ceil(longest * margin)
    return limit if limit < walltime else None


def positive(value):
    """Return the value if it is a number in range above 0; raises an error otherwise."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 < value <= LONGEST:
        raise ValueError(f"no walltime: {str(value)[:40]}")
    return value


def concerns(config, submission):
    """Return whether the site has allowed predictions for this user and queue."""
    users, queues = config["users"], config["queues"]
    is_user = users is None or submission.get("user") in users
    return is_user and (queues is None or submission.get("queue") in queues)


def handle(event):
    """Handle one event: ask the service about the job, and set its resources."""
    if os.path.exists(OFF):
        return
    config = settings()
    job = event.job
    if config["mode"] == "off" or time.monotonic() < getattr(sys, PAUSE, 0):
        return
    submission = submission_of(event, job, config)
    if submission is None or not concerns(config, submission):
        return
    if not is_ours_to_set(event, job, config):
        return
    deadline = time.monotonic() + config["budget_seconds"]
    try:
        apply(job, ask("/v1/predictions", submission, config, deadline), submission, config)
        if config["accuracy"] and event.type == pbs.QUEUEJOB:
            set_number(job, PRIORITY_RESOURCE, priority_of(submission, config, deadline))
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
    log(pbs.LOG_WARNING, f"{type(error).__name__}: {error}")
event.accept()
