"""The errors that a caller can receive, and the one table that maps them to statuses."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from predictors.tuning.plan import TooShortHistoryError
from service.store import (
    RefusedRecordError,
    SchemaOutdatedError,
    StoreDamagedError,
    StoreFullError,
    StoreUnavailableError,
)
from terminal.exit_codes import ExitCode

RETRY_AFTER_SECONDS = 1


class RequestError(Exception):
    """The request cannot be served as it is.

    Attributes:
        headers: of the answer.
    """

    headers: Mapping[str, str] = MappingProxyType({})


class MalformedJSONError(RequestError):
    """The body is not JSON."""


class MalformedRequestError(RequestError):
    """The request is not HTTP as RFC 9112 has it."""


class HeadTooLargeError(RequestError):
    """The request's head has more bytes or lines than the service takes."""


class RequestTimeoutError(RequestError):
    """The request did not come in time."""


class MungeTooLongError(Exception):
    """munged did not decode a credential in time."""


class TooManyConnectionsError(Exception):
    """The process already has the largest number of connections."""


class MissingTokenError(RequestError):
    """The call needs a valid token and came with none (RFC 6750)."""

    headers = MappingProxyType({"WWW-Authenticate": "Bearer"})


class ForbiddenError(RequestError):
    """The token is valid, but not for this call."""


class NotFoundError(RequestError):
    """There is nothing at this path."""


class UnknownUserError(RequestError):
    """No completed job of this user was ever reported."""


class UnknownSnapshotError(RequestError):
    """No queue of this cluster was handed over, or it has no such job that the caller may see."""


class UnknownJobError(RequestError):
    """No job of this id has ended, or the caller may not see it."""


class UnknownTuningError(RequestError):
    """There never was such a round of tuning."""


class MethodNotAllowedError(RequestError):
    """The path exists, but not for this HTTP method."""

    def __init__(self, detail: str, allow: str) -> None:
        super().__init__(detail)
        self.headers = {"Allow": allow}


class BodyTooLargeError(RequestError):
    """The body is larger than the service takes."""


class SnapshotTooLargeError(RequestError):
    """The queue has more jobs than a forecast may take."""


class ForecastsBusyError(Exception):
    """Too many forecasts are asked for at once."""


class ForecastTooLongError(Exception):
    """A forecast took longer than the limit."""


class PagesBusyError(Exception):
    """Too many pages are asked for at once."""


class PageTooLongError(Exception):
    """A page took longer than the limit, or its process died again and again."""


class UnsupportedMediaTypeError(RequestError):
    """The body is of a type that the call does not take."""


class EncodedBodyError(UnsupportedMediaTypeError):
    """The body is compressed, or encoded otherwise (RFC 9110, section 15.5.16)."""

    headers = MappingProxyType({"Accept-Encoding": "identity"})


class InvalidFieldError(RequestError):
    """A field is missing, unknown, of the wrong type or out of range.

    Attributes:
        field: path of the field in the body or query, such as ``completions.3.user``.
    """

    exit_code = ExitCode.USAGE

    def __init__(self, detail: str, field: str) -> None:
        super().__init__(detail)
        self.field = field

    def within(self, prefix: str) -> "InvalidFieldError":
        """Return the error with the field's path from an enclosing object."""
        return InvalidFieldError(str(self), f"{prefix}.{self.field}")


class TooManyClustersError(InvalidFieldError):
    """The completion is of a cluster that would be one more than the history may have."""

    def __init__(self, cluster: str, most: int, field: str = "cluster") -> None:
        super().__init__(
            f"cluster {cluster!r} would be one more than the {most} that this history may have: "
            "raise the setting max_clusters, or delete a cluster by "
            "`walltimed forget --cluster NAME`.",
            field,
        )


class InternalError(Exception):
    """The service failed; its log says why."""


