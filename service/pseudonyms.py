"""Pseudonyms for people: keyed hashes that stand for names in the history, in logs and in memory.

Names come in clear with every request and record, and are replaced where they enter. Equal names
have equal pseudonyms, and names of jobs that differ in digits alone have pseudonyms that do, so
that every answer is the one that the names themselves would get.
"""

import hashlib
import hmac
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from msgspec.structs import replace

from predictors.jobs import Completion, Submission
from predictors.names import without_digits
from service.store import ReportedCompletion

Pseudonym = Callable[[str | None], str | None]
"""From a name to what stands for it; unknown stays unknown."""

SHORTEST_KEY = 32
"""Fewest bytes of a key: a short key could be guessed, and names be tried with it."""

LENGTH = 16
"""Bytes of a pseudonym; with 128 bits no two of a site's names meet."""

_LETTERS = str.maketrans("0123456789", "ghijklmnop")

REMEMBERED = 65_536
"""Names of each kind whose pseudonyms are kept; each of the others costs 3 microseconds."""

READABLE_BY_OTHERS = 0o007


class PseudonymKeyError(ValueError):
    """The file holds no key that can be used."""


class Pseudonyms:
    """Replaces the names of users, groups, projects and jobs.

    A project or a job is often called after its person. The kinds are hashed apart: that a group
    is called like a user cannot be seen. Clusters and queues keep their names.

    Args:
        key: secret, and the same for ever: with another one history is nobody's. Without one
            names stay as they are.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key
        self.forget()

    def forget(self) -> None:
        """Let go of the names that were met, which are only remembered for their speed."""
        self.user: Pseudonym = self._of_kind("user")
        self._group = self._of_kind("group")
        self.project: Pseudonym = self._of_kind("project")
        self._application = _alike_but_for_digits(self._of_kind("application"))

    def submission(self, job: Submission) -> Submission:
        """The job with pseudonyms in place of names."""
        if self._key is None:
            return job
        return replace(
            job,
            user=self.user(job.user),
            group=self._group(job.group),
            project=self.project(job.project),
            application=self._application(job.application),
        )

    def completion(self, run: Completion) -> Completion:
        """The run with pseudonyms in place of names."""
        if self._key is None:
            return run
        return replace(run, submission=self.submission(run.submission))

    def reports(self, runs: list[ReportedCompletion]) -> list[ReportedCompletion]:
        """The runs with pseudonyms in place of names."""
        if self._key is None:
            return runs
        return [replace(run, completion=self.completion(run.completion)) for run in runs]

    def _of_kind(self, kind: str) -> Pseudonym:
        if self._key is None:
            return _itself
        keyed = hmac.new(self._key, kind.encode() + b"\0", hashlib.sha256)

        @lru_cache(REMEMBERED)
        def pseudonym(name: str | None) -> str | None:
            if name is None:
                return None
            hashed = keyed.copy()
            hashed.update(name.encode("utf-8", "surrogatepass"))
            return hashed.digest()[:LENGTH].hex()

        return pseudonym


def _alike_but_for_digits(pseudonym: Pseudonym) -> Pseudonym:
    """Pseudonyms that differ in digits alone where names do, as attention leaves digits out.

    Letters stand for the name without its digits, and a number behind them for all of it.
    """
    if pseudonym is _itself:
        return _itself

    @lru_cache(REMEMBERED)
    def alike(name: str | None) -> str | None:
        whole, stem = pseudonym(name), pseudonym(without_digits(name))
        if whole is None or stem is None or whole == stem:
            return whole
        return f"{stem.translate(_LETTERS)}{int(whole, 16)}"

    return alike


def _itself(name: str | None) -> str | None:
    return name


def read_pseudonyms(file: Path | None) -> Pseudonyms:
    """The pseudonyms of the key in this file; without a file names stay as they are.

    Raises:
        PseudonymKeyError: it cannot be read, is open to everybody, or is too short.
    """
    if file is None:
        return Pseudonyms()
    try:
        mode, content = file.stat().st_mode, file.read_bytes()
    except OSError as error:
        raise PseudonymKeyError(
            f"The pseudonym key {file} cannot be read: {error.strerror}."
        ) from error
    if mode & READABLE_BY_OTHERS:
        raise PseudonymKeyError(f"The pseudonym key {file} is open to everybody: chmod o= it.")
    key = content.strip()
    if len(key) < SHORTEST_KEY:
        raise PseudonymKeyError(f"The pseudonym key {file} has less than {SHORTEST_KEY} bytes.")
    return Pseudonyms(key)
