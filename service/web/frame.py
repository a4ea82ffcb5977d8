"""The frame around every page: templates, styles, figures and times in words, and sources."""

import re
import shlex
import time
from collections.abc import Callable, Hashable, Sequence
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from msgspec import Struct
from pydantic import BaseModel, Field

from service.auth import Caller, read_pseudonyms
from service.contract.answers import TuningAnswer
from service.operations.history_showing import answer_of
from service.operations.queue_showing import ShowingQueue
from service.operations.request_reports import ReportingRequests
from service.settings import Settings
from service.store import MethodScore, Side, Store
from service.worker.queue_keeper import StoredQueues
from simulator.reports import palette
from terminal import words
from terminal.scopes import Scope

NOTHING = "\N{EN DASH}"
"""Text in place of an unknown figure."""

duration: Callable[..., str] = partial(words.duration, unknown=NOTHING)

walltime: Callable[[float | None], str] = partial(words.walltime, unknown=NOTHING)


def share(value: float | None) -> str:
    """Return a share as a percentage, with a digit more where it is small."""
    if value is None:
        return NOTHING
    percent = 100.0 * value
    return f"{percent:.1f}%" if 0.0 < percent < 10.0 else f"{percent:.0f}%"


def count(value: float | None) -> str:
    """Return a number with its thousands apart."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:,.1f}"


def breakable(text: str) -> Markup:
    """Return a name such as ``QOSMaxCpuPerUserLimit`` that may be broken before its capitals."""
    return Markup("<wbr>").join(re.split(r"(?<=[a-z])(?=[A-Z])", text))


def moment(at: float | None, kind: str = "moment") -> str | Markup:
    """Return a time that the page's script shows in the viewer's zone; UTC without it."""
    if at is None:
        return NOTHING
    try:
        when = datetime.fromtimestamp(at, UTC)
    except (OverflowError, ValueError, OSError):  # a time of a log may be any number
        return NOTHING
    text = when.strftime("%Y-%m-%d %H:%M UTC")
    return Markup('<time datetime="{}" data-as="{}">{}</time>').format(
        when.strftime("%Y-%m-%dT%H:%M:%SZ"), kind, text
    )


def date(at: float) -> str:
    """Return a day in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


def measured(value: float | None, unit: str, beside: float | None) -> str | Markup:
    """Return a figure of a chart in the chart's unit, durations in that of the one beside."""
    match unit:
        case "moment":
            return moment(value)
        case "duration":
            return duration(value, beside=beside)
    return {"share": share, "count": count}[unit](value)


KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}

PLACE = "/static"

READERS = (Scope.READ, Scope.SELF)
"""Scopes of which a token needs one to be logged in with."""


class Visitor(Struct, frozen=True):
    """A person who looks at the pages.

    Attributes:
        caller: what may be seen.
        name: of the token; empty where none is needed.
    """

    caller: Caller
    name: str = ""

    @property
    def is_logged_in(self) -> bool:
        """Whether the visitor has a session that can be ended."""
        return bool(self.name)

    @property
    def sees_everybody(self) -> bool:
        """Whether names and jobs of all users are shown."""
        return self.caller.restricted_to is None


Name = Annotated[str, Field(max_length=256)]


class PageQuery(BaseModel):
    """The query of a page; what it does not name is ignored."""

    cluster: Name | None = None


class Frame(Struct, frozen=True):
    """The frame of one page.

    Attributes:
        path: of the page's entry in the menu.
        url: address of the service as the visitor reaches it.
    """

    visitor: Visitor
    path: str
    cluster: str
    clusters: tuple[str, ...]
    url: str

    @property
    def query(self) -> str:
        """Query of the links to other pages, so that the cluster stays."""
        return "?" + urlencode({"cluster": self.cluster}) if len(self.clusters) > 1 else ""


class Asset(Struct, frozen=True):
    """A file as it is answered."""

    content: bytes
    kind: str
    tag: str


