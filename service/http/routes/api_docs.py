"""The page of the API where the service has no other pages."""

import asyncio
from collections.abc import Callable, Mapping
from functools import cache
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from service.auth import EVERYBODY
from service.http.gate import needs
from service.http.routes.pages import HEADERS, add_assets, html, own_address
from service.web.api_page import ApiPage
from service.web.assets import Assets
from service.web.frame import Visitor
from service.web.rendering import Renderer

HIDDEN: dict[str, Any] = {"include_in_schema": False, "openapi_extra": needs()}
"""Any valid token, as for the document that the page shows: there is no form to log in with."""


def add(router: APIRouter, document: Callable[[], Mapping[str, Any]]) -> None:
    """Add the page, what it links to, and the way there from the service's own address."""
    assets = Assets()
    add_assets(router, assets)

    @cache
    def page() -> ApiPage:
        return ApiPage(Renderer(assets), document())

    @router.get("/docs", **HIDDEN)
    async def api(request: Request) -> Response:
        visitor, url = Visitor(EVERYBODY), own_address(request)
        shown = await asyncio.to_thread(page)
        text = await asyncio.to_thread(shown.show, visitor, url)
        return html(text.encode())

    @router.get("/", **HIDDEN)
    async def door() -> Response:
        return RedirectResponse("/docs", HTTPStatus.SEE_OTHER, HEADERS)
