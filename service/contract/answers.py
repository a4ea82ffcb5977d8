"""The JSON of answers: plain dataclasses that pydantic describes and msgspec writes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from predictors.accuracy_groups import GroupShare
from predictors.jobs import Basis, Interval, PastRun
from service.contract.fields import DescribedBy

LimitProbability = Annotated[
    float | None,
    Field(description="Probability that the job will end at its limit; null if nothing is known."),
]
LimitReason = Annotated[
    str,
    Field(
        description="history: runs of the user; chain: jobs like it are cut and go on, again and "
        "again, or by its dependency; others: no runs of the user; or why there is no probability: "
        "young-cluster, no-user, starting, failure."
    ),
]
LimitWarning = Annotated[
    bool,
    Field(
        description="Whether the user should be warned: the probability is at least the setting "
        "`warning_probability`, of a running job `running_warning_probability`, and the job is of "
        "no chain."
    ),
]
LikeRuns = Annotated[
    int,
    Field(description="The user's last runs with the same application, request and processors."),
]
LikeHits = Annotated[int, Field(description="Number of them that ended at the limit.")]
LongerWalltime = Annotated[
    float | None,
    Field(
        description="A request beyond the present one that nine in ten of such jobs stay within, "
        "in seconds; null where there is none. It is at most the largest limit of the job's queue, "
        "where that was handed over."
    ),
]
LongerReason = Annotated[
    str,
    Field(
        description="history, or why there is none: unlikely below a probability of 0.2; chain; "
        "too-few-uncut runs; enough, as the request holds as many; largest-limit of the queue; or "
        "as limit_reason."
    ),
]


@dataclass(slots=True)
class LimitAnswer:
    """The probability that a job ends at its limit, and a longer request."""

    probability: LimitProbability
    reason: LimitReason
    warning: LimitWarning
    like_runs: LikeRuns
    like_hits: LikeHits
    longer_walltime: LongerWalltime
    longer_reason: LongerReason


@dataclass(slots=True)
class BasisAnswer:
    """The basis of a prediction."""

    jobs: Annotated[int, Field(description="Number of past jobs used.")]
    reason: Annotated[
        str,
        Field(
            description="history: runs of the user; others: the user has none, so runs of other "
            "users; cold-start: none, so the request; starting: the history is still being read, "
            "so the request; young-cluster, too-few-jobs, failure."
        ),
    ]


@dataclass(slots=True)
class IntervalAnswer:
    """Bounds that contain a runtime or a time with probability `coverage`."""

    lower: float
    upper: float
    coverage: Annotated[
        float, Field(description="Share of runtimes or times that the interval is meant to hold.")
    ]


@dataclass(slots=True)
class PastRunAnswer:
    """A run of the same user that the prediction rests on."""

    job_id: str | None
    runtime: Annotated[float, Field(description="Seconds.")]
    requested_walltime: Annotated[float, Field(description="Seconds.")]
    end_time: Annotated[float, Field(description="Unix seconds.")]
    weight: Annotated[float, Field(description="Share of all that the prediction rests on.")]
    shared: Annotated[
        list[str] | None,
        Field(description="Names of further facts that made it like the job; left out without."),
    ] = None


BasisField = Annotated[Basis, DescribedBy(BasisAnswer)]
IntervalField = Annotated[Interval, DescribedBy(IntervalAnswer)]
PastRunField = Annotated[PastRun, DescribedBy(PastRunAnswer)]


@dataclass(slots=True)
class PredictionAnswer:
    """Prediction of a job's runtime, in seconds."""

    predicted_walltime: Annotated[
        float,
        Field(
            description="Planned runtime, for the scheduler: chosen so that few jobs outlive it. "
            "Within `interval`, and at most the request."
        ),
    ]
    requested_walltime: float
    method: Annotated[str, Field(description="The method that gave the answer.")]
    basis: BasisField
    interval: Annotated[
        IntervalField | None,
        Field(
            description="Range of the runtime, widened to contain `likely` and "
            "`predicted_walltime`; null where the method gives none."
        ),
    ]
    likely: Annotated[
        float | None,
        Field(
            description="Median: jobs like this one end as often before it as after; null where "
            "the method gives none, and without any history."
        ),
    ]
    mean_walltime: Annotated[
        float | None,
        Field(
            description="Mean runtime of jobs like this one, by which a queue is ordered; may lie "
            "outside `interval`; null where `likely` is."
        ),
    ]
    explanation: Annotated[
        Sequence[PastRunField] | None,
        Field(description="Heaviest first, at most ten; null unless requested."),
    ]
    limit_probability: LimitProbability
    limit_reason: LimitReason
    limit_warning: LimitWarning
    like_runs: LikeRuns
    like_hits: LikeHits
    longer_walltime: LongerWalltime
    longer_reason: LongerReason
    prediction_id: Annotated[
        str, Field(description="Name of the prediction; the completion may carry it back.")
    ]
    job_id: Annotated[str | int | None, Field(description="As it was sent.")]
    cluster: str


