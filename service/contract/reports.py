"""The JSON of reports: how requests compared with runtimes.

Hours are processor hours unless their name says otherwise.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BeforeValidator, Field

from predictors.jobs import LATEST_TIME
from service.contract.bodies import ClusterQuery
from service.contract.fields import ErrorSentence, Text

MOST_ROWS = 10_000


def no_number(text: Any) -> Any:
    """Return a text that is no number: pydantic reads numbers as dates, in seconds or milliseconds.

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
    ErrorSentence("Input should be Unix seconds in [0, 1e11] or an RFC 3339 time"),
]
"""A time in a query, where all values are texts."""


class UsersQuery(ClusterQuery):
    """The runs of a report, and the number of its rows."""

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


RowsBy = Literal["application", "script"]


class RequestsQuery(UsersQuery):
    """The runs of a report by job name, and the number of its rows."""

    user: Text | None = Field(None, description="Only runs of this user.")
    by: RowsBy = Field(
        "application", description="Whether runs of one job name are told apart by their scripts."
    )


@dataclass(slots=True)
class RequestSumsAnswer:
    """Sums over runs."""

    runs: Annotated[int, Field(description="Number of runs.")]
    requested_hours: Annotated[float, Field(description="Processor hours asked for.")]
    used_hours: Annotated[float, Field(description="Processor hours used.")]
    wait_hours: Annotated[float, Field(description="Hours waited, job by job.")]
    excess_wait_hours: Annotated[
        float | None,
        Field(
            description="Hours waited more than jobs of the same queue and size that asked for "
            "about as much as the runs used; null where too few of those are known."
        ),
    ]
    cut_off: Annotated[int, Field(description="Runs that ended at their limit.")]
    cut_hours: Annotated[float, Field(description="Processor hours used by these.")]


@dataclass(slots=True)
class QueueCutsAnswer:
    """The runs of one queue that ended at their limit."""

    queue: str | None
    cut_off: Annotated[int, Field(description="Runs that ended at their limit.")]
    cut_hours: Annotated[float, Field(description="Processor hours used by these.")]


QueueCuts = Annotated[
    list[QueueCutsAnswer],
    Field(description="Queues of such runs among those of `own`, or of the users; most first."),
]

ExtensionEffect = Literal["saved", "not-needed", "cut", "stopped"]


@dataclass(slots=True)
class ExtensionAnswer:
    """A run whose limit was extended, by walltimed or by hand."""

    job_id: str | None
    user: str | None
    queue: str | None
    requested_walltime: Annotated[float, Field(description="Limit at its submission, in seconds.")]
    extended_to: Annotated[float, Field(description="Limit at its end, in seconds.")]
    runtime: Annotated[float, Field(description="Seconds that it ran.")]
    end_time: Annotated[float, Field(description="When it ended.")]
    saved_hours: Annotated[
        float, Field(description="Processor hours used, if the extension saved them.")
    ]
    effect: Annotated[
        ExtensionEffect,
        Field(
            description="saved: ended by itself, beyond its first limit; not-needed: before that; "
            "cut: at its last limit; stopped: cancelled or lost beyond its first limit."
        ),
    ]


Extensions = Annotated[
    list[ExtensionAnswer],
    Field(description="Extended limits among these runs, the newest first, at most 1,000."),
]

AllUsers = Annotated[
    RequestSumsAnswer | None,
    Field(
        description="Sums over the runs of all users. Null for a token of scope self: the sums of "
        "a short period, or of a small account, would be those of one other user."
    ),
]


@dataclass(slots=True)
class ApplicationReportAnswer(RequestSumsAnswer):
    """The runs of one job name, and perhaps of one script, of one user."""

    user: str | None
    application: str | None
    script: Annotated[
        str | None, Field(description="Hash of the script; null unless `by` is `script`.")
    ]
    newest_job: Annotated[str | None, Field(description="Job id of the run that ended last.")]
    usual_request: Annotated[float, Field(description="Median request, in seconds.")]
    usual_runtime: Annotated[float, Field(description="Median runtime, in seconds.")]
    suggested_request: Annotated[
        float | None,
        Field(description="Seconds that hold `share` of these runs; null if not shorter."),
    ]
    gain_hours: Annotated[
        float, Field(description="Processor hours that the suggested request would not ask for.")
    ]


@dataclass(slots=True)
class RequestsReportAnswer:
    """Requests compared with runtimes, by job name, those with most to gain first."""

    cluster: str
    since: float
    until: float
    share: Annotated[float, Field(description="Share of runs that suggestions hold.")]
    runs_read: Annotated[
        int, Field(description="Runs of the period that were read; the newest, if not all.")
    ]
    is_whole: Annotated[bool, Field(description="Whether these are all runs of the period.")]
    own: Annotated[
        RequestSumsAnswer,
        Field(description="Sums over the runs that the caller may see and has selected."),
    ]
    everybody: AllUsers
    queues: QueueCuts
    extensions: Extensions
    applications: Annotated[
        list[ApplicationReportAnswer],
        Field(description="The job names, those with most to gain first."),
    ]


@dataclass(slots=True)
class UserReportAnswer(RequestSumsAnswer):
    """The runs of one user."""

    user: Annotated[str | None, Field(description="The user; null for runs without one.")]
    gain_hours: Annotated[
        float, Field(description="Processor hours that suggested requests would not ask for.")
    ]


@dataclass(slots=True)
class UsersReportAnswer:
    """Users by what they have to gain, most first."""

    cluster: str
    since: float
    until: float
    runs_read: Annotated[
        int, Field(description="Runs of the period that were read; the newest, if not all.")
    ]
    is_whole: Annotated[bool, Field(description="Whether these are all runs of the period.")]
    everybody: AllUsers
    queues: QueueCuts
    extensions: Extensions
    users: Annotated[
        list[UserReportAnswer], Field(description="The users, those with most to gain first.")
    ]
