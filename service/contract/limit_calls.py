"""The JSON of longer limits for running jobs, asked for by what can set them."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import FailFast, Field

from predictors.limits import LIKELY
from service.contract.bodies import RequestBody
from service.contract.fields import Duration, JobId, PositiveDuration

MOST_LIMITED_JOBS = 10_000

LongerLimitReason = Literal[
    "granted", "unknown-job", "not-at-risk", "no-room", "delays", "no-time", "old-snapshot"
]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class LimitedJobBody(RequestBody):
    """A running job whose limit may be extended."""

    job_id: JobId
    most: PositiveDuration = Field(description="Largest limit that it may get, in seconds.")


class LongerLimitsRequest(RequestBody):
    """Running jobs whose limits may be extended."""

    jobs: Annotated[list[LimitedJobBody], FailFast(), Field(max_length=MOST_LIMITED_JOBS)] = Field(
        description="The jobs."
    )
    delay: Duration = Field(
        0.0, description="Most seconds by which a planned start of another job may move later."
    )
    used: Share = Field(0.8, description="Least share of their limits that they have run for.")
    probability: Share = Field(
        LIKELY,
        description="Least probability of ending at the limit; by default that from which on "
        "longer limits are suggested.",
    )
    late: Duration = Field(
        120.0,
        description="Seconds before its limit from which on a job gets a part of what it needs, "
        "where all of it would delay others.",
    )
    step: PositiveDuration = Field(60.0, description="Limits are extended by multiples of it.")
    machine: Duration = Field(
        240.0,
        description="Most time that is added, in seconds of the whole pool: a job on a tenth of "
        "its processors gets ten times as much.",
    )


@dataclass(slots=True)
class LongerLimitAnswer:
    """The longer limit of one running job, or why it has none."""

    job_id: str
    requested_walltime: Annotated[
        float | None, Field(description="Its limit now; null if it does not run.")
    ]
    walltime: Annotated[
        float | None,
        Field(
            description="Its limit to set: that within which nine in ten such jobs end, `most`, or "
            "a part of it that delays nobody; null without one."
        ),
    ]
    delay: Annotated[
        float | None,
        Field(
            description="Most seconds by which it would move a planned start; null if not played."
        ),
    ]
    probability: Annotated[
        float | None, Field(description="Probability that it ends at its limit now.")
    ]
    reason: Annotated[
        LongerLimitReason,
        Field(
            description="granted, or why not: unknown-job does not run; not-at-risk; no-room "
            "between its limit and `most`; delays others; no-time to play it; old-snapshot."
        ),
    ]


@dataclass(slots=True)
class LongerLimitsAnswer:
    """Longer limits of running jobs, in the order in which they were asked for."""

    cluster: str
    now: float
    taken_at: Annotated[float, Field(description="When the resource manager showed the queue.")]
    limits: Annotated[list[LongerLimitAnswer], Field(description="One for each job.")]
