"""The JSON that is answered: plain dataclasses, which pydantic describes and msgspec writes."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field


@dataclass(slots=True)
class BasisAnswer:
    """What a prediction rests on."""

    jobs: Annotated[int, Field(description="How many past jobs.")]
    reason: Annotated[str, Field(description="One word, such as history or cold-start.")]


@dataclass(slots=True)
class IntervalAnswer:
    """Bounds in seconds that hold the runtime with probability `coverage`."""

    lower: float
    upper: float
    coverage: float


@dataclass(slots=True)
class PastRunAnswer:
    """A run of the same user that the prediction rests on."""

    job_id: str | None
    runtime: Annotated[float, Field(description="Seconds.")]
    requested_walltime: Annotated[float, Field(description="Seconds.")]
    end_time: Annotated[float, Field(description="Unix seconds.")]
    weight: Annotated[float, Field(description="Share of all that the prediction rests on.")]


@dataclass(slots=True)
class PredictionAnswer:
    """How long the job will run, in seconds."""

    predicted_walltime: float
    requested_walltime: float
    method: Annotated[str, Field(description="The method that really answered.")]
    basis: BasisAnswer
    interval: IntervalAnswer | None
    median: Annotated[
        float | None,
        Field(description="Jobs like this one end as often before it as after; null as interval."),
    ]
    explanation: Annotated[
        list[PastRunAnswer] | None,
        Field(description="Heaviest first, at most ten; null unless it was asked for."),
    ]
    prediction_id: str
    job_id: Annotated[str | int | None, Field(description="As it was sent.")]
    cluster: str


@dataclass(slots=True)
class PredictionsAnswer:
    """Predictions in the order of the submissions."""

    predictions: list[PredictionAnswer]


@dataclass(slots=True)
class ExtensionAnswer:
    """The next estimate of the job's whole runtime, in seconds."""

    predicted_walltime: float


@dataclass(slots=True)
class IngestionAnswer:
    """What was stored. It is durable."""

    accepted: Annotated[int, Field(description="Runs that were new.")]
    duplicates: Annotated[int, Field(description="Runs that were known already.")]


@dataclass(slots=True)
class RecordsAnswer:
    """What was stored of a resource manager's records. It is durable."""

    accepted: Annotated[int, Field(description="Runs that were new.")]
    duplicates: Annotated[int, Field(description="Runs that were known already.")]
    skipped: Annotated[
        dict[str, int], Field(description="Records that tell of no run, by the reason why.")
    ]


@dataclass(slots=True)
class Rejection:
    """A line that was skipped."""

    line: int
    field: str
    detail: str


@dataclass(slots=True)
class SkippingAnswer:
    """What was stored of a stream, and what was not."""

    accepted: int
    duplicates: int
    rejected: int
    rejections: Annotated[list[Rejection], Field(description="The first thousand of them.")]


@dataclass(slots=True)
class ScoreAnswer:
    """How a method did on the jobs that ended."""

    jobs: int
    mean_absolute_error: Annotated[float, Field(description="Seconds.")]
    underestimation_rate: float
    accuracy: Annotated[float, Field(description="Mean of min(p, r) / max(p, r).")]
    coverage: Annotated[float | None, Field(description="Share of intervals that held.")]


@dataclass(slots=True)
class MethodAnswer:
    """One method."""

    name: str
    parameters: Annotated[dict[str, Any], Field(description="In force now.")]
    score: Annotated[ScoreAnswer | None, Field(description="Null before the first scored job.")]


@dataclass(slots=True)
class MethodsAnswer:
    """The methods of a cluster."""

    cluster: str
    default: str
    methods: list[MethodAnswer]


@dataclass(slots=True)
class UserAnswer:
    """How much of their requests a user's last ten jobs used."""

    user: str
    cluster: str
    accuracy: float
    jobs: int
    group: str
    priority: int


@dataclass(slots=True)
class GroupAnswer:
    """One accuracy group and who is in it now."""

    group: str
    lower: float
    upper: float
    priority: int
    users: int
    user_share: float
    jobs: int
    job_share: float


@dataclass(slots=True)
class GroupsAnswer:
    """The accuracy groups of a cluster, g1 first."""

    cluster: str
    groups: list[GroupAnswer]


@dataclass(slots=True)
class PriorityAnswer:
    """A waiting job's priority."""

    job_id: str | int
    group: str
    initial_priority: int
    priority: float
    reason: Annotated[str, Field(description="history, or cold-start for an unknown user.")]


@dataclass(slots=True)
class PrioritiesAnswer:
    """Waiting jobs, highest priority first, older submissions first among equals."""

    priorities: list[PriorityAnswer]


@dataclass(slots=True)
class TrialAnswer:
    """Parameters of knn, and how they did on the training and on the held-back test jobs."""

    parameters: dict[str, Any]
    training_error: Annotated[float, Field(description="Mean absolute error in seconds.")]
    training_underestimation_rate: float
    test_error: Annotated[float, Field(description="Mean absolute error in seconds.")]
    test_underestimation_rate: float


@dataclass(slots=True)
class TuningAnswer:
    """One round of tuning."""

    tuning_id: str
    cluster: str
    state: Literal["waiting", "running", "done", "failed"]
    origin: Annotated[
        str, Field(description="history: enough jobs had ended; request; or command.")
    ]
    plan: Annotated[dict[str, Any], Field(description="What it looks at, and what it wants.")]
    asked_at: float
    started_at: float | None
    finished_at: float | None
    step: Annotated[int, Field(description="Generations, or templates, that were searched.")]
    steps: Annotated[int, Field(description="How many there are at most; 0 before the first.")]
    costs: Annotated[
        list[float], Field(description="Seconds: the best cost on the training jobs, step by step.")
    ]
    best: Annotated[dict[str, Any] | None, Field(description="The best parameters so far.")]
    before: Annotated[TrialAnswer | None, Field(description="What was in force.")]
    after: Annotated[TrialAnswer | None, Field(description="What the search found.")]
    adopted: Annotated[
        bool | None, Field(description="Whether it is in force now: it won on the test jobs.")
    ]
    error: Annotated[str | None, Field(description="Why it failed.")]


@dataclass(slots=True)
class TuningsAnswer:
    """Rounds of tuning, newest first, at most a hundred."""

    tunings: list[TuningAnswer]


Status = Literal["starting", "ready", "stale", "read-only", "failed"]


@dataclass(slots=True)
class LivenessAnswer:
    """The process answers."""

    status: str


@dataclass(slots=True)
class HealthAnswer:
    """How level the service is with its history."""

    status: Annotated[
        Status,
        Field(
            description="stale: ready, but the history store cannot be read; read-only: ready, but "
            "it cannot be written to, because somebody locks it or there is no room."
        ),
    ]
    lag: Annotated[int, Field(description="Durable completions that predictions do not know of.")]
    stale_seconds: float
    detail: Annotated[str | None, Field(description="Why it is stale or read-only, or has failed.")]
