"""The queue and the machine of PBS, handed over to walltimed again and again: walltimed_pbs.py.

Read by `qstat -f -t -F json` and `pbsnodes -a -F json`, and without JSON where PBS prints it
broken. walltimed then tells users when their jobs
will start.
"""

import contextlib
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import walltimed_accounting

CONF = "/etc/pbs.conf"
NO_LIMIT = 365 * 24 * 3600  # stands for a walltime that a job does not have
DATE = "%a %b %d %H:%M:%S %Y"
UNUSABLE = re.compile(r"down|offline|unknown|stale|provisioning|maintenance|sleep")
RUNNING, WAITING, HELD = ("R", "E", "S", "U"), ("Q",), ("H", "W", "T")
LONGEST, MOST_CORES, MOST_MEMORY = 1e9, 2**31 - 1, 1e15  # seconds, KiB: the service takes no more
LONGEST_PAUSE = 300.0
REFUSED = (401, 403)
ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
GOOD_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|[\"\\/bfnrt])")
BARE = re.compile(r'^(\s*"(?:[^"\\\n]|\\.)*"\s*:\s*)([^\s"{\[][^\n]*?)(\s*,?\s*)$', re.MULTILINE)
PLAIN = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?|true|false|null")
UNITS = {"": 1.0 / 1024, "k": 1.0, "m": 1024.0, "g": 1024.0**2, "t": 1024.0**3}
MEMORY = re.compile(r"(\d+)([kmgt]?)(b|w)?", re.IGNORECASE)


def program(name):
    """Return the path of a PBS command: from PATH, else from PBS_EXEC in pbs.conf."""
    found = shutil.which(name)
    if found:
        return found
    try:
        with open(os.environ.get("PBS_CONF_FILE", CONF)) as file:
            settings = dict(line.strip().partition("=")[::2] for line in file)
    except OSError:
        return name
    return os.path.join(settings.get("PBS_EXEC", "/opt/pbs"), "bin", name)


def shown_by(command, timeout):
    """Return what a PBS command shows, from its JSON; where that is broken, from its text."""
    try:
        return document_in(printed_by([*command, "-F", "json"], timeout), command[0])
    except ValueError as error:
        records = records_in(printed_by(command, timeout))
        if not (records["Jobs"] or records["nodes"]):
            raise
        print(f"{error}; it is read without -F json", file=sys.stderr, flush=True)
        return records


def printed_by(command, timeout):
    """Return the output of a PBS command; names may contain bytes that are not UTF-8."""
    printed = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, check=False
    )
    if printed.returncode:
        said = printed.stderr.decode("utf-8", "replace").strip()
        raise OSError(f"{command[0]} failed: {said[:300]}")
    return printed.stdout.decode("utf-8", "replace")


MEMBER = re.compile(
    r'^([ \t]*"[^"\n]*"[ \t]*:[ \t]*)"(.*?)"([ \t]*,?[ \t]*\n)(?=[ \t]*(?:"[^"\n]*"[ \t]*:|[}\]]))',
    re.MULTILINE | re.DOTALL,
)
EMPTY = re.compile(r'^([ \t]*"[^"\n]*"[ \t]*:)[ \t]*(,?)[ \t]*$', re.MULTILINE)
QUOTE = re.compile(r'(\\.)|"', re.DOTALL)
OVER_LIMIT = re.compile(
    r"would exceed|limit (?:has been )?reached|per-(?:user|group|project)|job limit|max_run",
    re.IGNORECASE,
)
"""Comments of jobs that wait for a limit of a user, group, project, queue or array."""
INDEX = re.compile(r"\[\d+\]")
OF_ARRAY = re.compile(r"subjobs", re.IGNORECASE)


RECORD = re.compile(r"(Job Id: +)?(\S+)\s*")
ATTRIBUTE = re.compile(r"\s+([A-Za-z_]\w*)(?:\.(\w+))? = ?(.*)")


def records_in(text):
    """Return the jobs of `qstat -f` or the nodes of `pbsnodes -a`, without JSON.

    A value that goes on in further lines ends with its first one: none that matters is so long.
    """
    found = {"Jobs": {}, "nodes": {}}
    record = {}
    for line in text.splitlines():
        head = RECORD.fullmatch(line)
        attribute = ATTRIBUTE.fullmatch(line)
        if head and (head[1] or not found["Jobs"]):
            record = found["Jobs" if head[1] else "nodes"].setdefault(head[2], {})
        elif attribute and attribute[2]:
            record.setdefault(attribute[1], {}).setdefault(attribute[2], attribute[3])
        elif attribute:
            record.setdefault(attribute[1], attribute[3])
    return found


