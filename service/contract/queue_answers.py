"""The JSON of queues: jobs, forecasts, what-ifs, and the errors of forecast waits.

Times are Unix seconds, durations are seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from service.contract.answers import BasisField, IntervalField, LimitAnswer, PastRunField
from service.live_queue.snapshot import NoInterval


@dataclass(slots=True)
class QueueTakenAnswer:
    """A queue that was taken; its forecast is made afterwards."""

    cluster: str
    taken_at: float
    jobs: Annotated[int, Field(description="Number of jobs in it.")]


@dataclass(slots=True)
class JobTotalsAnswer:
    """All jobs in one state."""

    jobs: Annotated[int, Field(description="Number of jobs.")]
    processors: Annotated[int, Field(description="Number of processors that these jobs ask for.")]


@dataclass(slots=True)
class TotalsAnswer:
    """All jobs of the queue by state, also those that the caller may not see."""

    running: Annotated[JobTotalsAnswer, Field(description="Jobs that run.")]
    waiting: Annotated[JobTotalsAnswer, Field(description="Jobs that wait.")]
    held: Annotated[
        JobTotalsAnswer, Field(description="Jobs that wait for something else than their turn.")
    ]


@dataclass(slots=True)
class QueueHeadAnswer:
    """A queue without its jobs."""

    cluster: str
    taken_at: Annotated[float, Field(description="When the resource manager showed it.")]
    forecast_at: float | None
    forecast_age: float | None
    no_interval: NoInterval | None
    is_old: Annotated[bool, Field(description="Whether a newer queue is overdue.")]
    forecast_error: Annotated[
        str | None, Field(description="Why the last forecast could not be made, in a sentence.")
    ]
    planned_jobs: Annotated[
        int,
        Field(
            description="Number of waiting jobs that the last forecast reached: fewer than wait, "
            "where the scheduler plans fewer or time was short."
        ),
    ]
    samples: Annotated[
        int, Field(description="Number of futures on which the last forecast's intervals rest.")
    ]
    totals: Annotated[
        TotalsAnswer, Field(description="Jobs and processors of all users, by state.")
    ]
    usual_error: Annotated[
        float | None,
        Field(
            description="Median error of the first forecasts of the last 500 started jobs, in "
            "seconds; null of fewer than 10."
        ),
    ]
    observed_coverage: Annotated[
        float | None,
        Field(
            description="Share of the last shown intervals of starts that held the start; null of "
            "fewer than 100."
        ),
    ]


@dataclass(slots=True)
class ClustersAnswer:
    """The clusters whose snapshots were handed over, and the names of all."""

    clusters: Annotated[list[QueueHeadAnswer], Field(description="The last snapshot of each.")]
    known: Annotated[
        list[str], Field(description="Clusters with runs, predictions or a snapshot, by name.")
    ]
    usual: Annotated[
        str | None,
        Field(
            description="Cluster that commands and pages take where none is named: the only known "
            "one, else the only one with a snapshot; null without any or with several."
        ),
    ]


@dataclass(slots=True)
class PoolAnswer:
    """Processors that serve some queues."""

    processors: Annotated[int, Field(description="Number of processors that can run jobs.")]
    used: Annotated[int, Field(description="Processors of the jobs that run.")]
    queues: Annotated[list[str], Field(description="Queues that these processors serve.")]


@dataclass(slots=True)
class LiveJobAnswer:
    """A job of the queue, and when it will start and end."""

    job_id: str
    state: Literal["running", "waiting", "held"]
    reason: Annotated[
        str | None, Field(description="Why the job waits, in the resource manager's word.")
    ]
    user: str | None
    project: Annotated[str | None, Field(description="Slurm account, PBS project.")]
    queue: str | None
    application: str | None
    requested_walltime: float
    requested_processors: int
    submit_time: float
    position: Annotated[
        int | None, Field(description="Place among the jobs that wait for the same processors.")
    ]
    predicted_walltime: Annotated[
        float | None, Field(description="Least-cost estimate, as it was last predicted.")
    ]
    basis: Annotated[
        BasisField | None,
        Field(description="Basis of `predicted_walltime`; null before the first forecast."),
    ]
    is_planned: Annotated[
        bool,
        Field(
            description="False: the scheduler has not planned it yet. It is too far behind in the "
            "queue and has no start, or starts after the planning window."
        ),
    ]
    usual_wait: float | None
    scheduler_start: Annotated[
        float | None, Field(description="Start that the scheduler plans itself, if it shows one.")
    ]
    start_time: Annotated[
        float | None, Field(description="Of a running job its start, else forecast.")
    ]
    end_time: Annotated[float | None, Field(description="Forecast.")]
    start_interval: IntervalField | None
    end_interval: IntervalField | None
    wait: Annotated[float | None, Field(description="From submission to start_time.")]
    wait_forecast_at_arrival: Annotated[
        float | None, Field(description="Wait by the first forecast of the job.")
    ]
    shift: Annotated[
        float | None,
        Field(description="Seconds by which the last forecast is later; of the end if it runs."),
    ]
    shift_since_arrival: Annotated[
        float | None, Field(description="As `shift`, since the first forecast of the job.")
    ]


@dataclass(slots=True)
class QueueAnswer(QueueHeadAnswer):
    """A queue and its jobs: running jobs first, then waiting jobs in the order of their turn."""

    policy: str
    plans_by: Annotated[
        str, Field(description="Runtimes that the scheduler assumes: requests or predictions.")
    ]
    method: Annotated[str, Field(description="Method that predicts the runtimes.")]
    pools: Annotated[
        list[PoolAnswer],
        Field(description="The machine: processors, and the queues that they serve."),
    ]
    matching: Annotated[
        int, Field(description="Number of jobs that match the query and that the caller may see.")
    ]
    jobs: Annotated[
        list[LiveJobAnswer], Field(description="The jobs of this page (`limit`, `offset`).")
    ]


PlansByPredictions = Annotated[
    bool,
    Field(
        description="Whether a scheduler plans or orders by predictions, as far as the service "
        "sees by its filters and queues."
    ),
]


@dataclass(slots=True)
class ForecastPointAnswer:
    """One forecast of a job."""

    made_at: Annotated[float, Field(description="When the forecast was made, in Unix seconds.")]
    start_time: float
    end_time: float
    start_interval: IntervalField | None
    end_interval: IntervalField | None


@dataclass(slots=True)
class LiveJobDetailAnswer:
    """One job of the queue, its forecasts, and the runs that its prediction rests on."""

    cluster: str
    taken_at: float
    forecast_at: float | None
    forecast_age: float | None
    no_interval: NoInterval | None
    is_old: bool
    job: Annotated[LiveJobAnswer, Field(description="The job, as in the queue.")]
    forecasts: Annotated[
        list[ForecastPointAnswer],
        Field(description="The first, the last, and those that moved between them; oldest first."),
    ]
    method: str
    plans_by_predictions: PlansByPredictions
    likely: float | None
    interval: IntervalField | None
    basis: BasisField
    explanation: Annotated[
        Sequence[PastRunField] | None, Field(description="Runs of the same user that weigh most.")
    ]
    limit: Annotated[
        LimitAnswer, Field(description="Whether it will end at its limit; as it has run so long.")
    ]


@dataclass(slots=True)
class EndedRunAnswer:
    """A run that has ended, and the prediction that was recorded for it."""

    user: str | None
    project: Annotated[str | None, Field(description="Slurm account, PBS project.")]
    queue: str | None
    application: str | None
    requested_walltime: float
    requested_processors: int | None
    submit_time: float
    start_time: float
    end_time: float
    wait: float
    runtime: Annotated[float, Field(description="Seconds from start to end.")]
    status: str
    predicted_walltime: Annotated[
        float | None, Field(description="Least-cost estimate; null if no prediction was recorded.")
    ]
    likely: Annotated[
        float | None, Field(description="Median; null if none was recorded for this job.")
    ]
    method: str | None
    interval: IntervalField | None


@dataclass(slots=True)
class EarlierRunAnswer:
    """An earlier run of the same user and job name."""

    job_id: str | None
    requested_walltime: float
    runtime: Annotated[float, Field(description="Seconds from start to end.")]
    end_time: float


@dataclass(slots=True)
class EndedJobAnswer:
    """The runs of a job that has ended; several if it was requeued."""

    cluster: str
    job_id: str
    runs: Annotated[list[EndedRunAnswer], Field(description="The runs, newest first.")]
    earlier: Annotated[
        list[EarlierRunAnswer],
        Field(
            description="Runs of the same user and job name that had ended before it was "
            "submitted, newest first."
        ),
    ]


@dataclass(slots=True)
class WhatIfVariantAnswer:
    """The forecast of one request."""

    requested_walltime: float
    requested_processors: int
    queue: str | None
    predicted_walltime: float
    likely: float | None
    interval: IntervalField | None
    share_within: Annotated[
        float | None, Field(description="Share of the like runs that end within this request.")
    ]
    start_time: Annotated[
        float | None, Field(description="Forecast; null if there is an `obstacle`.")
    ]
    end_time: float | None
    wait: float | None
    start_interval: IntervalField | None
    end_interval: IntervalField | None
    obstacle: Annotated[
        Literal["no-snapshot", "too-large", "no-forecast", "not-planned", "no-time"] | None,
        Field(
            description="no-snapshot: none was handed over for this cluster; too-large: no such "
            "processors exist; no-forecast: the queue itself has no forecast yet; not-planned: "
            "more jobs wait than the last forecast reached; no-time: "
            "the forecast took too long, or too many are being made."
        ),
    ]


@dataclass(slots=True)
class WhatIfAnswer:
    """The forecasts of a job that is not in the queue, by request."""

    cluster: str
    now: float
    taken_at: Annotated[float | None, Field(description="Of the queue; null if there is none.")]
    forecast_at: float | None
    forecast_age: float | None
    no_interval: NoInterval | None
    is_old: bool
    method: str
    plans_by_predictions: PlansByPredictions
    basis: BasisField
    explanation: Annotated[
        Sequence[PastRunField] | None,
        Field(description="The runs of the same user that weigh most; null unless requested."),
    ]
    share: Annotated[
        float, Field(description="Share of the runs like it that the suggested request holds.")
    ]
    suggested_walltime: Annotated[
        float | None,
        Field(
            description="A request within which `share` of the like runs end; null if too few are "
            "known, or if it would not be shorter."
        ),
    ]
    limit: Annotated[
        LimitAnswer, Field(description="Whether the job as it is written will end at its limit.")
    ]
    usual_wait: float | None
    as_written: Annotated[
        WhatIfVariantAnswer, Field(description="What would come of the request as it is written.")
    ]
    suggested: Annotated[
        WhatIfVariantAnswer | None,
        Field(description="What would come of `suggested_walltime`; null if there is none."),
    ]
    variants: Annotated[
        list[WhatIfVariantAnswer], Field(description="What would come of other requests.")
    ]


@dataclass(slots=True)
class AtRiskJobAnswer:
    """A running job that will probably be cut at its limit."""

    job_id: str
    user: str | None
    project: Annotated[str | None, Field(description="Slurm account, PBS project.")]
    queue: str | None
    application: str | None
    requested_walltime: float
    requested_processors: int
    start_time: float
    elapsed: Annotated[float, Field(description="Seconds since the start.")]
    limit_time: Annotated[float, Field(description="When it will be cut.")]
    limit: Annotated[
        LimitAnswer, Field(description="Whether it will be, as it has run for so long.")
    ]
    missing: Annotated[
        float | None,
        Field(description="Seconds beyond the limit within which nine in ten of such jobs end."),
    ]
    end_time: Annotated[
        float | None,
        Field(description="When nine in ten of such jobs would have ended; null if not known."),
    ]


@dataclass(slots=True)
class AtRiskAnswer:
    """Running jobs that will probably be cut, those cut first at the beginning."""

    cluster: str
    now: float
    taken_at: Annotated[float, Field(description="When the resource manager showed the queue.")]
    is_old: Annotated[bool, Field(description="Whether a newer queue is overdue.")]
    used: Annotated[float, Field(description="Least share of their limits that jobs have run.")]
    probability: Annotated[float, Field(description="Least probability of these jobs.")]
    jobs: Annotated[list[AtRiskJobAnswer], Field(description="The jobs.")]


@dataclass(slots=True)
class JobForecastAnswer:
    """The forecast of one job; times are Unix seconds, durations are seconds."""

    job_id: Annotated[str | int, Field(description="As it was sent.")]
    state: Literal["running", "waiting"]
    basis: Annotated[
        BasisField | None,
        Field(description="Basis of its prediction; null where the caller has predicted it."),
    ]
    predicted_walltime: Annotated[
        float, Field(description="Runtime in the forecast, from start to end.")
    ]
    start_time: float
    end_time: float
    wait: float
    turnaround: Annotated[float, Field(description="From submission to end.")]
    nodes: Annotated[list[str] | None, Field(description="Null if the machine has no named nodes.")]
    start_interval: Annotated[
        IntervalField | None, Field(description="Interval of start_time; null without samples.")
    ]
    end_interval: Annotated[
        IntervalField | None, Field(description="Interval of end_time; null without samples.")
    ]


@dataclass(slots=True)
class ForecastAnswer:
    """The running jobs, then the waiting jobs, both in the order of the request."""

    cluster: str
    now: float
    policy: str
    method: str
    no_interval: NoInterval | None
    jobs: Annotated[
        list[JobForecastAnswer],
        Field(description="The running jobs, then the waiting jobs, in the order of the request."),
    ]


@dataclass(slots=True)
class WaitScoreAnswer:
    """The errors of forecast waits of jobs that have started."""

    queue: Annotated[str | None, Field(description="Null: all queues; empty: jobs that name none.")]
    made: Annotated[
        Literal["arrival", "since"],
        Field(description="arrival: first forecasts; since: all later ones, each job counting 1."),
    ]
    jobs: Annotated[int, Field(description="Number of jobs that were scored.")]
    mean_wait: Annotated[float, Field(description="Mean of the actual waits.")]
    mean_absolute_error: Annotated[
        float, Field(description="Mean of |forecast - came|, in seconds.")
    ]
    mean_error: Annotated[
        float,
        Field(
            description="Mean of forecast less actual wait: below 0, the forecasts were too early."
        ),
    ]
    coverage: Annotated[
        float | None, Field(description="Share of start intervals that contained the start.")
    ]


@dataclass(slots=True)
class ToldStartsAnswer:
    """Errors of the starts that one teller told, of jobs that have started."""

    queue: Annotated[str | None, Field(description="Null: all queues; empty: jobs that name none.")]
    week_begin: Annotated[
        float | None, Field(description="Begin of the week of the starts; null: all weeks.")
    ]
    horizon: Annotated[
        Literal["arrival", "hour", "six-hours", "later"],
        Field(
            description="arrival: first forecasts; else the time that was still to come: less than "
            "an hour, one to six hours, more."
        ),
    ]
    teller: Annotated[
        Literal["walltimed", "scheduler", "past-waits"],
        Field(
            description="scheduler: start that the scheduler plans itself; past-waits: median of "
            "the queue's last waits that are longer than the job has waited."
        ),
    ]
    jobs: Annotated[int, Field(description="Number of jobs that were scored.")]
    share_told: Annotated[float, Field(description="Share of them for which a start was told.")]
    half_within: Annotated[
        float | None,
        Field(
            description="Least of 600, 1200, … 38400 seconds within which half of the told starts "
            "came; null if they were further off."
        ),
    ]
    share_within_10_minutes: Annotated[
        float, Field(description="Share of the told starts that came within ten minutes.")
    ]
    mean_absolute_error: Annotated[float, Field(description="Mean of |told - came|, in seconds.")]
    mean_error: Annotated[
        float, Field(description="Mean of told less actual start: below 0, told too early.")
    ]
    coverage: Annotated[
        float | None, Field(description="Share of start intervals that contained the start.")
    ]


@dataclass(slots=True)
class WaitScoresAnswer:
    """The errors of a cluster's forecast waits: of all queues together, then of each."""

    cluster: str
    scores: Annotated[
        list[WaitScoreAnswer],
        Field(description="The scores: all queues together first, then each queue."),
    ]
    told: Annotated[
        list[ToldStartsAnswer],
        Field(
            description="Told starts of the last eight weeks: by time to come, then first "
            "forecasts by queue, then by week."
        ),
    ]
