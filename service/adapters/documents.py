"""JSON as resource managers write it: names in it may hold any bytes."""

from typing import TypeVar

import msgspec

from service.adapters.runs import Reason, SkippedError

Document = TypeVar("Document")


def decoded(body: bytes, decoder: "msgspec.json.Decoder[Document]") -> Document:
    """The document in ``body``; bytes that are no UTF-8 become replacement characters.

    Raises:
        SkippedError: it is no such document.
    """
    try:
        return decoder.decode(body)
    except UnicodeDecodeError:  # a job may be named with any bytes, and its run still counts
        return decoded(body.decode("utf-8", "replace").encode(), decoder)
    except (msgspec.MsgspecError, RecursionError) as broken:
        raise SkippedError(Reason.MALFORMED) from broken
