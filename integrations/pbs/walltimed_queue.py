"""The queue and the machine of PBS, handed over to walltimed again and again: walltimed_pbs.py.

Read by `qstat -f -t -F json` and `pbsnodes -a -F json`, and without JSON where what is printed is
beyond repair. walltimed then tells users when their jobs will start.
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
LATE_SHARE = 0.8  # of its walltime that a job has run for before it may be extended
LARGEST_ANSWER, MOST_NOTED = 1 << 24, 100_000
OFF = "/etc/walltimed/walltimed.off"
REFUSED = (401, 403)
ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
GOOD_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|[\"\\/bfnrt])")
BARE = re.compile(r'^(\s*"(?:[^"\\\n]|\\.)*"\s*:\s*)([^\s"{\[][^\n]*?)(\s*,?\s*)$', re.MULTILINE)
PLAIN = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?|true|false|null")
MARK = re.compile(r"([A-Za-z0-9_-]{1,64})(?:\.[A-Za-z0-9_-]{1,64})?")
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
    text = printed_by([*command, "-F", "json"], timeout)
    return document_in(text, command[0], lambda: records_in(printed_by(command, timeout)))


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
BEGIN = re.compile(r"\A.*?^\ufeff?[ \t]*\{", re.MULTILINE | re.DOTALL)
LINE = re.compile(r'^([ \t]*)"([^"\n]*)"[ \t]*:[ \t]*(.*?)[ \t]*,?[ \t\r]*$', re.MULTILINE)
OPENS = tuple(map(re.compile, (r"Jobs|nodes", r"\S+", r"\w+")))
"""Tables that open at each level: of the document, of its jobs or nodes, and of one of these."""
OVER_LIMIT = re.compile(
    r"would exceed|limit (?:has been )?reached|per-(?:user|group|project)|job limit|max_run",
    re.IGNORECASE,
)
"""Comments of jobs that wait for a limit of a user, group, project, queue or array."""
VNODE = re.compile(r"[(+]([^:()+]+)")
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
            record.setdefault(attribute[1], {})
            table_in(record, attribute[1]).setdefault(attribute[2], attribute[3])
        elif attribute:
            record.setdefault(attribute[1], attribute[3])
    return {kind: {key: each for key, each in of.items() if each} for kind, of in found.items()}


def document_in(text, source, without_json=dict):
    """Decode JSON of PBS, before which a warning may stand.

    Before 23.06 a user's variable can make it invalid, which is repaired: FOO=005, which stands
    there as a number, a backslash before a comma, a quote. Where it cannot be, what the command
    shows without JSON counts, else the lines that are whole.
    """
    text = BEGIN.sub("{", text, count=1)
    try:
        return decoded(text)
    except ValueError:
        mended = BARE.sub(quoted, EMPTY.sub(r'\1""\2', ESCAPE.sub(known_escape, text)))
    with contextlib.suppress(ValueError):
        return decoded(mended)
    whole = MEMBER.sub(lambda found: escaped(found, source), mended)
    try:
        return decoded(whole)
    except ValueError as error:
        lines = [line.strip()[:60] for line in whole.split("\n")[: error.lineno]]
        trouble = f"{source} printed what is no JSON: {error}: {' '.join(lines[-2:])!r}"
        found = records_of(without_json()) or records_of(by_lines(mended, source))
        if not found:
            raise ValueError(trouble) from error
        print(f"{trouble}; it is read without", file=sys.stderr, flush=True)
        return found


def records_of(document):
    """Return a document with jobs or nodes; None for another."""
    return document if document.get("Jobs") or document.get("nodes") else None


def decoded(text):
    """Return the table in JSON."""
    found = json.loads(text, strict=False, object_pairs_hook=merged)
    if not isinstance(found, dict):
        raise json.JSONDecodeError("No table", text, 0)
    return found


def merged(pairs):
    """Return a table of members, of which PBS 18.1 prints some, such as Jobs, again and again."""
    table = {}
    for key, value in pairs:
        first = table.setdefault(key, value)
        if first is not value and isinstance(first, dict) and isinstance(value, dict):
            first.update(value)
    return table


def by_lines(text, source):
    """Return the members of broken JSON that are whole, by their lines and how far these are in.

    A value of several lines is left out, and named.
    """
    tables, places = [{"Jobs": {}, "nodes": {}}], []
    for indent, key, written in LINE.findall(text):
        level = places.index(len(indent)) if len(indent) in places else len(places)
        if level == len(places) == len(tables) - 1 and len(indent) >= sum(places[-1:]):
            places.append(len(indent))
        if level >= len(tables) or (level < 2 and written != "{"):
            continue
        if written != "{":
            value = whole_value(written)
            tables[level].setdefault(key, value)
            if value is None:
                print(f'{source}: the value of "{key}" is broken and left out', file=sys.stderr)
        elif OPENS[min(level, 2)].fullmatch(key):
            inner = tables[level].setdefault(key, {})
            tables[level + 1 :] = [inner if isinstance(inner, dict) else {}]
    return tables[0]


def whole_value(written):
    """Return a value of one line; None for a part of one."""
    if not written.startswith('"'):
        return json.loads(written) if PLAIN.fullmatch(written) else written
    is_whole = len(written) > 1 and written.endswith('"')
    return QUOTE.sub(lambda found: (found.group(1) or '"')[-1], written[1:-1]) if is_whole else None


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


def prediction_id_in(mark):
    """Return the id of a job's prediction in the hook's resource; None for other text."""
    found = MARK.fullmatch(str(mark or ""))
    return found.group(1) if found else None


def kibibytes(written):
    """Return the KiB of a size such as 500mb; None for other text."""
    found = MEMORY.fullmatch(str(written or ""))
    return int(found.group(1)) * UNITS[found.group(2).lower()] if found else None


def table_in(table, name):
    """Return a member of a table; none where that is no table."""
    found = table.get(name)
    return found if isinstance(found, dict) else {}


def tables_in(document, name):
    """Return the jobs or nodes of a document that are tables."""
    found = table_in(document, name)
    return {key: each for key, each in found.items() if isinstance(each, dict)}


def number_of(value, default=0):
    """Return a whole number from text or a number, else ``default``."""
    try:
        return int(float(value))
    except (TypeError, ValueError, OverflowError):
        return default


def job_of(job_id, shown):
    """Return the fields of one job for the API; None for jobs that neither run nor wait.

    Whoever asks for more than any machine has would else keep the whole queue from being taken.
    """
    asked = table_in(shown, "Resource_List")
    submitted = instant(shown.get("ctime"))
    is_array = job_id.split(".")[0].endswith("[]")
    if submitted is None or is_array or name(job_id) != job_id:
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
        "prediction_id": prediction_id_in(asked.get("walltimed_prediction")),
        "gpus": min(max(0, number_of(asked.get("ngpus"))), MOST_CORES) or None,
    }
    return {field: value for field, value in job.items() if value is not None}


def queue_of(shown):
    """Return running and waiting jobs; waiting ones by priority, then as the server lists them."""
    running, waiting = [], []
    limits = array_limits(shown)
    for job_id, job in tables_in(shown, "Jobs").items():
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
            planned = instant(table_in(job, "estimated").get("start_time"))
            if planned is not None:
                fields["scheduler_start"] = planned
            waiting.append((-number_of(job.get("Priority")), fields["submit_time"], fields))
    waiting.sort(key=lambda each: each[:2])
    return {"running": running, "waiting": [fields for _, _, fields in waiting]}


def array_limits(shown):
    """Return the most tasks that run at once, by array (max_run_subjobs)."""
    jobs = tables_in(shown, "Jobs").items()
    return {job_id: number_of(job.get("max_run_subjobs")) for job_id, job in jobs if "[]" in job_id}


def sizes_of(shown):
    """Return the usable processors by the queue their nodes are bound to; None is no queue."""
    sizes = {}
    for node in tables_in(shown, "nodes").values():
        there = processors_of(node)
        taken = number_of(table_in(node, "resources_assigned").get("ncpus"))
        usable = taken if UNUSABLE.search(str(node.get("state", ""))) else there
        queue = name(node.get("queue"))
        if 0 < usable <= MOST_CORES:
            sizes[queue] = min(sizes.get(queue, 0) + usable, MOST_CORES)
        else:
            sizes.setdefault(queue, 0)
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


def take_whole_nodes(jobs, shown_jobs, shown_nodes):
    """Count nodes that a job shares with no other (place=excl, sharing of nodes) as its own."""
    nodes, listed = tables_in(shown_nodes, "nodes"), tables_in(shown_jobs, "Jobs")
    usual = usual_nodes(nodes)
    for fields in jobs["running"] + jobs["waiting"]:
        shown, queue = listed[fields["job_id"]], fields.get("queue")
        place = set(str(table_in(shown, "Resource_List").get("place", "")).split(":"))
        size, sharing = usual.get(queue) or usual.get(None) or (0, "")
        if not is_alone(place, sharing):
            continue
        asked = fields["requested_processors"]
        names = set(VNODE.findall(str(shown.get("exec_vnode", ""))))
        if names and "start_time" in fields:
            taken = sum(processors_of(nodes[each]) for each in names if each in nodes)
        else:
            chunks = number_of(table_in(shown, "Resource_List").get("nodect"), 1)
            fewest = chunks if {"scatter", "vscatter"} & place else 1
            taken = size * max(fewest, -(-asked // size)) if size else asked
        fields["requested_processors"] = min(max(asked, taken), MOST_CORES)
        if "requested_memory" in fields:
            fields["requested_memory"] *= asked / fields["requested_processors"]


def is_alone(place, sharing):
    """Return whether a job has its nodes for itself, by its place and their sharing."""
    if sharing.startswith(("force_excl", "ignore_excl")):
        return sharing.startswith("force")
    if place & {"excl", "exclhost"}:
        return True
    return sharing.startswith("default_excl") and "shared" not in place


def usual_nodes(nodes):
    """Return processors and sharing of the most frequent kind of node, by queue; None is none."""
    kinds = {}
    for node in nodes.values():
        kind = processors_of(node), str(node.get("sharing", ""))
        kinds.setdefault(name(node.get("queue")), []).append(kind)
    return most_frequent(kinds)


def most_frequent(kinds):
    """Return the most frequent kind of node of each queue."""
    return {queue: max(set(each), key=each.count) for queue, each in kinds.items()}


def gpu_nodes(shown):
    """Return the nodes of each queue that has GPUs, of the most frequent kind."""
    kinds = {}
    for node in tables_in(shown, "nodes").values():
        gpus = number_of(table_in(node, "resources_available").get("ngpus"))
        if 0 < gpus <= processors_of(node) <= MOST_CORES:
            kinds.setdefault(name(node.get("queue")), []).append((processors_of(node), gpus))
    return [
        {"queue": queue, "processors": processors, "per_gpu": processors // gpus}
        for queue, (processors, gpus) in most_frequent(kinds).items()
    ]


def processors_of(node):
    """Return the processors of a node."""
    return number_of(table_in(node, "resources_available").get("ncpus"))


def hold_back(waiting, sizes):
    """Mark jobs whose nodes are all down as held; else the service would use another pool."""
    for job in waiting:
        if not sizes.get(job.get("queue"), sizes.get(None, 0)):
            job["held"] = True


def snapshot(options):
    """Return the body of ``PUT /v1/clusters/{cluster}/snapshot``."""
    taken_at = time.time()
    jobs = shown_by([options.qstat, "-f", "-t"], options.timeout)
    nodes = shown_by([options.pbsnodes, "-a"], options.timeout)
    return body_of(jobs, nodes, taken_at, options.depth)


def body_of(shown_jobs, shown_nodes, taken_at, depth):
    """Return the same of what qstat and pbsnodes show."""
    pools = pools_of(shown_nodes)
    if not pools:
        raise ValueError("pbsnodes shows no processors that run jobs")
    jobs = queue_of(shown_jobs)
    take_whole_nodes(jobs, shown_jobs, shown_nodes)
    hold_back(jobs["waiting"], sizes_of(shown_nodes))
    fields = dict(jobs, taken_at=taken_at, pools=pools, policy="easy", depth=depth)
    return dict(fields, queue_nodes=gpu_nodes(shown_nodes))


def hand_over(body, options):
    """Send the body; returns when the service has accepted it."""
    called(body, options, "PUT", "snapshot")


def called(body, options, verb, name):
    """Return what the service answers to a call about the cluster."""
    cluster = urllib.parse.quote(options.cluster, safe="")
    url = options.url.rstrip("/") + f"/v1/clusters/{cluster}/{name}"
    request = urllib.request.Request(url, data=json.dumps(body).encode(), method=verb)
    request.add_header("Content-Type", "application/json")
    if options.token_file:
        token = walltimed_accounting.token_in(options.token_file)
        request.add_header("Authorization", "Bearer " + token)
    with urllib.request.urlopen(request, timeout=options.timeout) as answer:
        return answer.read(LARGEST_ANSWER)


def extend(running, options):
    """Let qalter extend the walltimes that the service grants to late jobs, once a job.

    A job is noted before its walltime is changed: nothing extends it again.
    """
    noted, longest = noted_in(options.extended), largest_walltimes(options)
    most = {}
    for job in running:
        walltime = job["requested_walltime"]
        is_late = time.time() - job["start_time"] >= LATE_SHARE * walltime
        if is_late and job.get("queue") in options.extend and job["job_id"] not in noted:
            bound = walltime * (1 + options.extend_share / 100)
            most[job["job_id"]] = min([bound, *longest(job["queue"])])
    before = {job["job_id"]: job["requested_walltime"] for job in running}
    asked = {job: each for job, each in most.items() if each >= before[job] + 60}
    if not asked:
        return
    jobs = [{"job_id": job, "most": each} for job, each in asked.items()]
    body = {"jobs": jobs, "delay": 60 * options.extend_delay, "used": LATE_SHARE}
    for job, walltime in granted(called(body, options, "POST", "longer-limits")):
        if before.get(job, LONGEST) < walltime <= asked.get(job, 0):
            noted[job] = before[job]
            last = dict(list(noted.items())[-MOST_NOTED:])  # jobs that were extended
            walltimed_accounting.store(last, options.extended)
            printed_by([options.qalter, "-l", f"walltime={walltime}", job], options.timeout)
            print(f"{job}: walltime extended from {before[job]:.0f} to {walltime} s", flush=True)


def granted(answer):
    """Return pairs of job and walltime in whole seconds, of those that are granted one."""
    try:
        limits = json.loads(answer.decode())["limits"]
        return [(each["job_id"], int(each["walltime"])) for each in limits if each["walltime"]]
    except (KeyError, TypeError, OverflowError) as error:
        raise ValueError("the service answered no limits") from error


def largest_walltimes(options):
    """Return a function that lists the bounds of a queue: its own, and that of the server."""
    queues = tables_in(shown_by([options.qstat, "-Q", "-f"], options.timeout), "Queue")
    servers = tables_in(shown_by([options.qstat, "-B", "-f"], options.timeout), "Server")

    def bounds(queue):
        tables = [table_in(queues, queue), *servers.values()]
        found = [seconds(table_in(each, "resources_max").get("walltime")) for each in tables]
        return [each for each in found if each]

    return bounds


def noted_in(path):
    """Return the walltimes of extended jobs before, by job; none where there is no file yet."""
    try:
        with open(path) as file:
            return decoded(file.read())
    except FileNotFoundError:
        return {}


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
            if options.extend and not os.path.exists(OFF):
                extend(body["running"], options)
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
