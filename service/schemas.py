"""The JSON that the service takes: every field, its type and its bounds, once."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    GetCoreSchemaHandler,
    ValidationError,
)
from pydantic_core import CoreSchema

from predictors.jobs import DEFAULT_CLUSTER, Completion, Status, Submission
from service.errors import InvalidFieldError, MalformedJSONError, RequestError
from service.store import ReportedCompletion

LONGEST = 1e9
"""Longest duration taken, in seconds: 31 years."""

LATEST = 1e11
"""Latest time taken, in Unix seconds."""


@dataclass(frozen=True)
class Says:
    """Makes a union fail with one sentence about its field, not one complaint per member."""

    sentence: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """The union's schema with our message."""
        return {
            **handler(source),
            "custom_error_type": "union",
            "custom_error_message": self.sentence,
        }


Text = Annotated[
    str, Field(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$")
]
JobId = Annotated[
    Text | Annotated[int, Field(ge=0, lt=2**63)],
    Says("Input should be a string of 1 to 256 printable characters or a whole number"),
]
Duration = Annotated[float, Field(ge=0, le=LONGEST, allow_inf_nan=False)]
PositiveDuration = Annotated[float, Field(gt=0, le=LONGEST, allow_inf_nan=False)]
Time = Annotated[
    Annotated[float, Field(ge=0, le=LATEST, allow_inf_nan=False)]
    | Annotated[
        AwareDatetime,
        Field(ge=datetime(1970, 1, 1, tzinfo=UTC), le=datetime.fromtimestamp(LATEST, UTC)),
    ],
    Says("Input should be Unix seconds in [0, 1e11] or an RFC 3339 time"),
]
Processors = Annotated[int, Field(ge=1, lt=2**31)]
Kibibytes = Annotated[float, Field(gt=0, le=1e15, allow_inf_nan=False)]


def unix_seconds(time: float | datetime) -> float:
    """A time of either form as the domain has it."""
    return time.timestamp() if isinstance(time, datetime) else time


class Taken(BaseModel):
    """What every request body keeps to: no field it does not know, no text for a number."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SubmissionBody(Taken):
    """A job as it is submitted. Only `requested_walltime` is required."""

    requested_walltime: PositiveDuration = Field(description="Seconds.")
    submit_time: Time | None = Field(None, description="Now, if it is left out.")
    cluster: Text = Field(DEFAULT_CLUSTER, description="History never leaves its cluster.")
    job_id: JobId | None = None
    user: Text | None = None
    group: Text | None = None
    project: Text | None = Field(None, description="Slurm account, PBS project.")
    queue: Text | None = Field(None, description="Slurm partition.")
    application: Text | None = Field(None, description="Job name or executable.")
    requested_processors: Processors | None = Field(None, description="Cores.")
    requested_memory: Kibibytes | None = Field(None, description="KiB per processor.")

    def submission(self, now: float) -> Submission:
        """The domain's word for it."""
        return Submission(
            requested_walltime=self.requested_walltime,
            submit_time=now if self.submit_time is None else unix_seconds(self.submit_time),
            cluster=self.cluster,
            job_id=None if self.job_id is None else str(self.job_id),
            user=self.user,
            group=self.group,
            project=self.project,
            queue=self.queue,
            application=self.application,
            requested_processors=self.requested_processors,
            requested_memory=self.requested_memory,
        )


class PredictionRequest(SubmissionBody):
    """A job as it is submitted, and the method that is to answer."""

    method: Text | None = Field(None, description="The service's default, if it is left out.")


class PredictionBatch(Taken):
    """Several submissions for one method."""

    submissions: Annotated[list[SubmissionBody], FailFast()]
    method: Text | None = Field(None, description="The service's default, if it is left out.")


class ExtensionRequest(Taken):
    """A job that outlived its prediction. All in seconds."""

    requested_walltime: PositiveDuration
    predicted_walltime: PositiveDuration = Field(description="At most the request.")
    elapsed: Duration = Field(description="How long the job has been running.")


class CompletionBody(SubmissionBody):
    """One run of a job that has ended.

    Of `start_time` and `runtime` one may be left out.
    """

    job_id: JobId
    submit_time: Time | None = Field(None, description="The start, if it is left out.")
    start_time: Time | None = None
    end_time: Time
    runtime: Duration | None = Field(None, description="Seconds; end less start, if left out.")
    status: Status = Status.UNKNOWN
    prediction_id: Text | None = Field(None, description="Of the prediction that it answers.")

    def reported(self) -> ReportedCompletion:
        """The domain's word for it.

        Raises:
            InvalidFieldError: the times contradict each other.
        """
        end = unix_seconds(self.end_time)
        start, runtime = self._start_and_runtime(end)
        return ReportedCompletion(
            completion=Completion(
                submission=self.submission(start),
                start_time=start,
                end_time=end,
                runtime=runtime,
                status=self.status,
            ),
            prediction_id=self.prediction_id,
        )

    def _start_and_runtime(self, end: float) -> tuple[float, float]:
        """Each from the other where one is missing; a runtime that was reported is kept."""
        if self.start_time is None:
            if self.runtime is None:
                raise InvalidFieldError("Either start_time or runtime is needed.", "start_time")
            if self.runtime > end:
                raise InvalidFieldError("The run would have started before 1970.", "runtime")
            return end - self.runtime, self.runtime
        start = unix_seconds(self.start_time)
        if start > end:
            raise InvalidFieldError("The run would have started after its end.", "start_time")
        runtime = end - start if self.runtime is None else self.runtime
        if runtime > LONGEST:
            raise InvalidFieldError(f"The run would have taken more than {LONGEST:g} s.", "runtime")
        return start, runtime


class CompletionBatch(Taken):
    """Several runs that have ended."""

    completions: Annotated[list[CompletionBody], FailFast()]


class WaitingJob(Taken):
    """A job in the queue."""

    job_id: JobId
    user: Text | None = None
    requested_walltime: PositiveDuration = Field(description="Seconds.")
    submit_time: Time


class PriorityRequest(Taken):
    """The jobs that wait."""

    now: Time | None = Field(None, description="The service's clock, if it is left out.")
    cluster: Text = DEFAULT_CLUSTER
    jobs: Annotated[list[WaitingJob], FailFast()]


def refusal(error: ValidationError) -> RequestError:
    """The first complaint in the service's words."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return MalformedJSONError(f"The body is not JSON: {first['msg']}.")
    return InvalidFieldError(
        "There is no such field." if first["type"] == "extra_forbidden" else f"{first['msg']}.",
        ".".join(map(str, first["loc"])) or "body",
    )
