"""Who makes a request, for calls whose answer depends on that."""

from typing import Annotated

from fastapi import Depends, Request

from service.auth import Caller

CALLER = "walltimed.caller"
"""Where the gate notes it down in the connection's scope."""


async def caller_of(request: Request) -> Caller:
    """Who was let in; asynchronous, as FastAPI runs anything else in a thread."""
    caller: Caller = request.scope[CALLER]
    return caller


Asking = Annotated[Caller, Depends(caller_of)]
"""The type of an endpoint's argument that is told who asks."""