STATUSES: Mapping[type[Exception], HTTPStatus] = {
    MalformedJSONError: HTTPStatus.BAD_REQUEST,
    MalformedRequestError: HTTPStatus.BAD_REQUEST,
    HeadTooLargeError: HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    RequestTimeoutError: HTTPStatus.REQUEST_TIMEOUT,
    TooManyConnectionsError: HTTPStatus.SERVICE_UNAVAILABLE,
    MissingTokenError: HTTPStatus.UNAUTHORIZED,
    MungeTooLongError: HTTPStatus.SERVICE_UNAVAILABLE,
    ForbiddenError: HTTPStatus.FORBIDDEN,
    NotFoundError: HTTPStatus.NOT_FOUND,
    UnknownUserError: HTTPStatus.NOT_FOUND,
    UnknownSnapshotError: HTTPStatus.NOT_FOUND,
    UnknownJobError: HTTPStatus.NOT_FOUND,
    UnknownTuningError: HTTPStatus.NOT_FOUND,
    TooShortHistoryError: HTTPStatus.CONFLICT,
    MethodNotAllowedError: HTTPStatus.METHOD_NOT_ALLOWED,
    BodyTooLargeError: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    SnapshotTooLargeError: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    ForecastsBusyError: HTTPStatus.SERVICE_UNAVAILABLE,
    ForecastTooLongError: HTTPStatus.SERVICE_UNAVAILABLE,
    PagesBusyError: HTTPStatus.SERVICE_UNAVAILABLE,
    PageTooLongError: HTTPStatus.SERVICE_UNAVAILABLE,
    UnsupportedMediaTypeError: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    EncodedBodyError: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    InvalidFieldError: HTTPStatus.UNPROCESSABLE_ENTITY,
    TooManyClustersError: HTTPStatus.UNPROCESSABLE_ENTITY,
    RefusedRecordError: HTTPStatus.BAD_REQUEST,
    StoreUnavailableError: HTTPStatus.SERVICE_UNAVAILABLE,
    StoreFullError: HTTPStatus.SERVICE_UNAVAILABLE,
    StoreDamagedError: HTTPStatus.SERVICE_UNAVAILABLE,
    SchemaOutdatedError: HTTPStatus.SERVICE_UNAVAILABLE,
    InternalError: HTTPStatus.INTERNAL_SERVER_ERROR,
}
"""All errors that a caller can receive. Any other exception is a bug, answered as InternalError."""


def status_of(error: Exception) -> HTTPStatus:
    """Return the status of an error's class, or of its nearest base class in the table."""
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


DESCRIPTIONS: Mapping[HTTPStatus, str] = {
    HTTPStatus.BAD_REQUEST: "The body is not JSON, or the request is not HTTP.",
    HTTPStatus.UNAUTHORIZED: "The call needs a valid token.",
    HTTPStatus.FORBIDDEN: "The token does not have the scope, or, without tokens, the host is "
    "named otherwise than it may be.",
    HTTPStatus.NOT_FOUND: "Unknown.",
    HTTPStatus.METHOD_NOT_ALLOWED: "The path does not take this method.",
    HTTPStatus.CONFLICT: "The history is too short.",
    HTTPStatus.REQUEST_TIMEOUT: "The request did not come in time.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is too large.",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: "The head is too large.",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "The body is of another type, or encoded.",
    HTTPStatus.UNPROCESSABLE_ENTITY: "A field is missing, unknown, of the wrong type or out of "
    "range.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "The service failed.",
    HTTPStatus.SERVICE_UNAVAILABLE: "The history store cannot be reached, or has no room.",
}
"""The meaning of each status in the table, for the OpenAPI document."""


@dataclass(slots=True)
class ErrorBody:
    """The error."""

    error: Annotated[
        str, Field(description="Name of the error, the same for all errors of its kind.")
    ]
    detail: str


@dataclass(slots=True)
class FieldErrorBody(ErrorBody):
    """The error and its field."""

    field: Annotated[str, Field(description="A path such as completions.3.user.")]


def body_of(error: Exception) -> ErrorBody:
    """Return the body of the answer, with the field if the error has one."""
    name, detail = type(error).__name__, str(error)
    if isinstance(error, InvalidFieldError):
        return FieldErrorBody(name, detail, error.field)
    return ErrorBody(name, detail)


def documented_body(status: HTTPStatus) -> type[ErrorBody]:
    """Return the class of the answers of a status, for the OpenAPI document."""
    return FieldErrorBody if STATUSES[InvalidFieldError] is status else ErrorBody


def headers_of(error: Exception) -> Mapping[str, str]:
    """Return the headers that belong to the error's status."""
    if isinstance(error, RequestError):
        return error.headers
    if status_of(error) is HTTPStatus.SERVICE_UNAVAILABLE:
        return {"Retry-After": str(RETRY_AFTER_SECONDS)}
    return {}