@dataclass(slots=True)
class PredictionsAnswer:
    """Predictions in the order of the submissions."""

    predictions: Annotated[
        list[PredictionAnswer],
        Field(description="The predictions, in the order of the submissions."),
    ]


@dataclass(slots=True)
class ExtensionAnswer:
    """The next estimate of the job's whole runtime, in seconds."""

    predicted_walltime: float


@dataclass(slots=True)
class IngestionAnswer:
    """Counts of the runs. All of them are stored durably."""

    accepted: Annotated[int, Field(description="Number of runs that were new.")]
    duplicates: Annotated[int, Field(description="Number of runs that were known already.")]


@dataclass(slots=True)
class RecordsAnswer(IngestionAnswer):
    """Counts of a resource manager's records. All runs in them are stored durably."""

    skipped: Annotated[
        dict[str, int], Field(description="Number of records without a usable run, by reason.")
    ]
    doubts: Annotated[
        dict[str, int],
        Field(description="Number of runs whose fields contradict each other, by contradiction."),
    ]


@dataclass(slots=True)
class ObservedShareAnswer:
    """Calibration of a method: the nominal shares of jobs, and the observed share."""

    jobs: Annotated[int, Field(description="Number of jobs for which a share was requested.")]
    nominal: Annotated[float, Field(description="Mean of the nominal shares of jobs.")]
    observed: Annotated[float, Field(description="The observed share of jobs.")]


@dataclass(slots=True)
class RecentScoreAnswer:
    """Measures of a method over its predictions for the last 1,000 scored jobs.

    For calibration, a runtime counts up to the request.
    """

    jobs: Annotated[int, Field(description="Number of jobs with a prediction of the method.")]
    underestimation_rate: float
    intervals: Annotated[
        ObservedShareAnswer | None,
        Field(description="Coverage of its intervals; null if it gave none."),
    ]
    rates: Annotated[
        ObservedShareAnswer | None,
        Field(
            description="Underestimates where an `underestimation_rate` was requested; else null."
        ),
    ]


@dataclass(slots=True)
class ScoreAnswer:
    """The measures of a method's predictions for jobs that have ended."""

    jobs: Annotated[int, Field(description="Number of jobs that have ended and were scored.")]
    mean_absolute_error: Annotated[float, Field(description="Seconds.")]
    underestimation_rate: float
    accuracy: Annotated[float, Field(description="Mean of min(p, r) / max(p, r).")]
    coverage: Annotated[
        float | None, Field(description="Share of intervals that held the runtime.")
    ]
    nominal_coverage: Annotated[
        float | None, Field(description="Mean nominal coverage of these intervals.")
    ]
    recent: Annotated[
        RecentScoreAnswer | None,
        Field(
            description="The same for the cluster's last 1,000 scored jobs; null before the first."
        ),
    ]


