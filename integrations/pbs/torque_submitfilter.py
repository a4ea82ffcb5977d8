#!/usr/bin/python3
"""Torque's submit filter: tells users at qsub how long such jobs ran. The script passes as it is.

    SUBMITFILTER /usr/share/walltimed/pbs/torque_submitfilter.py     # in torque.cfg

Torque has no soft walltime. With ``"set_default": true`` a job that asks for no walltime at all
gets a margin above the upper end of its prediction's interval, if it has one that is wide enough:
that is a limit that kills.
qsub may run the filter several times for one job, as its user; exit code 0 whatever happens.
Python 3.6 or newer, standard library only.
"""

import contextlib
import getpass
import http.client
import json
import math
import os
import re
import signal
import socket
import sys

CONFIG = os.environ.get("WALLTIMED_SUBMITFILTER", "/etc/walltimed/submitfilter.json")
OFF = "/etc/walltimed/walltimed.off"  # made by `walltimed connect --off`: no job is touched
DEFAULTS = {
    "mode": "advise",  # off, advise
    "set_default": False,
    "host": "127.0.0.1",  # an address, never a name: looking one up has no time limit
    "port": 8580,
    "token_file": "/etc/walltimed/filter-token",  # of scope predict; users must be able to read it
    "cluster": "default",
    "budget_seconds": 0.2,
    "limit_margin": 1.5,  # times the upper end of the interval,
    "limit_coverage": 0.9,  # which must hold at least this share of runtimes
    "facts": True,  # whether script, directory, ... are told: docs/api.md
    "assumed_walltime": 86400,  # what the queue allows a job that asks for nothing
}
AGENT = "torque_submitfilter.py/0.3.0 (%s)"  # release and mode, for `walltimed doctor`
LARGEST_ANSWER = 65536  # bytes
LONGEST_LINE, LONGEST_SCRIPT = 4096, 32768  # bytes; of a script the first count
HASH_MODULUS = 2**45 - 55
SHORTEST_LIMIT = 60  # seconds
FEWEST_RUNS = 5  # of the user's: with fewer no interval is known to have held for them
LONGEST = 1e9  # seconds; more is no walltime
OPTIONS_WITH_VALUE = "aAbcCdDeFhIjklLmMNopPqrStTuvwWxX"


def settings():
    """Return the defaults with the changes of the site."""
    with open(CONFIG) as file:
        changed = json.load(file)
    if "token" in changed:
        raise ValueError("token is now in a file: token_file")
    return dict(DEFAULTS, **changed)


def options_of(script, arguments):
    """Return the options of the ``#PBS`` lines and the command line, which has priority."""
    words = []
    for line in script.splitlines():
        if line.startswith("#PBS"):
            words += line[4:].split("#")[0].split()
        elif line.strip() and not line.startswith("#"):
            break
    found = {"l": {}}
    for option, value in pairs(words + arguments):
        if option == "l":
            found["l"].update(part.partition("=")[::2] for part in value.split(","))
        else:
            found[option] = value
    return found


def pairs(words):
    """Yield options and their values."""
    rest = iter(words)
    for word in rest:
        if len(word) < 2 or word[0] != "-":
            continue
        option, value = word[1], word[2:]
        if not value and option in OPTIONS_WITH_VALUE:
            value = next(rest, "")
        yield option, value


def seconds(walltime):
    """Return the seconds of ``[[[days:]hours:]minutes:]seconds``."""
    if not re.match(r"\d+(:\d+){0,3}$", walltime or ""):
        return None
    total = 0
    for part, size in zip(reversed(walltime.split(":")), (1, 60, 3600, 86400)):
        total += int(part) * size
    return total or None


def cores(nodes):
    """Return the cores of ``2:ppn=8+1``."""
    total = 0
    for chunk in (nodes or "1").split("+"):
        machines = re.match(r"\d+(?=[:#]|$)", chunk)  # the name of a node may begin with a digit
        each = re.search(r"ppn=(\d+)", chunk)
        total += (int(machines.group()) if machines else 1) * (int(each.group(1)) if each else 1)
    return max(1, total)


