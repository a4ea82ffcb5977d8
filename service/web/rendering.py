"""Turning what a page shows into HTML; everything is escaped unless it is marked as HTML."""

from importlib.metadata import version
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from service.web import wording
from service.web.assets import Assets


class Renderer:
    """Renders templates of this package.

    Args:
        assets: what pages link to.
    """

    def __init__(self, assets: Assets) -> None:
        self._environment = Environment(
            loader=PackageLoader("service.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= {
            "clock": wording.clock,
            "count": wording.count,
            "date": wording.date,
            "duration": wording.duration,
            "in_words": wording.in_words,
            "measured": wording.measured,
            "moment": wording.moment,
            "share": wording.share,
        }
        self._environment.globals |= {
            "asset": assets.address,
            "release": version("walltimed"),
            "frame": None,
            "refresh": None,
        }

    def render(self, template: str, **shown: Any) -> str:
        """A page; its template is compiled when it is asked for first."""
        return self._environment.get_template(f"{template}.html").render(shown)
