"""Answers to every exception behind FastAPI, in one shape."""

from http import HTTPStatus

import structlog
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from service.contract.bodies import invalid_field
from service.errors import (
    InternalError,
    InvalidFieldError,
    MethodNotAllowedError,
    NotFoundError,
    RequestError,
    ServiceError,
)
from service.http.json_calls import error_body

log = structlog.get_logger()


def from_framework(request: Request, error: HTTPException) -> RequestError:
    """Convert an error of Starlette, which is about paths and methods only."""
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return MethodNotAllowedError(", ".join(sorted(methods_of(request))))
    return NotFoundError()


def methods_of(request: Request) -> set[str]:
    """Return the methods that the path takes; Starlette names those of its first route only."""
    methods = {
        method
        for route in request.app.routes
        if isinstance(route, Route) and route.path_regex.match(request.url.path)
        for method in route.methods or ()
    }
    return methods | {"HEAD"} if "GET" in methods else methods


def from_parameters(error: RequestValidationError) -> InvalidFieldError:
    """Convert FastAPI's error of a query or path parameter."""
    first = error.errors()[0]
    return invalid_field(first["type"], first["msg"], first["loc"][1:])


def failure(path: str, bug: Exception) -> InternalError:
    """Log a bug and return its answer, one sentence; the server logs the traceback."""
    log.error("a request failed", path=path, kind=type(bug).__name__)
    return InternalError()


async def answer(request: Request, error: Exception) -> Response:
    """Return the answer to any exception."""
    if isinstance(error, HTTPException):
        error = from_framework(request, error)
    elif isinstance(error, RequestValidationError):
        error = from_parameters(error)
    elif not isinstance(error, ServiceError):
        error = failure(request.url.path, error)
    return Response(error_body(error), error.status, error.headers, media_type="application/json")


def install(app: FastAPI) -> None:
    """Answer every exception in one shape."""
    for kind in (ServiceError, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, answer)
