"""What stands around every page: who looks at it, of which cluster, and where else to go."""

from collections.abc import Sequence
from urllib.parse import urlencode

from msgspec import Struct

from service.auth import Caller, Scope

READERS = (Scope.READ, Scope.SELF)
"""Scopes of which a token needs one to be logged in with."""


class Visitor(Struct, frozen=True):
    """Who looks at the pages.

    Attributes:
        caller: what may be seen.
        name: of the token; empty where none is asked for.
    """

    caller: Caller
    name: str = ""

    @property
    def is_logged_in(self) -> bool:
        """Whether there is a session that can be ended."""
        return bool(self.name)

    @property
    def sees_everybody(self) -> bool:
        """Whether names and jobs of all users are shown."""
        return self.caller.only is None


class Page(Struct, frozen=True):
    """A page in the list of pages."""

    path: str
    title: str


PAGES = (
    Page("/", "Now"),
    Page("/accuracy", "Accuracy"),
    Page("/queue", "Queue"),
    Page("/users", "Users"),
    Page("/rounds", "Rounds"),
)

OWN_PAGES = tuple(Page("/users", "My jobs") if page.path == "/users" else page for page in PAGES)


class Frame(Struct, frozen=True):
    """The frame of one page."""

    visitor: Visitor
    path: str
    cluster: str
    clusters: Sequence[str]

    @property
    def pages(self) -> Sequence[Page]:
        """The pages that this visitor is shown."""
        return PAGES if self.visitor.caller.only is None else OWN_PAGES

    @property
    def query(self) -> str:
        """What the links to other pages end with, so that the cluster stays."""
        return "?" + urlencode({"cluster": self.cluster}) if len(self.clusters) > 1 else ""
