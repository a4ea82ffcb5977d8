"""The page of the API: the OpenAPI document in a viewer that this package brings along."""

import asyncio
from collections.abc import Callable
from functools import cache
from http import HTTPStatus

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from service.http.gate import needs, open_to_all
from service.http.routes.pages import HEADERS, POLICY, add_assets, login_address
from service.http.visitors import Visitors
from service.web.frame import Assets, Renderer

VIEWER_HEADERS = HEADERS | {
    # RapiDoc styles its parts inline. The page shows the document, and no name of a user's.
    "Content-Security-Policy": POLICY.replace(
        "style-src 'self'", "style-src 'self' 'unsafe-inline'"
    )
}


def add(
    router: APIRouter, document: Callable[[], bytes], assets: Assets, visitors: Visitors | None
) -> None:
    """Add the page.

    Args:
        router: of the application.
        document: the OpenAPI document as JSON.
        assets: files that the page links to.
        visitors: browsers that have logged in; None where the service has no other pages: the page
            then needs any valid token, and the service's own address leads there.
    """

    @cache
    def page() -> str:
        text = document().decode().replace("<", "\\u003c")
        return Renderer(assets).render("api", title="API", document=text)

    extra = needs() if visitors is None else open_to_all()

    @router.get("/docs", include_in_schema=False, openapi_extra=extra)
    async def api(request: Request) -> Response:
        if visitors is not None and await visitors.visitor(request) is None:
            return RedirectResponse(login_address(request), HTTPStatus.SEE_OTHER, HEADERS)
        return HTMLResponse(await asyncio.to_thread(page), headers=VIEWER_HEADERS)

    if visitors is None:
        add_assets(router, assets)

        @router.get("/", include_in_schema=False, openapi_extra=extra)
        async def door() -> Response:
            return RedirectResponse("/docs", HTTPStatus.SEE_OTHER, HEADERS)
