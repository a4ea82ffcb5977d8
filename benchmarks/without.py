"""The service without one of the parts that rest on other projects' insides, to see what it earns.

    .venv/bin/python benchmarks/without.py bypass serve -p 0 …

`benchmarks/serving.py --without` runs it beside the service as it is shipped.
"""

import sys
from collections.abc import Callable

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.cli import main
from service.http import gate, server
from service.worker import worker


def without_bounds() -> None:
    """Let uvicorn's own protocol serve, without limits of time and of heads."""
    server.protocol = lambda: HttpToolsProtocol


def without_short_slices() -> None:
    """Let Linux share the processor as it does by default."""
    worker.take_short_slices = lambda: False


def without_bypass() -> None:
    """Let every request go through FastAPI's and Starlette's layers behind the gate."""
    gate.FastRoute = type("NoRoute", (), {})


PARTS: dict[str, Callable[[], None]] = {
    "bounds": without_bounds,
    "short-slices": without_short_slices,
    "bypass": without_bypass,
}


if __name__ == "__main__":
    PARTS[sys.argv.pop(1)]()
    main()
