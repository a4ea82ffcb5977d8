"""The accounting log of PBS or Torque: every run that ends is reported, see walltimed_pbs.py.

What the service has not acknowledged is sent again; what was sent twice counts once.
"""

import contextlib
import http.client
import json
import os
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

MOST_LINES = 500
MOST_BYTES = 4 << 20  # of records at a time; the service takes twice as many
LONGEST_LINE = 1 << 19  # bytes; the service takes no longer record
DAY_FILE = re.compile(r"\d{8}")
RUN_ENDED = re.compile(rb"[^;]{0,64};[ER];")
MARK = re.compile(rb"\sResource_List\.walltimed_prediction=(\"[^\"]*\"|\S*)")
GOOD_MARK = re.compile(rb"[A-Za-z0-9_-]{1,64}(\.[A-Za-z0-9_-]{1,64})?")
LONGEST_PAUSE = 60.0
REFUSED = (401, 403)


class Position:
    """The position in the log up to which runs are reported: a day's file and a byte offset."""

    def __init__(self, path, first_day):
        self.path = path
        self.day, self.offset = first_day, 0
        if os.path.exists(path):
            with open(path) as file:
                kept = json.load(file)
            self.day, self.offset = str(kept["day"]), int(kept["offset"])

    def move(self, day, offset):
        """Store a new position atomically."""
        self.day, self.offset = day, offset
        store({"day": day, "offset": offset}, self.path)


def store(value, path):
    """Store a JSON value atomically; no link is followed, and no pipe opened."""
    new = path + ".new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(new)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with open(os.open(new, flags, 0o644), "w") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)


def batches(directory, position):
    """Yield unreported records in batches of whole lines, with the position behind each batch."""
    days = sorted(name for name in os.listdir(directory) if DAY_FILE.fullmatch(name))
    for day in days:
        if day < position.day:
            continue
        offset = position.offset if day == position.day else 0
        with open(os.path.join(directory, day), "rb") as file:
            file.seek(offset)
            begin, records, taken = offset, [], 0
            for line, size in whole_lines(file):
                offset += size
                if RUN_ENDED.match(line):
                    records.append(MARK.sub(known_mark, line))
                    taken += len(line)
                if len(records) == MOST_LINES or taken > MOST_BYTES:
                    yield day, offset, records
                    begin, records, taken = offset, [], 0
            if offset > begin:
                yield day, offset, records


def whole_lines(file):
    """Yield complete lines and their sizes; a line that is too long comes as an empty one."""
    size, is_long = 0, False
    while True:
        piece = file.readline(LONGEST_LINE)
        size += len(piece)
        if piece.endswith(b"\n"):
            yield (b"" if is_long else piece), size
            size, is_long = 0, False
        elif not piece:
            return
        else:
            is_long = True


def known_mark(match):
    """Return the mark if the hook can have written it; users may request the resource, too."""
    return match.group() if GOOD_MARK.fullmatch(match.group(1)) else b""


def report(records, url, token, timeout=30.0):
    """Send records; returns when the service has confirmed that they are stored."""
    request = urllib.request.Request(url, data=b"".join(records), method="POST")
    request.add_header("Content-Type", "text/x-pbs-accounting; charset=utf-8")
    if token:
        request.add_header("Authorization", "Bearer " + token)
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        # With 200 they are stored; what the body says is of no use here.
        if answer.headers.get_content_type() != "application/json":
            raise ValueError(f"something else than the service answers at {url}")


def follow_once(directory, position, url, token):
    """Report all new records, and return their number."""
    reported = 0
    for day, offset, records in batches(directory, position):
        if records:
            report(records, url, token)
        position.move(day, offset)
        reported += len(records)
    return reported


def token_in(path):
    """Return the token in a file; it is read in every round, as it may be issued anew.

    The error for another file does not repeat its content, which may include the token.
    """
    if not path:
        return None
    with open(path, "rb") as file:
        words = file.read().split()
    if len(words) != 1:
        raise ValueError(f"{path} does not hold one token and nothing else")
    return words[0].decode("ascii")


def advice_about(error, path):
    """Return the failure as text, with the remedy, if there is one."""
    if getattr(error, "code", None) in REFUSED:
        refused = f"the token in {path}" if path else "calls without a token"
        return (
            f"the service refuses {refused}: issue one with `walltimed token issue pbs --scope "
            "ingest`, write it into a file that this user can read, and name that by --token-file; "
            "meanwhile the runs wait in the log"
        )
    if isinstance(error, PermissionError):
        return f"{error}: docs/pbs.md says which group may read the accounting log"
    return str(error)


def url_of(options):
    """Return the URL for records; the UTC offset in it changes with summer time."""
    query = {"cluster": options.cluster, "utc_offset": time.strftime("%z")}
    base = options.url.rstrip("/")
    return base + "/v1/adapters/pbs/accounting?" + urllib.parse.urlencode(query)


def follow(options, stop):
    """Report until ``stop``; after failures the pause doubles, up to a minute.

    What is wrong is told once, and again when something else is.
    """
    position = Position(options.state, options.since)
    pause, told = options.interval, None
    while True:
        try:
            token = token_in(options.token_file)
            reported = follow_once(options.directory, position, url_of(options), token)
            pause = options.interval
            if reported or told:
                print(f"reported {reported} records", file=sys.stderr, flush=True)
            told = None
        except (OSError, ValueError, http.client.HTTPException) as error:
            trouble = advice_about(error, options.token_file)
            if trouble != told:
                print(f"will try again: {trouble}", file=sys.stderr, flush=True)
            told = trouble
            pause = min(LONGEST_PAUSE, pause * 2 + 1)
            if options.once:
                return 1
        if options.once or stop.wait(pause):
            return 0
