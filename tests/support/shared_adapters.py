"""Lets applications of one test process share what pydantic makes of their types.

FastAPI builds a validator for each field of each route, which is nine tenths of building the
application. A service does that once, the tests hundreds of times, and always from the same types.
"""

from typing import Any, get_args

from fastapi._compat import v2
from pydantic import TypeAdapter

ADAPTERS: dict[tuple[Any, str], TypeAdapter[Any]] = {}


def shared(annotated: Any, *, config: Any = None) -> TypeAdapter[Any]:
    """The adapter of an annotated type, made once for all fields that read the same."""
    plain, *rest = get_args(annotated)
    key = plain, repr((rest, config))  # functions read as their addresses, which adapters keep
    if key not in ADAPTERS:
        ADAPTERS[key] = TypeAdapter(annotated, config=config)
    return ADAPTERS[key]


def install() -> None:
    """Let FastAPI ask here."""
    v2.TypeAdapter = shared