class Assets:
    """All assets, in memory. Their addresses change with their content."""

    def __init__(self) -> None:
        folder = files("service.web") / "static"
        contents = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
        contents["palette.css"] = palette.css().encode()
        self._assets = {
            name: Asset(content, f"{kind}; charset=utf-8", sha256(content).hexdigest()[:16])
            for name, content in contents.items()
            if (kind := KINDS.get(name.rpartition(".")[2]))
        }

    def address(self, name: str) -> str:
        """Return the path of an asset."""
        return f"{PLACE}/{self._assets[name].tag}/{name}"

    def find(self, tag: str, name: str) -> Asset | None:
        """Return the asset of this name and content tag; None if there is none."""
        asset = self._assets.get(name)
        return asset if asset is not None and asset.tag == tag else None


class Renderer:
    """Renders templates of this package."""

    def __init__(self, assets: Assets) -> None:
        self._environment = Environment(
            loader=PackageLoader("service.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= {
            "breakable": breakable,
            "count": count,
            "date": date,
            "duration": duration,
            "in_words": words.in_words,
            "measured": measured,
            "moment": moment,
            "share": share,
            "shell_word": shlex.quote,
            "usual": words.usual,
            "walltime": walltime,
        }
        self._environment.globals |= {
            "asset": assets.address,
            "release": version("walltimed"),
            "frame": None,
            "refresh": None,
        }

    def render(self, template: str, **variables: Any) -> str:
        """Return a page; its template is compiled at its first use."""
        return self._environment.get_template(f"{template}.html").render(variables)


T = TypeVar("T")

MOST = 1000
"""Most answers in the cache; beyond that it is emptied."""


class AnswerCache:
    """A cache of answers for some seconds: ten open pages cost as much as one."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, most: int = MOST) -> None:
        self._clock = clock
        self._most = most
        self._entries: dict[Hashable, tuple[float, Any]] = {}

    def get(self, key: Hashable, seconds: float, read: Callable[[], T]) -> T:
        """Return what ``read`` returned, not older than ``seconds``."""
        entry = self._entries.get(key)
        if entry is None or self._clock() - entry[0] >= seconds:
            value = read()
            if len(self._entries) >= self._most:
                self._entries.clear()
            self._entries[key] = entry = (self._clock(), value)
        answer: T = entry[1]
        return answer

    def clear(self) -> None:
        """Empty the cache."""
        self._entries.clear()


class PageSources:
    """Store and operations that the views of pages read.

    Args:
        store: of this process alone.

    Attributes:
        store: the history.
        cache: answers that were read lately.
        reports: compares requests with runtimes.
    """

    def __init__(
        self, settings: Settings, store: Store, clock: Callable[[], float] = time.time
    ) -> None:
        pseudonyms = read_pseudonyms(settings.pseudonym_key_file)
        self.settings = settings
        self.store = store
        self.clock = clock
        self.cache = AnswerCache()
        self._pseudonyms = pseudonyms
        self._stored = StoredQueues(store.queues)
        self.queues = ShowingQueue(
            method=settings.method,
            max_age=settings.snapshot_max_age_seconds,
            find_queue=self._stored.of,
            pseudonyms=pseudonyms,
            clock=clock,
        )
        self.reports = ReportingRequests(store, pseudonyms=pseudonyms, clock=clock)

    def forget(self) -> None:
        """Empty all caches."""
        self.cache.clear()
        self._pseudonyms.forget()
        self._stored.read.clear()

    def scores(self, cluster: str, side: Side, *, days: int, fresh: float) -> list[MethodScore]:
        """Return daily scores of a cluster, not older than ``fresh`` seconds."""
        return self.cache.get(
            ("scores", cluster, side, days),
            fresh,
            lambda: self.store.scores.daily(cluster, side, days=days),
        )

    def rounds(self, cluster: str) -> Sequence[TuningAnswer]:
        """Return the latest rounds of tuning of a cluster, newest first."""
        return [answer_of(each) for each in self.store.tunings.of_cluster(cluster)]
