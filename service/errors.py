"""The errors that a caller can receive, each with its status, its headers and its sentence."""

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import ClassVar

from terminal.exit_codes import ExitCode

RETRY_AFTER_SECONDS = 1


class ServiceError(Exception):
    """An error that becomes an answer; any other exception is a bug.

    Args:
        detail: default: the class's docstring.

    Attributes:
        status: HTTP status of the answer.
        headers: headers of the answer.
    """

    status: ClassVar[HTTPStatus]
    headers: Mapping[str, str] = MappingProxyType({})

    def __init__(self, detail: str = "") -> None:
        super().__init__(detail or self.__doc__)


class RequestError(ServiceError):
    """The request cannot be served as it is."""

    status = HTTPStatus.BAD_REQUEST


class UnavailableError(ServiceError):
    """The service cannot answer now; the same call may succeed later."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    headers = MappingProxyType({"Retry-After": str(RETRY_AFTER_SECONDS)})


class InternalError(ServiceError):
    """The service failed; its log says why."""

    status = HTTPStatus.INTERNAL_SERVER_ERROR


class MalformedJSONError(RequestError):
    """The body is not JSON."""


class MalformedRequestError(RequestError):
    """The request is not HTTP as RFC 9112 has it."""


class MissingTokenError(RequestError):
    """The call needs a valid token and came with none (RFC 6750)."""

    status = HTTPStatus.UNAUTHORIZED
    headers = MappingProxyType({"WWW-Authenticate": "Bearer"})


class ForbiddenError(RequestError):
    """The token is valid, but not for this call; or, without tokens, the host has another name."""

    status = HTTPStatus.FORBIDDEN


class NotFoundError(RequestError):
    """There is nothing at this path."""

    status = HTTPStatus.NOT_FOUND


class UnknownUserError(NotFoundError):
    """No completion of this user was reported for this cluster."""


class UnknownSnapshotError(NotFoundError):
    """No queue of this cluster is handed over; `walltimed slurm-updater --mode off` does that."""


class UnknownClusterError(NotFoundError):
    """No run, prediction or queue of this cluster is known."""


class UnknownJobError(NotFoundError):
    """No job of this id is in the queue or has ended, or the caller may not see it."""


class UnknownTuningError(NotFoundError):
    """There is no such round of tuning."""


class MethodNotAllowedError(RequestError):
    """The path exists, but not for this HTTP method."""

    status = HTTPStatus.METHOD_NOT_ALLOWED

    def __init__(self, allow: str) -> None:
        super().__init__(f"This path takes {allow}.")
        self.headers = {"Allow": allow}


class RequestTimeoutError(RequestError):
    """The request did not come in time."""

    status = HTTPStatus.REQUEST_TIMEOUT


class BodyTooLargeError(RequestError):
    """The body is larger than the service takes."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class SnapshotTooLargeError(RequestError):
    """The queue has more jobs than the service takes."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class HeadTooLargeError(RequestError):
    """The request's head has more bytes or lines than the service takes."""

    status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE


class UnsupportedMediaTypeError(RequestError):
    """The body is of a type that the call does not take."""

    status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE


class EncodedBodyError(UnsupportedMediaTypeError):
    """The body must be sent as it is, without any Content-Encoding."""

    headers = MappingProxyType({"Accept-Encoding": "identity"})  # RFC 9110, section 15.5.16


class InvalidFieldError(RequestError):
    """A field is missing, unknown, of the wrong type or out of range.

    Attributes:
        field: path of the field in the body or query, such as ``completions.3.user``.
    """

    status = HTTPStatus.UNPROCESSABLE_ENTITY
    exit_code = ExitCode.USAGE

    def __init__(self, detail: str, field: str) -> None:
        super().__init__(detail)
        self.field = field

    def within(self, prefix: str) -> "InvalidFieldError":
        """Return the error with the field's path from an enclosing object."""
        return InvalidFieldError(str(self), f"{prefix}.{self.field}")


class TooManyClustersError(InvalidFieldError):
    """The cluster would be one more than the history may have."""

    def __init__(self, cluster: str, most: int, field: str = "cluster") -> None:
        super().__init__(
            f"cluster {cluster!r} would be one more than the {most} that this history may have: "
            "raise the setting max_clusters, or delete a cluster by "
            "`walltimed forget --cluster NAME`.",
            field,
        )


class StartingError(UnavailableError):
    """The service is still reading its history; it answers from all of it, or not at all."""


class MungeTooLongError(UnavailableError):
    """munged does not answer the service."""


class TooManyConnectionsError(UnavailableError):
    """The service has as many connections as it takes."""


class ForecastsBusyError(UnavailableError):
    """Too many forecasts are asked for at once."""


class ForecastTooLongError(UnavailableError):
    """A forecast took longer than the limit."""


class ForecastsStartingError(ForecastTooLongError):
    """The process that makes forecasts is starting: ask again in a second."""


class PagesBusyError(UnavailableError):
    """Too many pages are asked for at once."""


class PageTooLongError(UnavailableError):
    """A page took longer than the limit, or its process died again and again."""
