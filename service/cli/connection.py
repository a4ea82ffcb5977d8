"""Connect commands of users with the service, and say so in one sentence when it is away."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from predictors.jobs import DEFAULT_CLUSTER
from terminal import munge
from terminal.console import CommandError, ExitCode, err

if TYPE_CHECKING:
    from terminal.client import Client

ON_LOOPBACK = "http://127.0.0.1:8580"

CURE_OF_401 = (
    " Ask your centre for a token (--token-file), or name the socket of munged by "
    "WALLTIMED_MUNGE_SOCKET."
)

SECONDS = 10.0
"""Seconds that the service may take to answer."""

Url = Annotated[
    str | None,
    typer.Option(
        envvar="WALLTIMED_URL",
        help="URL of the service, or unix:FILE. Default: the service of this machine.",
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        envvar="WALLTIMED_TOKEN_FILE",
        help="File with a token of scope self or read. Default: ~/.config/walltimed/token if it "
        "is there; else a MUNGE credential says who you are.",
    ),
]
ClusterName = Annotated[
    str | None,
    typer.Option(
        envvar="WALLTIMED_CLUSTER",
        help="Name of the cluster. Default: the only one that the service knows, or "
        "whose queue it knows.",
    ),
]


class ClusterService:
    """The calls of the service about one cluster; without a name, about its usual one."""

    def __init__(self, client: "Client", name: str | None) -> None:
        self.client = client
        self.name = cluster_for(client, name)

    def get(self, path: str, **query: object) -> dict[str, Any]:
        """Return the answer to a query about the cluster; parameters that are None are not sent."""
        return answer_of(self.client, "GET", path_to(path, cluster=self.name, **query))

    def call(self, *more: str, body: Any = None, **query: object) -> dict[str, Any]:
        """Return the answer of the call at the path ``more`` below the cluster."""
        from urllib.parse import quote

        path = "/".join(["/v1/clusters", *(quote(each, safe="") for each in (self.name, *more))])
        return answer_of(self.client, "POST" if body else "GET", path_to(path, **query), body)


@contextmanager
def asking(
    url: str | None, token_file: Path | None, cluster: str | None
) -> Iterator[ClusterService]:
    """Connect to the service, for calls about one cluster.

    Raises:
        CommandError: the service does not answer or refuses the call, or there are several
            clusters and none is named.
    """
    from terminal.client import Client, RemoteError, ServiceUnavailableError

    address = url or ON_LOOPBACK

    try:
        token = token_in(token_file)
        credential = None if token else munge_header()
        with Client(address, token=token, timeout=SECONDS, credential=credential) as client:
            yield from answering(client, cluster)
    except RemoteError as error:
        hint = CURE_OF_401 if error.status == HTTPStatus.UNAUTHORIZED else ""
        raise CommandError(f"The service refuses: {error}{hint}") from error
    except ServiceUnavailableError as error:
        raise CommandError(f"walltimed at {error}", ExitCode.UNAVAILABLE) from error
    except (ConnectionError, TimeoutError) as error:
        raise CommandError(
            f"walltimed does not answer at {address}.", ExitCode.UNAVAILABLE
        ) from error


def answering(client: "Client", cluster: str | None) -> Iterator[ClusterService]:
    """Yield the calls about a cluster; what is unknown may still be in the history that is read.

    Raises:
        CommandError: something is unknown, and the service still reads its history.
    """
    from terminal.client import RemoteError

    try:
        yield ClusterService(client, cluster)
    except RemoteError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            refuse_while_starting(client)
        raise


def refuse_while_starting(client: "Client") -> None:
    """Refuse an answer that knows nothing yet.

    Raises:
        CommandError: the service still reads its history.
    """
    from terminal.client import ServiceUnavailableError

    try:
        client.call("GET", "/health/ready")
    except ServiceUnavailableError as error:
        raise CommandError(
            f"walltimed at {client.url} still reads its history: ask again in a minute.",
            ExitCode.UNAVAILABLE,
        ) from error


def munge_header() -> Callable[[], str | None] | None:
    """Return a maker of Authorization headers from MUNGE credentials; None without a munged.

    A credential is good for one request. Without an answer of munged no header is sent.

    The socket of munged is the one that WALLTIMED_MUNGE_SOCKET names, else the usual one.
    """
    socket = Path(os.environ.get("WALLTIMED_MUNGE_SOCKET") or munge.DEFAULT_SOCKET)
    if not socket.exists():
        return None

    def header() -> str | None:
        try:
            return f"Munge {munge.encode(socket)}"
        except munge.MungeUnavailableError as error:
            err.print(escape(f"You are not named to the service: {error}"), style="yellow")
            return None

    return header


def token_in(file: Path | None) -> str | None:
    """Return the token in ``file``, else in the user's own token file, if there is one.

    Raises:
        OSError: the named file cannot be read.
        CommandError: the file holds more than a token.
    """
    if file is not None:
        return token_of(file)
    home = os.environ.get("XDG_CONFIG_HOME")
    own = (Path(home) if home else Path.home() / ".config") / "walltimed" / "token"
    try:
        return token_of(own)
    except OSError:
        return None


def token_of(file: Path) -> str:
    """Return the token in a file.

    Raises:
        OSError: it cannot be read.
        CommandError: it holds more; the message does not repeat it, as it may contain the token.
    """
    try:
        (token,) = file.read_text("ascii").split()
    except ValueError:
        raise CommandError(
            f"{file} does not hold one token and nothing else: write the last line of "
            "`walltimed token issue` into it.",
            ExitCode.USAGE,
        ) from None
    return token


def answer_of(client: "Client", verb: str, path: str, body: Any = None) -> dict[str, Any]:
    """Return the answer of the service.

    Raises:
        CommandError: something else answers.
    """
    import msgspec

    try:
        return msgspec.json.decode(client.call(verb, path, body), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise CommandError(f"Something else than walltimed answers at {client.url}.") from None


def path_to(path: str, **query: object) -> str:
    """Return a path with the query parameters that are not None."""
    from urllib.parse import urlencode

    parameters = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(parameters)}" if parameters else path


def cluster_for(client: "Client", name: str | None) -> str:
    """Return the named cluster, else the service's usual one; any name if it knows none yet.

    Raises:
        CommandError: the name is unknown, or there are several clusters and none is named.
    """
    answer = answer_of(client, "GET", "/v1/clusters")
    known, usual = answer["known"], answer["usual"]
    if not known:
        return name or DEFAULT_CLUSTER
    if name is None and usual:
        return str(usual)
    if name and name in known:
        return name
    refuse_while_starting(client)
    problem = f"No cluster {name!r} is known" if name else "There are several clusters"
    raise CommandError(f"{problem}: name one of {', '.join(known)} by --cluster.", ExitCode.USAGE)