def document_in(text, source):
    """Decode JSON of PBS; before 23.06 a user's variable can make it invalid, which is repaired.

    Such are FOO=005, which stands there as a number, and a backslash before a comma.
    """
    try:
        return json.loads(text, strict=False)
    except ValueError:
        mended = BARE.sub(quoted, EMPTY.sub(r'\1""\2', ESCAPE.sub(known_escape, text)))
    with contextlib.suppress(ValueError):
        return json.loads(mended, strict=False)
    mended = MEMBER.sub(lambda found: escaped(found, source), mended)
    try:
        return json.loads(mended, strict=False)
    except ValueError as error:
        line = "".join(mended.splitlines()[error.lineno - 1 : error.lineno]).strip()
        raise ValueError(f"{source} printed what is no JSON: {error}: {line[:60]!r}") from error


def escaped(member, source):
    """Return a member of which the quotes within the value are escaped."""
    start, value, end = member.groups()
    mended = QUOTE.sub(lambda found: found[1] or '\\"', value)
    if mended != value:
        print(f"{source}: quotes in the value of {start.strip()} are escaped", file=sys.stderr)
    return f'{start}"{mended}"{end}'


def known_escape(match):
    """Return a valid JSON escape unchanged, else the character after the backslash."""
    return match.group() if GOOD_ESCAPE.fullmatch(match.group()) else match.group(1)


def quoted(match):
    """Return a member with quotes around its value, unless that is a number."""
    start, value, end = match.groups()
    return start + (value if PLAIN.fullmatch(value) else json.dumps(value)) + end


def seconds(clock):
    """Return the seconds of HH:MM:SS or of a number; None for other values."""
    total = 0
    for part in str(clock or "").split(":"):
        if not part.isdecimal():
            return None
        total = 60 * total + int(part)
    return total or None


def instant(date):
    """Return Unix seconds of a date of qstat, in this machine's zone; None for other text."""
    try:
        return time.mktime(time.strptime(str(date), DATE))
    except ValueError:
        return None


def name(value):
    """Return a name within the bounds of the API; None for an empty one."""
    text = "".join(c if c.isprintable() else "?" for c in str(value or ""))[:255]
    return text or None


def kibibytes(written):
    """Return the KiB of a size such as 500mb; None for other text."""
    found = MEMORY.fullmatch(str(written or ""))
    return int(found.group(1)) * UNITS[found.group(2).lower()] if found else None


def number_of(value, default=0):
    """Return a whole number from text or a number, else ``default``."""
    try:
        return int(float(value))
    except (TypeError, ValueError):
        return default


def job_of(job_id, shown):
    """Return the fields of one job for the API; None for jobs that neither run nor wait.

    Whoever asks for more than any machine has would else keep the whole queue from being taken.
    """
    asked = shown.get("Resource_List") or {}
    submitted = instant(shown.get("ctime"))
    if submitted is None or job_id.split(".")[0].endswith("[]"):
        return None
    cores = min(max(1, number_of(asked.get("ncpus"), 1)), MOST_CORES)
    memory = kibibytes(asked.get("mem"))
    project = name(shown.get("project"))
    job = {
        "job_id": job_id,
        "submit_time": submitted,
        "requested_walltime": min(seconds(asked.get("walltime")) or NO_LIMIT, LONGEST),
        "requested_processors": cores,
        "requested_memory": min(memory / cores, MOST_MEMORY) if memory else None,
        "user": name(str(shown.get("euser") or shown.get("Job_Owner", "")).split("@")[0]),
        "group": name(shown.get("egroup")),
        "project": name(shown.get("Account_Name"))
        if project in (None, "_pbs_project_default")
        else project,
        "queue": name(shown.get("queue")),
        "application": name(shown.get("Job_Name")),
    }
    return {field: value for field, value in job.items() if value is not None}


