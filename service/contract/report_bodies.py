"""The queries of reports."""

from typing import Annotated, Any

from pydantic import AwareDatetime, BeforeValidator, Field

from predictors.jobs import LATEST_TIME
from service.contract.bodies import ClusterQuery
from service.contract.fields import Complaint, Text

MOST_ROWS = 10_000


def no_number(text: Any) -> Any:
    """A text that is no number: pydantic reads numbers as dates, in seconds or milliseconds.

    Raises:
        ValueError: it is a number.
    """
    try:
        float(text)
    except (TypeError, ValueError):
        return text
    raise ValueError("a number is no date")


QueryTime = Annotated[
    Annotated[float, Field(ge=0, le=LATEST_TIME, allow_inf_nan=False, strict=False)]
    | Annotated[AwareDatetime, Field(strict=False), BeforeValidator(no_number)],
    Complaint("Input should be Unix seconds in [0, 1e11] or an RFC 3339 time"),
]
"""A time where all values are texts."""


class UsersQuery(ClusterQuery):
    """Which runs a report is about."""

    account: Text | None = Field(None, description="Only runs of this account or project.")
    since: QueryTime | None = Field(
        None, description="Only runs that ended later; default: 30 days before `until`."
    )
    until: QueryTime | None = Field(None, description="Only runs that ended earlier; default: now.")
    share: Annotated[float, Field(ge=0.5, le=1, strict=False, allow_inf_nan=False)] = Field(
        0.95, description="Share of the runs that suggested requests hold."
    )
    limit: Annotated[int, Field(ge=1, le=MOST_ROWS, strict=False)] = Field(
        100, description="Most rows, those with most to gain."
    )


class RequestsQuery(UsersQuery):
    """Which runs a report by job name is about."""

    user: Text | None = Field(None, description="Only runs of this user.")
