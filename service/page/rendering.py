"""Turning what a page shows into HTML; everything is escaped unless it is marked as HTML."""

import asyncio
from collections.abc import Mapping
from importlib.metadata import version
from time import perf_counter
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from service.page import wording
from service.page.assets import Assets

SLICE_SECONDS = 0.001
"""How long a page is rendered before whatever else waits for the event loop has its turn."""


class Renderer:
    """Renders templates of this package on the event loop, and leaves it to predictions.

    Templates are compiled in a thread when the first page is asked for. A page is rendered in
    slices: a queue of fifty jobs takes longer than many predictions.

    Args:
        assets: what pages link to.
    """

    def __init__(self, assets: Assets) -> None:
        self._environment = Environment(
            loader=PackageLoader("service.page"),
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

        self._templates: Mapping[str, Template] = {}
        self._compiling = asyncio.Lock()

    async def render(self, template: str, **shown: Any) -> str:
        """A page; what it shows must not change meanwhile."""
        if not self._templates:
            await self._compile()
        pieces = []
        until = perf_counter() + SLICE_SECONDS
        for piece in self._templates[f"{template}.html"].generate(shown):
            pieces.append(piece)
            if perf_counter() >= until:
                await asyncio.sleep(0)
                until = perf_counter() + SLICE_SECONDS
        return "".join(pieces)

    async def _compile(self) -> None:
        async with self._compiling:
            if not self._templates:
                self._templates = await asyncio.to_thread(self._all_templates)

    def _all_templates(self) -> Mapping[str, Template]:
        names = self._environment.list_templates()
        return {name: self._environment.get_template(name) for name in names}
