"""The JSON of a forecast."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from service.contract.answers import IntervalAnswer


@dataclass(slots=True)
class JobForecastAnswer:
    """The forecast of one job; times are Unix seconds, durations are seconds."""

    job_id: Annotated[str | int, Field(description="As it was sent.")]
    state: Literal["running", "waiting"]
    predicted_walltime: Annotated[
        float, Field(description="Runtime in the forecast, from start to end.")
    ]
    start_time: float
    end_time: float
    wait: float
    turnaround: Annotated[float, Field(description="From submission to end.")]
    nodes: Annotated[list[str] | None, Field(description="Null if the machine has no named nodes.")]
    nodes_since: Annotated[
        float | None,
        Field(description="Since when forecasts have named these nodes; null if none are named."),
    ]
    start_interval: Annotated[
        IntervalAnswer | None, Field(description="Interval of start_time; null without samples.")
    ]
    end_interval: Annotated[
        IntervalAnswer | None, Field(description="Interval of end_time; null without samples.")
    ]


@dataclass(slots=True)
class ForecastAnswer:
    """The running jobs, then the waiting jobs, both in the order of the request."""

    cluster: str
    now: float
    policy: str
    method: str
    jobs: list[JobForecastAnswer]
