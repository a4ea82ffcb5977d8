"""Rules for the mutants that no test can notice, because they behave as the original does.

A rule names lines by a pattern rather than by their text, so that rewording a line or moving it to
another file keeps the rule. `run.py` lists rules that match no line of the source any more.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from mutations import Mutant

NUMBER = r"-?(?:0x[0-9A-Fa-f]+|\d[\d_]*(?:\.\d+)?)"
REMOVED = r"^(?:pass|-- nothing)$"


class Rule(NamedTuple):
    """Mutants that are equivalent, and why.

    Attributes:
        line: pattern, found in the line before the change.
        why: why both lines behave alike.
        after: pattern, found in the line after the change; None: the lines differ in numbers of
            the part that `line` matches, and in nothing else.
        path: pattern, found in the path of the file.
    """

    line: str
    why: str
    after: str | None = None
    path: str = ""

    def covers(self, mutant: Mutant) -> bool:
        """Return whether the mutant is one of these."""
        found = re.search(self.line, mutant.before)
        if not found or not re.search(self.path, mutant.path):
            return False
        if self.after is not None:
            return re.search(self.after, mutant.after) is not None
        begin, end = found.span()
        pieces = re.split(rf"\b{NUMBER}\b", found.group())
        pieces[0] = mutant.before[:begin] + pieces[0]
        pieces[-1] += mutant.before[end:]
        expected = NUMBER.join(re.escape(_without_spaces(piece)) for piece in pieces)
        return re.fullmatch(expected, _without_spaces(mutant.after)) is not None

    def matches_a_line(self, files: Iterable[tuple[str, str]]) -> bool:
        """Return whether any line of the files, given as path and text, is of this rule."""
        return any(
            re.search(self.line, line)
            for path, text in files
            if re.search(self.path, path)
            for line in map(str.strip, text.splitlines())
        )


def _without_spaces(text: str) -> str:
    return re.sub(r"\s", "", text)


AT_ONCE = (
    *("AT_ONCE", "SOUGHT_AT_ONCE", "_ROWS_AT_ONCE", "_RECORDED_AT_ONCE", "_ROWS", "_ROOM"),
    *("PROGRESS_STEP", "_PROGRESS_STEP", "batch: int"),
)
"""Names of sizes of slices: all slices are processed."""

LIMITS = (
    *("_POLL_SECONDS", "_TRUST_SECONDS", "_BUSY_SECONDS", "PATIENCE", "PATIENCE_SECONDS"),
    *("_CACHE_KIB", "ATOMS", "REMEMBERED", "REMEMBERED_USERS", "maxsize", "_COUNTED"),
    *("timeout", '"connect_timeout":', '"keepalives_idle":', '"keepalives_interval":'),
    *('"keepalives_count":', '"tcp_user_timeout":'),
)
"""Names of waiting times, rooms and memories of which one more or one less is as good."""


def _names(names: Iterable[str]) -> str:
    return (
        r"(?<!\w)(?:" + "|".join(map(re.escape, names)) + r")\b\s*(?::\s*\w+\s*)?=?\s*\(?" + NUMBER
    )


RULES = (
    Rule(_names(AT_ONCE), "The size of a slice: all slices are processed."),
    Rule(r"(?<=PIECE = 8192, 65536, )8192", "How much is read at a time."),
    Rule(r"(?:min\(length, 65536|receive\(PIECE)", "How much is read at a time.", r"\d|PIECE"),
    Rule(_names(LIMITS), "A limit of patience or memory, one more or one less."),
    Rule(
        r"\"(?:connect_|keepalives_|tcp_user_)\w+\": \d+", "Patience with a server that vanished."
    ),
    Rule(r"token_(?:hex|urlsafe)\(\d+", "A byte more or less is guessed as little."),
    Rule(r"hexdigest\(\)\[:\d+", "A digit of a hash more or less tells apart as well."),
    Rule(r"_SCHEMA_LOCK = \w+", "Any number that nobody else uses in this database."),
    Rule(r"print\(.*flush=True", "Standard error is flushed line by line.", r"flush=False"),
    Rule(r"fsync\(|write_through\(", "Seen only after a loss of power.", REMOVED),
    Rule(r"PRAGMA (?:cache_size|temp_store)", "Changes the speed of SQLite only.", REMOVED),
    Rule(r"tcp-nodelay", "Changes when a second packet leaves; most have one.", r"false|nothing"),
    Rule(r"^warm_up\(semantics\)$", "Compiles now instead of at the first call.", REMOVED),
    Rule(r"^aged_priority\(1\.0.*", "A call that compiles; its answer is not read."),
    # Places in the log
    Rule(r"after=\w* ?(?:or )?0\b|\bor 0[,)]|\(first, -1\)", "Places in the log begin at 1."),
    Rule(r"counted\[0\] if counted else 0", "A count has always a row."),
    Rule(r"stop_after=1\), maxlen=0", "What is drained is not looked at."),
    Rule(r"self\._check_at", "A look more finds the same file.", r"=-?1\.0|= -?1\.0|\) [>-] "),
    Rule(r"all_\.find\(wanted\) >= 0", "A database begins with its magic bytes.", r">"),
    Rule(r"lambda _: 0, _json_array", "The text of the statement depends on no number of rows."),
    Rule(r"self\.write\(\[runs\]\)\[0\]", "One group was written."),
    Rule(r"\.opt\[0\]", "With one objective there is one optimum."),
    # Values that stand for none
    Rule(r"coverage or 0\.0", "Where there are bounds, there is a coverage."),
    Rule(r"last_run or 0\.0", "No prediction was recorded in the first second of 1970."),
    Rule(r"round\(seconds / 900\) \* 900", "The same quarter of an hour, up to 14 hours."),
    Rule(r"max\(0\.0, min\(predicted, runtime\)\)", "Neither of the two is negative."),
    Rule(r"np\.max\(priority, initial=0\.0\)", "A priority below 0 weighs nothing, as 0 does."),
    Rule(
        r"requested_walltime=1\.0, submit_time=0\.0|\b(?:start_time|end_time|runtime)=0\.0",
        "Stands for a record that is not looked at any more.",
        path="scheduling/estimates",
    ),
    Rule(r"return 0, 0, 0\.0|^\s*seconds = 0\.0", "Not read where no run counts."),
    # The engine
    Rule(r"moving\[0\]", "An array of one entry.", r"moving\[\s*-1\]"),
    Rule(r"^\s*break$", "Later steps change nothing, either.", r"continue", "engine/corrections"),
    Rule(r"^\s*break$", "No job has a second last like run.", r"continue", "attention_"),
    Rule(r"range\(clock\.head \+ 1", "The head has no place before it.", r"head \+ 0"),
    Rule(r"max\(tick, 1\)", "A job is not aged before the first step or at it.", r" 0\)"),
    Rule(r"waiting\.tick = tick", "The same key is computed at every pass.", REMOVED),
    Rule(r"max\(BLOCK, behind - known\)", "More of the log is read ahead.", r"behind \+"),
    Rule(r"if known < behind", "Jobs are read one step sooner, and asked about in time.", r"<="),
    # Formulas of methods
    Rule(r"(?:weight, weighted|below, weighted_below) = 0\.0, 0\.0", "Added to all costs alike."),
    Rule(r"if way > _NO_TIME", "No two times are exactly as near as that.", r">="),
    Rule(r"or share >= 1\.0", "At the whole way the time is that at its end.", r"share > 1"),
    Rule(r"if total >= CEILING", "At the ceiling the answer is the ceiling.", r"> CEILING"),
    Rule(r"context\[(?:3|20)\] = ", "The argument is never below 0.", r"max\( ?-1\.0"),
    # Doors
    Rule(r"more_body\", False", "A whole body goes the longer way, to the same answer.", r"True"),
    Rule(r"if announced\.isdecimal\(\) else 0", "No limit is below a byte."),
    # Hooks
    Rule(r"if left <= 0", "No time is ever left to the nanosecond.", r"left < 0"),
    Rule(r"gettime\(\) >= deadline", "No time is ever left to the microsecond.", r"> deadline"),
    Rule(r"monotonic\(\) < getattr\(sys, PAUSE, 0", "The clock counts from the machine's start."),
    Rule(r"sys\.argv\[1:\]", "The filter's own path is no option.", r"\[ ?0:", "torque"),
    Rule(r"off = 0, observe = 1", "A hook that is off compares no rungs.", r"off = 01"),
    Rule(
        r"and unix or unix\.stream", "luasocket has the same function under both.", r"and unix and"
    ),
    Rule(r"math\.max\(1, #data", "No status line ends within eleven bytes.", r"max\(11"),
)


def reason(mutant: Mutant) -> str | None:
    """Return why no test can notice the mutant; None where one should."""
    return next((rule.why for rule in RULES if rule.covers(mutant)), None)
