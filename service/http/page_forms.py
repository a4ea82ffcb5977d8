"""The form that logs in: its fields, and where it leads."""

from urllib.parse import parse_qs

from starlette.requests import Request

from service.errors import BodyTooLargeError

LARGEST_FORM = 4096
"""Bytes."""

MOST_FIELDS = 8


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a small form, the first of each name.

    Raises:
        BodyTooLargeError: it is not small.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_FORM:
            raise BodyTooLargeError(f"The form must not be longer than {LARGEST_FORM} bytes.")
    try:
        fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=MOST_FIELDS)
    except ValueError:
        return {}
    return {name: values[0] for name, values in fields.items()}


def own_path(to: str) -> str:
    """Where to go after logging in: one of our pages, wherever the link wants to lead."""
    stays_here = to.startswith("/") and not to.startswith("//")
    return to if stays_here and "\\" not in to and to.isprintable() else "/"
