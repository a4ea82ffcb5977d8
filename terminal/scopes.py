"""The scopes of tokens, which commands offer, the store checks and calls need."""

from enum import StrEnum


class Scope(StrEnum):
    """The permissions of a token; ``admin`` allows everything.

    ``read`` is good for everything that is no secret and changes nothing; ``self`` for what belongs
    to one user, and for the numbers of jobs in the live queue.
    """

    PREDICT = "predict"
    INGEST = "ingest"
    READ = "read"
    SELF = "self"
    ADMIN = "admin"

    __hash__ = str.__hash__
    """As that of an equal text; that of enumerations is a function of Python."""
