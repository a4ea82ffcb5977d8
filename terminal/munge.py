"""MUNGE credentials, by which users of a cluster's nodes prove their user id to the service.

munged encodes a credential for the process that asks, and decodes it on every host with the same
key (Chris Dunlap, https://dun.github.io/munge/). It refuses replayed, expired and early ones.
"""

import ctypes
from functools import cache
from pathlib import Path

DEFAULT_SOCKET = Path("/run/munge/munge.socket.2")

PAYLOAD = b"walltimed"
"""Content of a credential; without it, the credential was made for another service."""

LIBRARY = "libmunge.so.2"

SOCKET_OPTION = 8
"""MUNGE_OPT_SOCKET of munge.h."""

UNAVAILABLE = frozenset({1, 5, 6, 7})
"""munge_err_t where munged, not the credential, is at fault: snafu, memory, socket, timeout."""

REASONS = {
    15: "it is expired",
    16: "it is from the future: set the clocks of the hosts",
    17: "it was used before",
    18: "it is for another user to decode",
}
"""munge_err_t of credentials that munged read but refuses."""


class MungeUnavailableError(OSError):
    """Raised when there is no munged, or it does not answer."""


class CredentialRefusedError(ValueError):
    """Raised when munged refuses a credential, or it was made for another service."""


def encode(socket: Path) -> str:
    """Return a credential of this process's user, good for one request.

    Raises:
        MungeUnavailableError: munged does not answer, or libmunge is missing.
    """
    library = load_library()
    text = ctypes.c_void_p()
    context = context_of(library, socket)
    try:
        code = library.munge_encode(ctypes.byref(text), context, PAYLOAD, len(PAYLOAD))
        if code:
            raise MungeUnavailableError(f"munged at {socket}: {message(library, code)}.")
        return (ctypes.string_at(text) if text.value else b"").decode("ascii")
    finally:
        library.munge_ctx_destroy(context)
        free(text)


def decode(credential: str, socket: Path) -> int:
    """Return the id of the user whose process made a credential; munged refuses it from now on.

    Args:
        credential: of the form ``MUNGE:…:``.

    Raises:
        CredentialRefusedError: it is not valid, no longer valid, or for another service.
        MungeUnavailableError: munged does not answer, or libmunge is missing.
    """
    library = load_library()
    payload, length = ctypes.c_void_p(), ctypes.c_int()
    user, group = ctypes.c_uint(), ctypes.c_uint()
    context = context_of(library, socket)
    try:
        code = library.munge_decode(
            credential.encode("ascii"),
            context,
            *map(ctypes.byref, (payload, length, user, group)),
        )
        content = ctypes.string_at(payload, length.value) if payload.value else b""
    finally:
        library.munge_ctx_destroy(context)
        free(payload)
    if code in UNAVAILABLE:
        raise MungeUnavailableError(f"munged at {socket}: {message(library, code)}.")
    if code:
        raise CredentialRefusedError(REASONS.get(code, "it is not valid"))
    if content != PAYLOAD:
        raise CredentialRefusedError("it was made for another service")
    return user.value


@cache
def load_library() -> ctypes.CDLL:
    """Return libmunge, which the package of munged brings.

    Raises:
        MungeUnavailableError: it is not installed.
    """
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise MungeUnavailableError(f"{LIBRARY} is not installed.") from error
    library.munge_ctx_create.restype = ctypes.c_void_p
    library.munge_ctx_destroy.argtypes = [ctypes.c_void_p]
    library.munge_ctx_set.argtypes = [ctypes.c_void_p, ctypes.c_int]
    pointer = ctypes.c_void_p
    library.munge_encode.argtypes = [pointer, pointer, ctypes.c_char_p, ctypes.c_int]
    library.munge_decode.argtypes = [ctypes.c_char_p, *[pointer] * 5]
    library.munge_strerror.restype = ctypes.c_char_p
    return library


def context_of(library: ctypes.CDLL, socket: Path) -> int:
    """Return a new context of libmunge that uses this munged."""
    context: int = library.munge_ctx_create()
    library.munge_ctx_set(context, SOCKET_OPTION, ctypes.c_char_p(bytes(socket)))
    return context


def message(library: ctypes.CDLL, code: int) -> str:
    """Return libmunge's words for an error."""
    text: bytes = library.munge_strerror(code)
    return text.decode("ascii", "replace")


def free(memory: ctypes.c_void_p) -> None:
    """Free what libmunge has allocated."""
    if memory.value:
        _c_library().free(memory)


@cache
def _c_library() -> ctypes.CDLL:
    library = ctypes.CDLL(None)
    library.free.argtypes = [ctypes.c_void_p]
    return library