@dataclass(slots=True)
class VerdictAnswer:
    """Gain in cost of a change on runs that it was not made on."""

    jobs: Annotated[int, Field(description="The jobs.")]
    gain: Annotated[float, Field(description="Relative, of the mean cost; less than 0: a loss.")]
    error: Annotated[float | None, Field(description="Its standard error, where there is one.")]


@dataclass(slots=True)
class AdoptionAnswer:
    """The adoption of what is in force by a round of tuning."""

    tuning_id: Annotated[str, Field(description="Id of the round.")]
    adopted_at: Annotated[float, Field(description="When it was adopted, in Unix seconds.")]
    verdict: Annotated[
        VerdictAnswer | None,
        Field(description="Gain over what was in force before; null for a forest."),
    ]


@dataclass(slots=True)
class MethodAnswer:
    """One method."""

    name: Annotated[str, Field(description="Name of the method.")]
    parameters: Annotated[dict[str, Any], Field(description="Parameters in force now.")]
    adopted: Annotated[
        AdoptionAnswer | None,
        Field(description="The round that found the parameters; null if none has."),
    ]
    score: Annotated[ScoreAnswer | None, Field(description="Null before the first scored job.")]


@dataclass(slots=True)
class MethodsAnswer:
    """The methods of a cluster."""

    cluster: str
    default: Annotated[
        str, Field(description="Name of the method that answers when a request names none.")
    ]
    methods: Annotated[list[MethodAnswer], Field(description="The methods.")]


@dataclass(slots=True)
class UserAnswer:
    """The accuracy of a user's requests: the share that the last ten jobs used."""

    user: str
    cluster: str
    accuracy: Annotated[
        float, Field(description="Mean share of their requests that the user's last ten jobs used.")
    ]
    jobs: Annotated[
        int, Field(description="Number of jobs that the accuracy rests on, at most ten.")
    ]
    group: Annotated[str, Field(description="Accuracy group of the user, g1 to g10.")]
    priority: Annotated[
        int, Field(description="Priority of a job of this user when it is submitted.")
    ]


@dataclass(slots=True)
class GroupAnswer:
    """One accuracy group and its present users."""

    group: Annotated[str, Field(description="Name of the accuracy group, g1 to g10.")]
    lower: float
    upper: float
    includes_upper: Annotated[
        bool, Field(description="Whether an accuracy of `upper` is in the group, as 1 is in g10.")
    ]
    priority: Annotated[
        int, Field(description="Priority of a job of such a user when it is submitted.")
    ]
    users: Annotated[int, Field(description="Number of users that are in the group now.")]
    user_share: Annotated[float, Field(description="Share of all users, from 0 to 1.")]


GroupField = Annotated[GroupShare, DescribedBy(GroupAnswer)]


@dataclass(slots=True)
class GroupsAnswer:
    """The accuracy groups of a cluster, g1 first."""

    cluster: str
    groups: Annotated[list[GroupField], Field(description="The ten groups, g1 first.")]


@dataclass(slots=True)
class PriorityAnswer:
    """A waiting job's priority."""

    job_id: str | int
    group: Annotated[str, Field(description="Accuracy group of the job's user, g1 to g10.")]
    initial_priority: Annotated[
        int, Field(description="Priority of the job when it was submitted.")
    ]
    priority: Annotated[float, Field(description="Priority now: it grows while the job waits.")]
    reason: Annotated[str, Field(description="history, or cold-start for an unknown user.")]


@dataclass(slots=True)
class PrioritiesAnswer:
    """Waiting jobs, highest priority first, older submissions first among equals."""

    priorities: Annotated[
        list[PriorityAnswer], Field(description="The jobs, highest priority first.")
    ]


