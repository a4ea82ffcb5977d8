"""The page of the API where the service has no other pages."""

import asyncio
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from service.http.bytes_route import to_json
from service.http.gate import needs
from service.http.routes.pages import HEADERS, add_assets, html, own_address
from service.web import api_page
from service.web.frame import Assets, Renderer

HIDDEN: dict[str, Any] = {"include_in_schema": False, "openapi_extra": needs()}
"""Any valid token, as for the document that the page shows: there is no form to log in with."""


def add(router: APIRouter, document: Callable[[], Mapping[str, Any]]) -> None:
    """Add the page, what it links to, and the way there from the service's own address."""
    assets = Assets()
    add_assets(router, assets)

    def page(url: str) -> bytes:
        view = api_page.contents(to_json(document()))
        return Renderer(assets).render("api", title="API", url=url, view=view).encode()

    @router.get("/docs", **HIDDEN)
    async def api(request: Request) -> Response:
        return html(await asyncio.to_thread(page, own_address(request)))

    @router.get("/", **HIDDEN)
    async def door() -> Response:
        return RedirectResponse("/docs", HTTPStatus.SEE_OTHER, HEADERS)
