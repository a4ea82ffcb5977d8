"""Declares the calls of the API: each once, for FastAPI, which describes it, and for the gate."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, TypeVar, cast

from fastapi import APIRouter
from fastapi.routing import APIRoute
from pydantic import TypeAdapter
from starlette.types import ASGIApp

from service.errors import ServiceError
from service.http.json_calls import JSONCall, argument_of, encoded
from service.http.openapi import BODY_ERRORS, refusals, security
from terminal.scopes import Scope

ANY_TOKEN: tuple[Scope, ...] = ()
"""Scopes of a call for which every valid token is good."""

HIDDEN: Mapping[str, Any] = {"include_in_schema": False}
"""Options of calls outside the API."""

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
Decoder = Callable[[Any], Callable[[bytes], Any]]


def by_model(model: Any) -> Callable[[bytes], Any]:
    """Return the validator of a model for the bytes of a body."""
    return TypeAdapter(model).validate_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call, for the gate.

    Attributes:
        method: HTTP method.
        route: its path, and its endpoint behind FastAPI.
        scopes: scopes of which a token must have one; empty: any valid token; None: no token.
        past_fastapi: serves the call in FastAPI's place; None: FastAPI does.
    """

    method: str
    route: APIRoute
    scopes: tuple[Scope, ...] | None
    past_fastapi: ASGIApp | None


class Calls:
    """The calls of a service, in the order of their declaration.

    Attributes:
        declared: all calls so far.
    """

    def __init__(self, router: APIRouter) -> None:
        self._router = router
        self.declared: list[Call] = []

    def add(
        self,
        call: str,
        *,
        scopes: tuple[Scope, ...] | None,
        past_fastapi: Callable[[Callable[..., Any]], ASGIApp] | None = None,
        **options: Any,
    ) -> Callable[[Endpoint], Endpoint]:
        """Return a decorator that declares a call, such as ``GET /docs``, with FastAPI's options.

        ``past_fastapi`` returns what serves the endpoint in FastAPI's place.
        """
        method, path = call.split()

        def declared(endpoint: Endpoint) -> Endpoint:
            extra = {"security": security(scopes)} | options.pop("openapi_extra", {})
            self._router.add_api_route(
                path, endpoint, methods=[method], openapi_extra=extra, **options
            )
            self.declared.append(
                Call(
                    method=method,
                    route=cast("APIRoute", self._router.routes[-1]),
                    scopes=scopes,
                    past_fastapi=past_fastapi(endpoint) if past_fastapi else None,
                )
            )
            return endpoint

        return declared

    def get(
        self,
        path: str,
        *,
        tag: str,
        scopes: tuple[Scope, ...],
        errors: Sequence[type[ServiceError]] = (),
    ) -> Callable[[Endpoint], Endpoint]:
        """Return a decorator that declares a call without a body."""
        declared = self.add(f"GET {path}", tags=[tag], scopes=scopes, responses=refusals(*errors))

        def get_call(endpoint: Endpoint) -> Endpoint:
            declared(encoded(endpoint))
            return endpoint

        return get_call

    def takes_json(  # noqa: PLR0913 - each is named where a call is declared
        self,
        call: str,
        *,
        tag: str,
        scopes: tuple[Scope, ...],
        limit: int,
        decoder: Decoder = by_model,
        status: int = 200,
        errors: Sequence[type[ServiceError]] = (),
    ) -> Callable[[Endpoint], Endpoint]:
        """Return a decorator that declares a call with a JSON body, which is served past FastAPI.

        Args:
            call: method and path.
            tag: group of calls.
            scopes: scopes of which a token must have one.
            limit: largest body in bytes.
            decoder: returns the validator of a body, from the type of the endpoint's last argument.
            status: HTTP status of the answer.
            errors: errors besides those of every call with a body.
        """

        def json_call(endpoint: Callable[..., Any]) -> ASGIApp:
            *others, body = signature(endpoint).parameters.values()
            return JSONCall(
                endpoint=endpoint,
                arguments=[argument_of(each) for each in others],
                validate=decoder(body.annotation),
                limit=limit,
                status=status,
            )

        return self.add(
            call,
            tags=[tag],
            scopes=scopes,
            responses=refusals(*BODY_ERRORS, *errors),
            status_code=status,
            past_fastapi=json_call,
        )