@dataclass(slots=True)
class TrialAnswer:
    """Parameters of knn, and their errors on the training jobs and on the held-back test jobs."""

    parameters: Annotated[dict[str, Any], Field(description="Parameters of knn.")]
    training_error: Annotated[float, Field(description="Mean absolute error in seconds.")]
    training_underestimation_rate: Annotated[
        float, Field(description="Share of the training jobs that ran longer than predicted.")
    ]
    test_error: Annotated[float, Field(description="Mean absolute error in seconds.")]
    test_underestimation_rate: Annotated[
        float, Field(description="Share of the test jobs that ran longer than predicted.")
    ]


Subject = Literal["knn", "forest", "price", "auto"]
"""Subjects of rounds; the last two only in rounds before release 0.3."""


@dataclass(slots=True)
class ChangeAnswer:
    """Outcome of a round for one thing that is learned of a cluster."""

    subject: Annotated[
        Subject,
        Field(description="Parameters of knn, or trees of forest; price and auto in old rounds."),
    ]
    action: Annotated[
        Literal["adopted", "kept", "dropped", "learned", "renewed"],
        Field(
            description="dropped: what an earlier round had adopted has lost, and is replaced; "
            "renewed: what is in force was learned anew, on newer runs."
        ),
    ]
    before: Annotated[Any, Field(description="What was in force.")]
    after: Annotated[Any, Field(description="What was proposed, or what is back in force.")]
    verdict: Annotated[
        VerdictAnswer | None, Field(description="Of the proposal, on later jobs, if there was one.")
    ]
    review: Annotated[
        VerdictAnswer | None, Field(description="Of what was adopted before, on the jobs since.")
    ]


@dataclass(slots=True)
class TuningAnswer:
    """One round of tuning."""

    tuning_id: str
    cluster: str
    state: Literal["running", "done", "failed"]
    origin: Annotated[str, Field(description="history: enough jobs had ended; or command.")]
    plan: Annotated[
        dict[str, Any], Field(description="The jobs that the round looks at, and its search.")
    ]
    started_at: Annotated[float, Field(description="When the round began, in Unix seconds.")]
    finished_at: Annotated[
        float | None, Field(description="When the round ended, in Unix seconds; null before.")
    ]
    costs: Annotated[
        list[float], Field(description="Seconds: the best cost on the training jobs, step by step.")
    ]
    before: Annotated[
        TrialAnswer | None, Field(description="Parameters in force before the round.")
    ]
    after: Annotated[TrialAnswer | None, Field(description="Parameters that the search found.")]
    adopted: Annotated[
        bool | None,
        Field(description="Whether the parameters of knn won on the test jobs and are in force."),
    ]
    changes: Annotated[
        list[ChangeAnswer],
        Field(description="What the round did about each subject; empty before its end."),
    ]
    error: Annotated[str | None, Field(description="Why the round failed.")]


@dataclass(slots=True)
class TuningsAnswer:
    """Rounds of tuning, newest first, at most a hundred."""

    tunings: Annotated[list[TuningAnswer], Field(description="The rounds, newest first.")]


HealthStatus = Literal["starting", "ready", "stale", "read-only", "failed"]


@dataclass(slots=True)
class LivenessAnswer:
    """State of the process: it answers."""

    status: str


@dataclass(slots=True)
class HealthAnswer:
    """State of the service, and how far its predictions are behind the stored history."""

    status: Annotated[
        HealthStatus,
        Field(
            description="stale: ready, but the history store cannot be read; read-only: ready, but "
            "it cannot be written to, because it is locked or there is no room."
        ),
    ]
    lag: Annotated[
        int, Field(description="Stored completions that are not yet used for predictions.")
    ]
    stale_seconds: Annotated[
        float, Field(description="How long the history store could not be read, in seconds.")
    ]
    detail: Annotated[str | None, Field(description="Why it is stale or read-only, or has failed.")]
    history: Annotated[
        str | None,
        Field(description="Fingerprint of the history store; `walltimed doctor` compares it."),
    ]
