"""The service without one of its parts, to see what the part earns or costs.

Most of them rest on other projects' insides.

    .venv/bin/python benchmarks/without.py bypass serve -p 0 …

`benchmarks/serving.py --without` runs it beside the service as it is shipped.
"""

import sys
from collections.abc import Callable

from fastapi.routing import APIRoute
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.cli import main
from service.http import app, gate, server
from service.worker import live_state


def put(module: object, name: str, instead: object) -> None:
    """Put something in the place of a part, which must be there, or nothing would be measured."""
    getattr(module, name)
    setattr(module, name, instead)


def without_bounds() -> None:
    """Let uvicorn's own protocol serve, without limits of time and of heads."""
    put(server, "protocol", lambda: HttpToolsProtocol)


def without_bypass() -> None:
    """Let every request go through FastAPI's and Starlette's layers behind the gate."""
    put(gate, "BytesRoute", type("NoRoute", (), {}))


def without_bytes_routes() -> None:
    """Let FastAPI read, validate and encode as it does for an ordinary route."""
    put(app, "fitting", lambda _ours: APIRoute)


def without_intervals() -> None:
    """Let methods that know how sure they are be asked for their estimate alone."""
    put(live_state, "UNCERTAIN", frozenset())


PARTS: dict[str, Callable[[], None]] = {
    "bounds": without_bounds,
    "bypass": without_bypass,
    "bytes-routes": without_bytes_routes,
    "intervals": without_intervals,
}


if __name__ == "__main__":
    PARTS[sys.argv.pop(1)]()
    main()
