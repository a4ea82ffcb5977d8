"""The address of the service, as filters, forwarder and followers are told it."""

import ipaddress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct

from service.cli.doctor import address_of
from simulator.cli.console import CommandError, ExitCode

if TYPE_CHECKING:
    from service.settings import Settings

USUAL = "http://127.0.0.1:8580"


class ServiceAddress(Struct, frozen=True):
    """An address.

    Attributes:
        url: ``http://ADDRESS:PORT`` or ``unix:FILE``.
    """

    url: str

    def for_filters(self) -> dict[str, Any]:
        """Return the settings of a filter; none for the usual address."""
        if self.url == USUAL:
            return {}
        if self.url.startswith("unix:"):
            return {"unix_socket": self.url.removeprefix("unix:")}
        parts = urlsplit(self.url)
        return {"host": parts.hostname, "port": parts.port or 80}

    def for_forwarder(self) -> list[str]:
        """Return the options of the forwarder or a follower; none for the usual address."""
        return [] if self.url == USUAL else ["--url", self.url]


def service_address(settings: "Settings", url: str | None) -> ServiceAddress:
    """Return the address of the settings, or ``url``.

    Raises:
        CommandError: filters cannot use it: they speak HTTP to a number, or to a Unix socket.
    """
    address = url or address_of(settings)
    if address.startswith("unix:/"):
        return ServiceAddress(address)
    parts = urlsplit(address)
    try:
        ipaddress.ip_address(parts.hostname or "")
        is_usable = parts.scheme == "http" and not parts.path.strip("/") and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise CommandError(
            f"--url {address} cannot be used by filters: it has to be http://ADDRESS:PORT with a "
            "number as the address, or unix:FILE. For TLS let a proxy on that host listen on "
            "127.0.0.1.",
            ExitCode.USAGE,
        )
    return ServiceAddress(address)
