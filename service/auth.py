"""Callers: which calls a token or MUNGE credential allows, whose jobs it sees, and pseudonyms.

Pseudonyms are keyed hashes in place of names of people, in the history, in logs and in memory.
Requests and records have names in clear, which are replaced on receipt. Equal names have equal
pseudonyms. Pseudonyms of job names that differ only in digits differ only in digits too. So every
prediction is the same as for the names themselves.
"""

import asyncio
import hashlib
import hmac
import pwd
import re
from base64 import b64decode
from collections.abc import Awaitable, Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from msgspec.structs import replace

from predictors.facts import HashOf, hash_by, hashed, unkeyed
from predictors.jobs import Completion, Submission, without_digits
from service.errors import ForbiddenError, MissingTokenError, MungeTooLongError
from service.store import ReportedCompletion, Token, parse_token
from terminal import munge
from terminal.scopes import Scope

MOST_CACHED_HEADERS = 1_000
"""Size of the cache of valid Authorization headers; one token can be spelled in many ways."""

MUNGE = b"munge "

CREDENTIAL = re.compile(r"MUNGE:[A-Za-z0-9+/=]{1,4096}:")
"""The form of a credential; munged never sees anything else."""

MUNGE_SECONDS = 2.0
"""Time in which munged has to answer, waiting for a thread included."""

MUNGE_THREADS = 2


FindNewTokens = Callable[[], Awaitable[None]]
"""Returns once the guard knows every token that was issued before the call."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The rights of a caller: permitted operations and visible jobs.

    Attributes:
        restricted_to: name in the history of the one user whose jobs the caller may see; None if
            the caller may see all jobs.
    """

    scopes: frozenset[str]
    restricted_to: str | None = None

    def has_scope(self, wanted: Collection[str]) -> bool:
        """Return whether the caller has one of the ``wanted`` scopes, or none is wanted."""
        return not wanted or not self.scopes.isdisjoint({*wanted, Scope.ADMIN})

    def can_see(self, user: str | None) -> bool:
        """Return whether the caller may see the jobs of ``user``."""
        return self.restricted_to is None or self.restricted_to == user

    def check_sees(self, names: Collection[str | None]) -> None:
        """Refuse a user, with these names in the history, whose jobs the caller may not see.

        Raises:
            ForbiddenError: none of the names is the caller's own.
        """
        if not any(map(self.can_see, names)):
            raise ForbiddenError("This token is good for what is its own user's.")

    def own(self, submission: Submission) -> Submission:
        """Return the submission as the caller's own, if the caller may ask about no other.

        Raises:
            ForbiddenError: it names another user.
        """
        if self.restricted_to is None:
            return submission
        if submission.user not in {None, self.restricted_to}:
            raise ForbiddenError("You may ask about your own jobs only.")
        return replace(submission, user=self.restricted_to)


EVERYBODY = Caller(frozenset(Scope))
"""The caller of a service that needs no tokens."""