def queue_of(shown):
    """Return running and waiting jobs; waiting ones by priority, then as the server lists them."""
    running, waiting = [], []
    limits = array_limits(shown)
    for job_id, job in (shown.get("Jobs") or {}).items():
        fields, state = job_of(job_id, job), job.get("job_state")
        if fields is None:
            continue
        started = instant(job.get("stime"))
        array = INDEX.sub("[]", job_id) if "[" in job_id else None
        if array:
            fields["array"] = array
        if limits.get(array):
            fields["array_limit"] = limits[array]
        if state in RUNNING and started is not None:
            fields["start_time"] = max(started, fields["submit_time"])
            running.append(fields)
        elif state in WAITING + HELD:
            fields["held"] = state in HELD
            reason = name(job.get("comment"))
            waits_for_tasks = "array_limit" in fields and OF_ARRAY.search(reason or "")
            if reason and OVER_LIMIT.search(reason) and not waits_for_tasks:
                fields["held"] = True  # Others start first.
            if reason:
                fields["reason"] = reason
            waiting.append((-number_of(job.get("Priority")), fields["submit_time"], fields))
    waiting.sort(key=lambda each: each[:2])
    return {"running": running, "waiting": [fields for _, _, fields in waiting]}


def array_limits(shown):
    """Return the most tasks that run at once, by array (max_run_subjobs)."""
    jobs = (shown.get("Jobs") or {}).items()
    return {job_id: number_of(job.get("max_run_subjobs")) for job_id, job in jobs if "[]" in job_id}


def sizes_of(shown):
    """Return the usable processors by the queue their nodes are bound to; None is no queue."""
    sizes = {}
    for node in (shown.get("nodes") or {}).values():
        there = number_of((node.get("resources_available") or {}).get("ncpus"))
        taken = number_of((node.get("resources_assigned") or {}).get("ncpus"))
        usable = taken if UNUSABLE.search(str(node.get("state", ""))) else there
        queue = name(node.get("queue"))
        sizes[queue] = sizes.get(queue, 0) + usable
    return sizes


def pools_of(shown):
    """Return the pools: nodes bound to a queue are a pool of their own."""
    pools = [
        {"processors": size, "queues": [queue] if queue else []}
        for queue, size in sizes_of(shown).items()
        if size > 0
    ]
    # The first serves all queues that no pool names.
    return sorted(pools, key=lambda pool: (pool["queues"] != [], pool["queues"]))


def hold_back(waiting, sizes):
    """Mark jobs whose nodes are all down as held; else the service would use another pool."""
    for job in waiting:
        if not sizes.get(job.get("queue"), sizes.get(None, 0)):
            job["held"] = True


def snapshot(options):
    """Return the body of ``PUT /v1/clusters/{cluster}/snapshot``."""
    taken_at = time.time()
    jobs = queue_of(shown_by([options.qstat, "-f", "-t"], options.timeout))
    nodes = shown_by([options.pbsnodes, "-a"], options.timeout)
    pools = pools_of(nodes)
    if not pools:
        raise ValueError("pbsnodes shows no processors that run jobs")
    hold_back(jobs["waiting"], sizes_of(nodes))
    rules = {"policy": "easy", "depth": options.depth}
    return dict(jobs, taken_at=taken_at, pools=pools, **rules)


def hand_over(body, options):
    """Send the body; returns when the service has accepted it."""
    cluster = urllib.parse.quote(options.cluster, safe="")
    url = options.url.rstrip("/") + f"/v1/clusters/{cluster}/snapshot"
    request = urllib.request.Request(url, data=json.dumps(body).encode(), method="PUT")
    request.add_header("Content-Type", "application/json")
    if options.token_file:
        token = walltimed_accounting.token_in(options.token_file)
        request.add_header("Authorization", "Bearer " + token)
    with urllib.request.urlopen(request, timeout=options.timeout):
        pass  # 202 says that it is taken


def advice_about(error, options):
    """Return the failure as text, with the remedy, if there is one."""
    if getattr(error, "code", None) in REFUSED:
        return (
            "the service refuses {}: issue a token with `walltimed token issue pbs --scope ingest` "
            "and name its file by --token-file".format(
                options.token_file or "calls without a token"
            )
        )
    return str(error)


def follow(options, stop):
    """Hand the queue over until ``stop``; each new failure is printed once."""
    told, pause = None, options.queue_interval
    while True:
        try:
            body = snapshot(options)
            hand_over(body, options)
            if told:
                print("the queue is handed over again", file=sys.stderr, flush=True)
            told, pause = None, options.queue_interval
        except (
            OSError,
            ValueError,
            http.client.HTTPException,
            subprocess.SubprocessError,
        ) as error:
            trouble = advice_about(error, options)
            if trouble != told:
                print("will try again: " + trouble, file=sys.stderr, flush=True)
            told, pause = trouble, min(LONGEST_PAUSE, 2 * pause)
            if options.once:
                return 1
        if options.once:
            print("{} running, {} waiting".format(len(body["running"]), len(body["waiting"])))
            return 0
        if stop.wait(pause):
            return 0