def submission_of(options, config):
    """Return the fields of the submission for the API."""
    limits = options["l"]
    fields = {
        "cluster": config["cluster"],
        "user": getpass.getuser(),
        "project": options.get("A"),
        "queue": options.get("q"),
        "application": options.get("N"),
        "requested_walltime": seconds(limits.get("walltime")) or config["assumed_walltime"],
        "requested_processors": cores(limits.get("nodes")),
    }
    facts = facts_of(options) if config["facts"] else {}
    return {key: value for key, value in {**fields, **facts}.items() if value}


def facts_of(options):
    """Return further facts of the job, as far as options and the process know them."""
    limits = options["l"]
    return {
        "work_dir": line(options.get("d") or os.getcwd()),
        "constraint": line(limits.get("nodes", "")),
        "qos": line(limits.get("qos", ""))[:255],
        "submit_host": line(socket.gethostname())[:255],
        "interactive": "I" in options,
        "script_hash": options.get("script_hash"),
    }


def line(text):
    """Return a path or name in printable characters."""
    return re.sub(r"[^ -~]+", "?", text[:LONGEST_LINE])


def script_hash_of(script):
    """Return the hash of a script without blanks, comments and numbers, as walltimed.lua does."""
    found = 0
    for row in script.encode("utf-8", "surrogateescape")[:LONGEST_SCRIPT].split(b"\n"):
        if not row.lstrip().startswith(b"#"):
            for byte in row.partition(b" #")[0].translate(None, b" \t\r\v\f.0123456789"):
                found = (found * 131 + byte) % HASH_MODULUS
    return f"{found:012x}"


def ask(submission, config):
    """Return the service's answer within the budget; raises an error otherwise."""
    socket.inet_pton(socket.AF_INET6 if ":" in config["host"] else socket.AF_INET, config["host"])
    signal.signal(signal.SIGALRM, out_of_time)
    signal.setitimer(signal.ITIMER_REAL, config["budget_seconds"])
    try:
        connection = http.client.HTTPConnection(config["host"], config["port"])
        headers = {"Content-Type": "application/json", "User-Agent": AGENT % config["mode"]}
        token = token_in(config["token_file"])
        if token:
            headers["Authorization"] = "Bearer " + token
        connection.request("POST", "/v1/predictions", json.dumps(submission), headers)
        answer = connection.getresponse()
        length = answer.getheader("Content-Length", "")
        if answer.status != http.client.OK or not length.isdigit() or int(length) > LARGEST_ANSWER:
            raise ValueError("not an answer")
        return json.loads(answer.read(int(length)).decode())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def token_in(path):
    """Return the token in a file, None without one; it is read for every call.

    The error for another file does not repeat its content, which may include the token.
    """
    if not path or not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        words = file.read(4096).split()
    if len(words) != 1:
        raise ValueError(f"{path} does not hold one token and nothing else")
    return words[0].decode("ascii")


def out_of_time(*_):
    """Raise an error: the budget is used up."""
    raise TimeoutError


def clock(duration):
    """Return a duration as HH:MM:SS, rounded up to seconds."""
    whole = math.ceil(duration)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def with_limit(script, limit):
    """Return the script with a walltime inserted after the line that names its shell."""
    directive = f"#PBS -l walltime={clock(limit)}\n"
    if not script.startswith("#!"):
        return directive + script
    first, _, rest = script.partition("\n")
    return first + "\n" + directive + rest


