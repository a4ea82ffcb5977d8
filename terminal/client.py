"""A client of a running service, with the two verbs of a predictor."""

import socket
import ssl
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

import msgspec

from predictors.jobs import Completion, Prediction, Submission
from terminal.exit_codes import ExitCode

Answer = TypeVar("Answer")

LARGEST_BATCH = 1000
"""Most jobs in one request; the service's own limit is 10,000 unless it is set lower."""


SOCKET_SCHEME = "unix:"
"""The prefix of the address of a service on a Unix socket; the socket's path follows."""


class RemoteError(Exception):
    """The service refused a call; the message is the service's.

    Attributes:
        status: status of the HTTP answer.
    """

    exit_code = ExitCode.FAILED

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"The service answered {status}: {detail}")
        self.status = status


class AddressError(ValueError):
    """The address is neither of the form http://HOST:PORT nor unix:FILE."""

    exit_code = ExitCode.USAGE


class ServiceUnreachableError(ConnectionError):
    """Nothing answers at the service's address."""


class ServiceUnavailableError(ConnectionError):
    """The service says that it cannot serve at the moment (503)."""


class AnsweredPrediction(Prediction, frozen=True, kw_only=True, gc=False):
    """A prediction as the service writes it."""

    mean: float | None = msgspec.field(default=None, name="mean_walltime")
    median: float | None = msgspec.field(default=None, name="likely")


class BatchAnswer(msgspec.Struct):
    """The answer to several submissions: predictions in their order."""

    predictions: list[AnsweredPrediction]


