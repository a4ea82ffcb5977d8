"""Finds visitors of pages by the headers of a proxy that has logged them in.

Apache with OpenID Connect, oauth2-proxy, Open OnDemand and JupyterHub set such headers. Anybody can
write a header: it counts only from the addresses that the settings name. Pages alone read it; it
allows no call of the API and adds nothing to the rights of a token.
"""

import re
from collections.abc import Callable, Sequence
from ipaddress import ip_address, ip_network

import structlog
from starlette.requests import Request

from service.auth import Caller
from service.errors import MalformedRequestError
from service.settings import UNIX_SOCKET, Settings
from terminal.scopes import Scope

log = structlog.get_logger()

LONGEST_NAME = 256
"""Characters of a user's name."""

LONGEST_GROUPS = 16_384
"""Characters of the header with groups."""

SEPARATORS = re.compile(r"[,;|]")


class TrustedProxy:
    """Reads user and groups from the headers of one named proxy.

    Args:
        settings: name headers, addresses and groups.
        pseudonym: from a user's name to the name in the history.
    """

    def __init__(self, settings: Settings, pseudonym: Callable[[str | None], str | None]) -> None:
        self._user_header = settings.proxy_user_header.lower()
        self._groups_header = settings.proxy_groups_header.lower()
        self._readers = frozenset(settings.proxy_read_groups)
        self._takes_socket = UNIX_SOCKET in settings.proxy_addresses
        self._networks = [
            ip_network(each) for each in settings.proxy_addresses if each != UNIX_SOCKET
        ]
        self._pseudonym = pseudonym
        self._has_warned = False

    @property
    def is_on(self) -> bool:
        """Whether the settings name a header of a proxy."""
        return bool(self._user_header)

    def caller(self, request: Request) -> Caller | None:
        """Return the user whom the proxy has logged in; None without one.

        The user has scope self, and scope read with a group that the settings name.

        Raises:
            MalformedRequestError: a header comes twice, or its text is no name.
        """
        if not self.is_on or not (found := values_of(request, self._user_header)):
            return None
        if not self._trusts(request):
            self._warn(request)
            return None
        name = one_of(found, self._user_header, LONGEST_NAME)
        if not name:
            return None
        if self._readers & self._groups_in(request):
            return Caller(frozenset({Scope.READ}))
        return Caller(frozenset({Scope.SELF}), self._pseudonym(name))

    def _groups_in(self, request: Request) -> frozenset[str]:
        """Return the groups of the user; none without a header of groups."""
        found = values_of(request, self._groups_header) if self._groups_header else []
        text = one_of(found, self._groups_header, LONGEST_GROUPS) if found else ""
        return frozenset(group for each in SEPARATORS.split(text) if (group := each.strip()))

    def _trusts(self, request: Request) -> bool:
        """Return whether a request comes from one of the proxy's addresses."""
        if request.client is None or not request.client.host:
            return self._takes_socket
        try:
            address = ip_address(request.client.host)
        except ValueError:
            return False
        return any(address in network for network in self._networks)

    def _warn(self, request: Request) -> None:
        """Log once that a header of the proxy came from elsewhere."""
        if not self._has_warned:
            self._has_warned = True
            log.warning(
                "a header of the proxy came from elsewhere and is ignored, as will be further ones",
                header=self._user_header,
                address=request.client.host if request.client else UNIX_SOCKET,
            )


def values_of(request: Request, header: str) -> Sequence[str]:
    """Return all values of a header; its name is in lower case."""
    return request.headers.getlist(header)


def one_of(values: Sequence[str], header: str, longest: int) -> str:
    """Return the only value of a header, without blanks around it.

    Raises:
        MalformedRequestError: there are several, or it is too long or not printable.
    """
    if len(values) > 1:
        raise MalformedRequestError(f"The request has two headers {header}.")
    text = values[0].strip(" \t")
    if len(text) > longest:
        raise MalformedRequestError(f"The header {header} is longer than {longest} characters.")
    if not (text.isascii() and text.isprintable()):
        raise MalformedRequestError(f"The header {header} has characters that cannot be printed.")
    return text
