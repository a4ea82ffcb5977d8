"""Further facts of a submission: optional, and text among them known by hashes only."""

import re
from collections.abc import Callable
from hashlib import blake2s

from msgspec import Struct
from msgspec.structs import replace

Feature = float | str

MOST_FEATURES = 8
"""Most named numbers and words of a site's own that a submission may have."""

FEATURE = "feature "
"""Begins the kind of a word that is a feature."""

HASHED_BYTES = 4
"""Bytes of a digest that stand for a text: runs of one user are compared, and runs of one name."""

_HASH = re.compile("~[0-9a-f]{8}~")
_UNPRINTABLE = re.compile(r"[^ -~]+")
_DIGITS = re.compile(r"\d+")
_LAUNCHERS = frozenset({"sbatch", "salloc", "srun", "qsub"})


class Facts(Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """Facts beyond those of a ``Submission``; stored rows hold them in the order of the attributes.

    Attributes:
        script_hash: of the job script without blanks, comments and numbers.
        submit_line: words of the command of the submission.
        gpus: number for the whole job.
        array_size: number of tasks of the array that the job is a task of.
        constraint: requested properties of nodes.
        dependency: kind alone, such as ``afterok``.
        features: named numbers and words of the site's own.
    """

    work_dir: str | None = None
    script_hash: str | None = None
    submit_line: str | None = None
    qos: str | None = None
    nodes: int | None = None
    gpus: int | None = None
    gpu_type: str | None = None
    array_size: int | None = None
    constraint: str | None = None
    dependency: str | None = None
    submit_host: str | None = None
    interactive: bool | None = None
    features: dict[str, Feature] = {}


NO_FACTS = Facts()

AFTER_A_HIT = frozenset({"afterany", "afternotok", "singleton"})
"""Kinds of dependencies on which a job starts though the one before it was cut."""

FACTS = Facts.__struct_fields__
"""Names of the facts."""

TEXTS = (
    "work_dir",
    "script_hash",
    "submit_line",
    "qos",
    "gpu_type",
    "constraint",
    "dependency",
    "submit_host",
)
"""Facts that are text, and are stored as hashes."""

WITHOUT_DIGITS = frozenset({"work_dir", "submit_line"})
"""Texts that are alike if they differ in digits only."""


def known(facts: Facts) -> Facts | None:
    """Return the facts; None if there are none."""
    return None if facts == NO_FACTS else facts


def starts_after_hits(facts: Facts | None) -> bool:
    """Return whether a job waits for another one, and starts also if that one was cut."""
    return (
        facts is not None
        and facts.dependency is not None
        and (normalised("dependency", facts.dependency).lower() in AFTER_A_HIT)
    )


def merged(first: Facts | None, second: Facts | None) -> Facts | None:
    """Return the facts of both; where both have one, that of the first."""
    if first is None or second is None:
        return first or second
    pairs = {name: (getattr(first, name), getattr(second, name)) for name in FACTS}
    return Facts(
        **{name: b if a is None or a == {} else a for name, (a, b) in pairs.items()},
    )


HashOf = Callable[[str, str], str]
"""Hash of a kind of fact and its text."""


def hashed(facts: Facts, hash_of: HashOf) -> Facts:
    """Return the facts with hashes in place of texts."""
    texts = {name: value for name in TEXTS if (value := getattr(facts, name)) is not None}
    words = {
        name: hash_of(f"{FEATURE}{name}", value) if isinstance(value, str) else value
        for name, value in facts.features.items()
    }
    found = {name: hash_of(name, text) for name, text in texts.items()}
    return replace(facts, **found, features=words)


def unkeyed(kind: str, text: str) -> str:
    """Return the hash of a text at a site without a key."""
    return hash_by(_digest, kind, text)


def _digest(text: str) -> bytes:
    return blake2s(text.encode("utf-8", "surrogatepass")).digest()


def hash_by(digest: Callable[[str], bytes], kind: str, text: str) -> str:
    """Return the hash of a text; a hash, as an export holds it, stays as it is.

    Args:
        digest: of kind and text, joined by NUL.
        kind: name of a fact, or of a feature behind ``FEATURE``.
    """
    if _HASH.fullmatch(text):
        return text
    if not kind.startswith(FEATURE):
        text = normalised(kind, text)
    return hash_text(int.from_bytes(digest(f"{kind}\0{text}")[:HASHED_BYTES], "big"))


def hash_text(number: int) -> str:
    """Return the text of a hash.

    >>> hash_text(64_206)
    '~0000face~'
    """
    return f"~{number:08x}~"


def hash_number(kind: str, text: str) -> int:
    """Return the number of a hash; of another text, that of its hash without a key."""
    return int(unkeyed(kind, text)[1:-1], 16)


def normalised(name: str, text: str) -> str:
    """Return the part of a fact's text that counts.

    Digits of paths and command lines count as one, so that the jobs of a study are alike.

    >>> normalised("work_dir", "/scratch/ada/run_017"), normalised("dependency", "afterok:17")
    ('/scratch/ada/run_#', 'afterok')
    >>> normalised("submit_line", "sbatch -t 60 --array=1-9 /home/ada/case.sh 12")
    'case.sh #'
    """
    if _HASH.fullmatch(text):
        return text
    plain = _UNPRINTABLE.sub("?", text)
    if name == "dependency":
        return plain.partition(":")[0]
    if name == "submit_line":
        plain = command_in(plain)
    return _DIGITS.sub("#", plain) if name in WITHOUT_DIGITS else plain


def command_in(line: str) -> str:
    """Return program and arguments of a command line, without the options of the submission.

    The line of ``sbatch`` has lost its quotes: options are skipped with the word behind them,
    unless it is in the option. A program is named without its directory.
    """
    words = line.split()
    if words and words[0].rpartition("/")[2] in _LAUNCHERS:
        words = _behind_options(words[1:])
    if not words:
        return line
    return " ".join([words[0].rpartition("/")[2], *words[1:]])


def _behind_options(words: list[str]) -> list[str]:
    place = 0
    while place < len(words) and words[place].startswith("-"):
        word = words[place]
        has_value = "=" in word or (len(word) > 2 and not word.startswith("--"))
        is_next = place + 1 < len(words) and not words[place + 1].startswith("-")
        place += 1 if has_value or not is_next else 2
    return words[place:]


_MODULUS, _BASE = 2**45 - 55, 131

LONGEST_SCRIPT = 32_768
"""Bytes of a script that count."""


def script_hash_of(script: str | bytes) -> str:
    r"""Return the hash of a script without blanks, comments and numbers, like ``walltimed.lua``.

    So the scripts of a parameter study have one hash. It is a polynomial in the remaining bytes.

    >>> script_hash_of("#!/bin/sh\nrun --size 10 # small") == script_hash_of("run --size 2.5")
    True
    """
    content = script.encode("utf-8", "surrogatepass") if isinstance(script, str) else script
    found = 0
    for line in content[:LONGEST_SCRIPT].split(b"\n"):
        if line.lstrip().startswith(b"#"):
            continue
        for byte in line.partition(b" #")[0].translate(None, b" \t\r\v\f.0123456789"):
            found = (found * _BASE + byte) % _MODULUS
    return f"{found:012x}"