class SocketConnection(HTTPConnection):
    """HTTP over a Unix socket; the mode of the socket's file decides which users may call."""

    def __init__(self, path: str, *, timeout: float) -> None:
        super().__init__("walltimed", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Open the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def connection_to(url: str, timeout: float) -> tuple[HTTPConnection, str]:
    """Return an unopened connection, and the prefix of the path of every call.

    Raises:
        AddressError: ``url`` is neither of the form http://HOST:PORT nor unix:FILE.
    """
    if not isinstance(url, str):
        raise _no_address(url)
    if url.startswith(SOCKET_SCHEME):
        return SocketConnection(url.removeprefix(SOCKET_SCHEME), timeout=timeout), ""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:  # a port that is none, or half an IPv6 address
        raise _no_address(url) from None
    if parts.scheme not in {"http", "https"} or not host:
        raise _no_address(url)
    path = parts.path.rstrip("/")
    if parts.scheme == "http":
        return HTTPConnection(host, port, timeout=timeout), path
    trusted = ssl.create_default_context()
    return HTTPSConnection(host, port, timeout=timeout, context=trusted), path


def _no_address(url: object) -> AddressError:
    return AddressError(f"{url!r} is not of the form http://HOST:PORT or unix:FILE.")


class Closes(ABC):
    """A holder of connections that ``with`` closes at its end."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections; the next call opens one again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class Client(Closes):
    """One kept connection to a service; not for several threads.

    Args:
        url: such as http://127.0.0.1:8580 or unix:/run/walltimed.sock; https works, too.
        timeout: seconds until a silent service counts as unreachable.
        credential: makes the Authorization header of each request, if there is one, in the place
            of a token.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = 60.0,
        credential: Callable[[], str | None] | None = None,
    ) -> None:
        self.url = url
        self._connection, self._path = connection_to(url, timeout)
        self._headers = {"Content-Type": "application/json", "User-Agent": "walltimed"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._credential = credential

    def predict(self, submission: Submission, method: str | None = None) -> Prediction:
        """Request one prediction; without a method the service's default answers."""
        question = fields_of(submission) | _method(method)
        answer = self.call("POST", "/v1/predictions", question)
        return self.read(answer, AnsweredPrediction)

    def predict_batch(
        self, submissions: Sequence[Submission], method: str | None = None
    ) -> Sequence[Prediction]:
        """Request several predictions at once; they are the same as one by one."""
        question = {"submissions": [fields_of(each) for each in submissions], **_method(method)}
        answer = self.call("POST", "/v1/predictions/batch", question)
        return self.read(answer, BatchAnswer).predictions

    def observe(self, *completions: Completion) -> None:
        """Report runs that have ended. They are stored durably when the call returns.

        A run that is reported twice counts once, so a call without an answer may be repeated.
        """
        for first in range(0, len(completions), LARGEST_BATCH):
            body = [completion_fields(each) for each in completions[first : first + LARGEST_BATCH]]
            self.call("POST", "/v1/completions", {"completions": body})

    def wait_until_ready(self, seconds: float = 60.0) -> None:
        """Wait until the service reports that it has read its history.

        Before that the service answers from a part of its history, so a replay must wait.

        Raises:
            ServiceUnavailableError: the service was not ready within ``seconds``.
        """
        deadline = time.monotonic() + seconds
        while True:
            try:
                self.call("GET", "/health/ready")
            except ServiceUnavailableError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
            else:
                return

    def call(self, verb: str, path: str, body: Any = None) -> bytes:
        """Send a request and return the body of the answer.

        If the service has closed the kept connection, it is opened once more and the request is
        sent again. Every call may be sent twice.

        Raises:
            RemoteError: the service answered with an error.
            ServiceUnreachableError: the service did not answer.
            ServiceUnavailableError: the service answered with 503.
        """
        payload = None if body is None else msgspec.json.encode(body)
        try:
            response = self._exchange(verb, path, payload)
        except (ConnectionError, HTTPException):
            self.close()
            response = self._exchange_anew(verb, path, payload)
        except OSError as error:
            self.close()
            raise self._unreachable(error) from error
        answer, status = response
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            raise ServiceUnavailableError(f"{self.url} cannot serve now: {_detail(answer)}")
        if status >= HTTPStatus.BAD_REQUEST:
            raise RemoteError(status, _detail(answer))
        return answer

    def read(self, answer: bytes, kind: type[Answer]) -> Answer:
        """Decode the body of an answer.

        Raises:
            ServiceUnreachableError: it is none of walltimed: another program listens there.
        """
        try:
            return msgspec.json.decode(answer, type=kind)
        except msgspec.MsgspecError as error:
            raise ServiceUnreachableError(
                f"{self.url} answers, but not as walltimed does: {error}."
            ) from error

    def _exchange(self, verb: str, path: str, payload: bytes | None) -> tuple[bytes, int]:
        headers = self._headers
        if self._credential is not None and (authorization := self._credential()):
            headers = {**headers, "Authorization": authorization}
        self._connection.request(verb, self._path + path, payload, headers)
        response: HTTPResponse = self._connection.getresponse()
        return response.read(), response.status

    def _exchange_anew(self, verb: str, path: str, payload: bytes | None) -> tuple[bytes, int]:
        try:
            return self._exchange(verb, path, payload)
        except (OSError, HTTPException) as error:
            self.close()
            raise self._unreachable(error) from error

    def _unreachable(self, error: Exception) -> ServiceUnreachableError:
        return ServiceUnreachableError(f"No service answers at {self.url}: {error}")

    def close(self) -> None:
        """Close the connection; the next call opens it again."""
        self._connection.close()


def fields_of(submission: Submission) -> dict[str, Any]:
    """Return the known attributes of a submission as fields of the HTTP contract."""
    fields = msgspec.structs.asdict(submission)
    if (facts := fields.pop("facts")) is not None:
        fields |= msgspec.structs.asdict(facts)
    return {name: value for name, value in fields.items() if value is not None}


def completion_fields(run: Completion) -> dict[str, Any]:
    """Return a run as fields of the HTTP contract."""
    return {
        **fields_of(run.submission),
        "start_time": run.start_time,
        "end_time": run.end_time,
        "runtime": run.runtime,
        "status": run.status,
    }


def _method(method: str | None) -> dict[str, str]:
    """Return the field of a question that names a method, if there is one."""
    return {} if method is None else {"method": method}


def _detail(answer: bytes) -> str:
    """Return field and sentence of an error answer, else its first characters."""
    try:
        error = msgspec.json.decode(answer)
        field = f"{error['field']}: " if "field" in error else ""
        return f"{field}{error['detail'] or error['status']}"
    except (msgspec.DecodeError, KeyError, TypeError):
        return answer[:200].decode(errors="replace") or "(no body)"