class Guard:
    """Admits requests by the tokens that the store holds.

    Until the first token is issued the service is open, unless ``always`` closes it, as beyond
    loopback. From then on every call needs a token, even if all tokens are revoked: revoking a
    leaked token must not open the service.

    A valid header is cached until the tokens are read again, some seconds later. The cache is a
    dictionary, whose hash key is random in each process, so that the time of a look-up tells
    nothing about valid headers.

    Args:
        always: whether calls need a token also before the first one is issued.

    Attributes:
        is_open: whether no call needs a token.
    """

    def __init__(self, *, always: bool) -> None:
        self._always = always
        self.is_open = not always
        self._tokens: dict[str, tuple[Token, Caller]] = {}
        self._callers: dict[bytes | None, Caller] = {}

    def update(self, tokens: Iterable[Token]) -> None:
        """Replace all tokens by these; revoked ones count as issued."""
        ever_issued = list(tokens)
        self._callers.clear()
        self.is_open = not (ever_issued or self._always)
        self._tokens = {
            token.token_id: (token, Caller(token.scopes, token.user))
            for token in ever_issued
            if token.revoked_at is None
        }

    def admit(self, authorization: bytes | None, scopes: Collection[str]) -> Caller:
        """Return the caller of a request; without ``scopes`` any valid token suffices.

        Raises:
            MissingTokenError: there is no valid token in the header.
            ForbiddenError: its token does not allow this call.
        """
        if self.is_open:
            return EVERYBODY
        caller = self._callers.get(authorization)
        if caller is None:
            caller = self._bearer(authorization)
            if len(self._callers) == MOST_CACHED_HEADERS:
                self._callers.clear()
            self._callers[authorization] = caller
        return allowed(caller, scopes)

    def find(self, text: str) -> tuple[Token, Caller] | None:
        """Return the valid token of a text, and its bearer; None if there is none."""
        token_id, secret = parse_token(text) or ("", "")
        found = self._tokens.get(token_id)
        return found if found and found[0].matches(secret) else None

    def bearer_of(self, token_id: str) -> tuple[Token, Caller] | None:
        """Return the valid token of an id, and its bearer, for sessions that a token opened."""
        return self._tokens.get(token_id)

    def _bearer(self, authorization: bytes | None) -> Caller:
        """Return the bearer of the valid token in the header.

        A token reads ``wt_<id>_<secret>``: the id finds the hash that the secret must match.
        """
        if authorization is None:
            raise MissingTokenError("This call needs a token: 'Authorization: Bearer wt_…'.")
        found = self.find(token_text(authorization))
        if found is None:
            raise MissingTokenError("The token is not valid.")
        return found[1]


class NotProtectedError(OSError):
    """Raised when the service would listen beyond this machine without a token."""


def check_protected(host: str | None, tokens: Callable[[], Iterable[Token]]) -> None:
    """Refuse to listen beyond loopback while no valid token has been issued.

    Args:
        host: to listen on; None if calls need no token there.
        tokens: reads all tokens; called only if calls need one.

    Raises:
        NotProtectedError: the message says what to do.
    """
    if host is not None and all(token.revoked_at is not None for token in tokens()):
        raise NotProtectedError(
            f"Listening on {host} needs a token: issue one with `walltimed token issue`."
        )


def allowed(caller: Caller, scopes: Collection[str]) -> Caller:
    """Return the caller, if the caller has one of ``scopes``.

    Raises:
        ForbiddenError: the caller has none of them.
    """
    if not caller.has_scope(scopes):
        raise ForbiddenError(f"This call needs a token with scope {' or '.join(scopes)}.")
    return caller


def token_text(authorization: bytes) -> str:
    """Return the token in a header: a bearer token, or the password of any user.

    Slurm's jobcomp plugin can send no header but the one of ``http://user:password@host/``.
    """
    kind, _, text = authorization.decode("latin-1").partition(" ")
    if kind.lower() == "bearer":
        return text.strip()
    if kind.lower() != "basic":
        return ""
    try:
        credentials = b64decode(text.strip(), validate=True)
    except ValueError:
        return ""
    return credentials.decode("latin-1").partition(":")[2]


class MungeCallers:
    """Finds callers by credentials, in threads of its own: munged may be slow, or hang.

    Args:
        socket: of munged; None refuses every credential.
        pseudonym: from a user's name to the name in the history.
    """

    def __init__(self, socket: Path | None, pseudonym: Callable[[str | None], str | None]) -> None:
        self._socket = socket
        self._pseudonym = pseudonym
        self._threads = ThreadPoolExecutor(MUNGE_THREADS, thread_name_prefix="munge")

    async def caller(self, authorization: bytes) -> Caller:
        """Return the caller of a request, who may do what a token of scope self allows.

        Raises:
            MissingTokenError: the credential is not valid, or was used before.
            MungeTooLongError: munged does not answer in time.
        """
        credential = authorization[len(MUNGE) :].decode("latin-1").strip()
        if not CREDENTIAL.fullmatch(credential):
            raise MissingTokenError("This is no MUNGE credential.")
        if self._socket is None or not self._socket.exists():
            raise MissingTokenError("The service takes no MUNGE credentials; it needs a token.")
        loop = asyncio.get_running_loop()
        named = loop.run_in_executor(self._threads, user_of, credential, self._socket)
        try:
            name = await asyncio.wait_for(named, MUNGE_SECONDS)
        except (TimeoutError, munge.MungeUnavailableError) as error:
            raise MungeTooLongError from error
        return Caller(frozenset({Scope.SELF}), self._pseudonym(name))


