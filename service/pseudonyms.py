"""Pseudonyms: keyed hashes in place of names of people, in the history, in logs and in memory.

Requests and records have names in clear, which are replaced on receipt. Equal names have equal
pseudonyms. Pseudonyms of job names that differ only in digits differ only in digits too. So every
prediction is the same as for the names themselves.
"""

import hashlib
import hmac
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from msgspec.structs import replace

from predictors.jobs import Completion, Submission, without_digits
from service.store import ReportedCompletion

Pseudonym = Callable[[str | None], str | None]
"""Function from a name to its pseudonym; None stays None."""

SHORTEST_KEY = 32
"""Smallest number of bytes of a key: a short key could be guessed, and names tried with it."""

LENGTH = 16
"""Bytes of a pseudonym: with 128 bits no two names of a site collide."""

_LETTERS = str.maketrans("0123456789", "ghijklmnop")

REMEMBERED = 65_536
"""Cached pseudonyms of each kind of name; computing one takes 3 microseconds."""

READABLE_BY_OTHERS = 0o007


class PseudonymKeyError(ValueError):
    """Raised when a file holds no usable key."""


class Pseudonyms:
    """Replaces the names of users, groups, projects and jobs.

    Projects and jobs often have a person's name. Each kind of name is hashed with another key, so
    that a group and a user of one name have different pseudonyms. Clusters and queues keep theirs.

    Args:
        key: secret. With another key, the history belongs to no current user. None keeps names.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key
        self.forget()

    def forget(self) -> None:
        """Empty the caches of pseudonyms."""
        self.user: Pseudonym = self._of_kind("user")
        self._group = self._of_kind("group")
        self.project: Pseudonym = self._of_kind("project")
        self._application = _alike_but_for_digits(self._of_kind("application"))

    def submission(self, job: Submission) -> Submission:
        """Return the job with pseudonyms in place of names."""
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
        """Return the run with pseudonyms in place of names."""
        if self._key is None:
            return run
        return replace(run, submission=self.submission(run.submission))

    def report(self, run: ReportedCompletion) -> ReportedCompletion:
        """Return the reported run with pseudonyms in place of names."""
        if self._key is None:
            return run
        return replace(run, completion=self.completion(run.completion))

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
    """Return pseudonyms that differ only in digits where names do: attention ignores digits.

    The letters are the hash of the name without digits, the number behind them that of the name.
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
    """Return the pseudonyms of the key in a file; without a file names stay as they are.

    Raises:
        PseudonymKeyError: the key cannot be read, is readable by all users, or is too short.
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