def filtered(script, arguments):
    """Return the script for Torque, and print advice on the terminal."""
    config = settings()
    if config["mode"] == "off" or os.path.exists(OFF):
        return script
    options = options_of(script, arguments)
    options["script_hash"] = script_hash_of(script)
    asked = seconds(options["l"].get("walltime"))
    answer = ask(submission_of(options, config), config)
    predicted = positive(answer["predicted_walltime"], asked or LONGEST)
    if asked and answer.get("limit_warning") is True:
        print(f"walltimed: {warning(answer, asked)}", file=sys.stderr)
    elif asked and answer["basis"]["jobs"] and predicted < asked:
        print(f"walltimed: {advice(answer, predicted, asked)}", file=sys.stderr)
    if config["set_default"] and not options["l"].get("walltime"):
        limit = default_limit(answer, config)
        return with_limit(script, limit) if limit else script
    return script


def warning(answer, asked):
    """Return that the job will probably be cut, and a longer walltime, if one is known."""
    hits, runs, longer = (answer.get(k) for k in ("like_hits", "like_runs", "longer_walltime"))
    if hits and runs:
        hits, runs = positive(hits, LONGEST), positive(runs, LONGEST)
        cut = f"{hits:.0f} of your last {runs:.0f} jobs like this one were ended at their limit"
        cut += f"; this one's is {clock(asked)}"
    else:
        share = 100.0 * positive(answer["limit_probability"], 1)
        cut = (
            f"such a job is ended at its limit of {clock(asked)} with a probability of {share:.0f}%"
        )
    way = "save its state before"
    if longer is not None and positive(longer, LONGEST) > asked:
        way = f"ask for {clock(longer)}, or {way}"
    return f"{cut}; {way}"


def advice(answer, predicted, asked):
    """Return the likely runtime, its range and the request as text.

    Torque plans by requests: without a likely runtime the predicted one is said, never a planned.
    """
    parts = [f"requested {duration(asked)}"]
    interval, reason = answer.get("interval"), answer["basis"].get("reason")
    if interval and reason in {"history", "others"}:
        share = 100.0 * positive(interval["coverage"], 1)
        upper = positive(interval["upper"], LONGEST)
        lower = positive(interval["lower"], upper) if interval["lower"] else 0
        parts.insert(0, f"range {duration(lower)} to {duration(upper)} ({share:.0f}%)")
    name, seconds = "predicted", predicted
    if answer.get("likely") is not None:
        name, seconds = "likely", positive(answer["likely"], asked)
    parts.insert(0, f"{name} {duration(seconds)}")
    whose = "; no run of yours is known, these are of other users" if reason == "others" else ""
    return ", ".join(parts) + whose


def duration(seconds):
    """Return seconds in the words of ``walltimed ask`` and of the pages."""
    if 0 < seconds < 0.95:
        return f"{seconds:.1g} s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    if seconds < 89.5 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 98.35 * 3600 else f"{seconds / 86400:.1f} days"


def default_limit(answer, config):
    """Return the default limit in seconds, None for none.

    None if the answer has no interval that is wide enough and rests on the user's history, or if
    all known runs lasted next to nothing: they failed at once, or their records are wrong.
    """
    interval = answer.get("interval")
    if not interval or answer["basis"].get("reason") != "history":
        return None
    if positive(answer["basis"]["jobs"], LONGEST) < FEWEST_RUNS:
        return None
    if positive(interval["coverage"], 1) < config["limit_coverage"]:
        return None
    upper = positive(interval["upper"], LONGEST)
    longest = max(upper, positive(answer["predicted_walltime"], LONGEST))
    if longest <= SHORTEST_LIMIT:
        return None
    margin = max(1.0, positive(config["limit_margin"], LONGEST))
    return min(longest * margin, positive(config["assumed_walltime"], LONGEST))


def positive(value, most):
    """Return the value if it is a number in (0, ``most``]; raises an error otherwise."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 < value <= most:
        raise ValueError("not a positive number in range")
    return value


def main():
    """Read the script from standard input, and write the filtered script."""
    data = sys.stdin.buffer.read()
    with contextlib.suppress(Exception):  # no error may reach qsub, and none is the user's business
        script = filtered(data.decode("utf-8", "surrogateescape"), sys.argv[1:])
        data = script.encode("utf-8", "surrogateescape")
    sys.stdout.buffer.write(data)


if __name__ == "__main__":
    main()