def is_credential(authorization: bytes | None) -> bool:
    """Return whether an Authorization header has the scheme ``Munge``."""
    return authorization is not None and authorization[: len(MUNGE)].lower() == MUNGE


def user_of(credential: str, socket: Path) -> str:
    """Return the name of the user who made a credential.

    Raises:
        MissingTokenError: it is refused, or the user is not known on this host.
        MungeUnavailableError: munged does not answer.
    """
    try:
        user_id = munge.decode(credential, socket)
    except munge.CredentialRefusedError as error:
        raise MissingTokenError(f"The MUNGE credential is refused: {error}.") from error
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        raise MissingTokenError(f"The service's host knows no user {user_id}.") from None


Pseudonym = Callable[[str | None], str | None]
"""Function from a name to its pseudonym; None stays None."""

SHORTEST_KEY = 32
"""Smallest number of bytes of a key: a short key could be guessed, and names tried with it."""

LENGTH = 16
"""Bytes of a pseudonym: with 128 bits no two names of a site collide."""

_LETTERS = str.maketrans("0123456789", "ghijklmnop")

REMEMBERED = 65_536
"""Cached pseudonyms of each kind of name; computing one takes 3 microseconds."""

REMEMBERED_FACTS = 4_096
"""Cached hashes of facts, whose texts have up to 4 kB each."""

READABLE_BY_OTHERS = 0o007


class PseudonymKeyError(ValueError):
    """Raised when a file holds no usable key."""


class Pseudonyms:
    """Replaces the names of users, groups, projects and jobs.

    Projects and jobs often have a person's name. Each kind of name is hashed with another key, so
    that a group and a user of one name have different pseudonyms. Clusters and queues keep theirs.
    Texts of further facts are hashed at every site, without a key by a hash that others can try.

    Args:
        key: secret. With another key, the history belongs to no current user. None keeps names.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key
        self._clear: list[Callable[[], None]] = []
        self.user: Pseudonym = self._of_kind("user")
        self._group = self._of_kind("group")
        self.project: Pseudonym = self._of_kind("project")
        keyed = None if key is None else hmac.new(key, b"fact\0", hashlib.sha256)
        hash_of = unkeyed if keyed is None else partial(hash_by, _digest_of(keyed))
        remembered = lru_cache(REMEMBERED_FACTS)(hash_of)
        self._hash_of: HashOf = remembered
        self._clear.append(remembered.cache_clear)
        self._application = self._alike_but_for_digits(self._of_kind("application"))

    def forget(self) -> None:
        """Empty the caches of pseudonyms, also for those who hold ``user`` or ``project``."""
        for clear in self._clear:
            clear()

    def submission(self, job: Submission) -> Submission:
        """Return the job with pseudonyms in place of names, and hashes in place of other text."""
        if job.facts is not None:
            job = replace(job, facts=hashed(job.facts, self._hash_of))
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
        if self._key is None and run.submission.facts is None:
            return run
        return replace(run, submission=self.submission(run.submission))

    def report(self, run: ReportedCompletion) -> ReportedCompletion:
        """Return the reported run with pseudonyms in place of names."""
        if self._key is None and run.completion.submission.facts is None:
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

        self._clear.append(pseudonym.cache_clear)
        return pseudonym

    def _alike_but_for_digits(self, pseudonym: Pseudonym) -> Pseudonym:
        """Return pseudonyms that differ only in digits where names do: attention ignores digits.

        The letters are the hash of the name without digits, the number behind them that of the
        name.
        """
        if pseudonym is _itself:
            return _itself

        @lru_cache(REMEMBERED)
        def alike(name: str | None) -> str | None:
            whole, stem = pseudonym(name), pseudonym(without_digits(name))
            if whole is None or stem is None or whole == stem:
                return whole
            return f"{stem.translate(_LETTERS)}{int(whole, 16)}"

        self._clear.append(alike.cache_clear)
        return alike


def _digest_of(keyed: hmac.HMAC) -> Callable[[str], bytes]:
    def digest(text: str) -> bytes:
        hash_ = keyed.copy()
        hash_.update(text.encode("utf-8", "surrogatepass"))
        return hash_.digest()

    return digest


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
