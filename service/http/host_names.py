"""The names under which callers may address a service that asks for no tokens."""

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from service.errors import ForbiddenError

OWN_NAMES = frozenset({"localhost", "walltimed"})
"""Names besides the addresses of loopback; plug-ins of resource managers use the second."""


class HostNames:
    """Refuses requests under foreign host names, which only deceived browsers make.

    A page of a stranger can let its own name point to this machine (DNS rebinding). The browser
    then takes the service for part of the page, and lets the page read and write; but it sends
    the name in the header Host, and the site of the page in Origin.

    Args:
        also: names besides those of loopback.
    """

    def __init__(self, also: Iterable[str]) -> None:
        self._names = OWN_NAMES | {name.lower() for name in also}

    def check(self, host: bytes | None, origin: bytes | None) -> None:
        """Check the headers Host and Origin of a request.

        Raises:
            ForbiddenError: one of them names another machine.
        """
        if host is None or not is_ours(host, self._names):
            raise ForbiddenError(
                "While no token has been issued the service answers under the names of loopback "
                "only, and those of the setting host_names."
            )
        if origin is not None and not is_ours(origin.partition(b"://")[2], self._names):
            raise ForbiddenError("A page of another host may not call this service.")


@lru_cache(maxsize=1024)
def is_ours(host: bytes, names: frozenset[str]) -> bool:
    """Return whether ``host``, with or without a port, is in ``names`` or a loopback address."""
    try:
        name = urlsplit("//" + host.decode("ascii")).hostname or ""
    except ValueError:  # no ASCII, or brackets that do not match
        return False
    return name in names or is_loopback(name)


def is_loopback(address: str) -> bool:
    """Return whether ``address`` is an IP address of loopback."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False
