"""The JSON that the service accepts, defined once for validation, documentation and the domain."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, FailFast, Field, ValidationError
from pydantic.config import JsonDict

from predictors.facts import MOST_FEATURES, Facts, known
from predictors.jobs import DEFAULT_CLUSTER, LONGEST, Completion, Status, Submission
from predictors.registry import METHODS
from service.contract.fields import (
    Coverage,
    Duration,
    Features,
    Gpus,
    JobId,
    Kibibytes,
    Line,
    Method,
    PositiveDuration,
    Processors,
    Text,
    Time,
    UnderestimationRate,
    Whole,
    unix_seconds,
)
from service.errors import InvalidFieldError, MalformedJSONError, RequestError
from service.live_queue.taken_processors import (
    ProcessorRequest,
    QueueNodes,
    nodes_of,
    with_taken,
)

MOST_ERRORS = 1000
"""Most errors of a body whose first one is reported: pydantic lists all of them or none."""

EXAMPLE: JsonDict = {
    "user": "ada",
    "queue": "batch",
    "application": "cfd",
    "requested_walltime": 7200,
    "requested_processors": 16,
    "coverage": 0.8,
    "explain": True,
}
"""A body that readers of the API can send."""


class RequestBody(BaseModel):
    """The base of every request body: unknown fields and texts for numbers are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class JobBody(RequestBody):
    """The fields of a job that a user requests. Only `requested_walltime` is required."""

    requested_walltime: PositiveDuration = Field(description="Seconds.")
    user: Text | None = None
    group: Text | None = Field(None, description="Unix group of the user.")
    project: Text | None = Field(None, description="Slurm account, PBS project.")
    queue: Text | None = Field(None, description="Slurm partition.")
    application: Text | None = Field(None, description="Job name or executable.")
    requested_processors: Processors | None = Field(None, description="Cores.")
    requested_memory: Kibibytes | None = Field(None, description="KiB per processor.")

    def facts(self) -> Facts | None:
        """Return no facts; bodies with fields for them return these."""
        return None

    def submitted(
        self, cluster: str, submit_time: float, job_id: str | int | None = None
    ) -> Submission:
        """Return the submission of the job to a cluster, at a time in Unix seconds."""
        return Submission(
            requested_walltime=self.requested_walltime,
            submit_time=submit_time,
            cluster=cluster,
            job_id=None if job_id is None else str(job_id),
            user=self.user,
            group=self.group,
            project=self.project,
            queue=self.queue,
            application=self.application,
            requested_processors=self.requested_processors,
            requested_memory=self.requested_memory,
            facts=self.facts(),
        )


class FactsBody(RequestBody):
    """Further facts of a job, all optional; text among them is stored as hashes only."""

    work_dir: Line | None = Field(None, description="Working directory.")
    script_hash: Text | None = Field(
        None, description="Hash of the job script without blanks, comments and numbers."
    )
    submit_line: Line | None = Field(None, description="Command line of the submission.")
    qos: Text | None = Field(None, description="Quality of service.")
    nodes: Processors | None = Field(None, description="Number of nodes.")
    gpus: Gpus | None = Field(None, description="Of the whole job.")
    gpu_type: Text | None = Field(None, description="Type of the GPUs.")
    array_size: Processors | None = Field(None, description="Tasks of the job's array.")
    constraint: Line | None = Field(None, description="Requested properties of nodes.")
    dependency: Line | None = Field(None, description="Only its kind is kept, such as afterok.")
    submit_host: Text | None = Field(None, description="Host of the submission.")
    interactive: bool | None = Field(None, description="Whether a person sits before the job.")
    features: Features | None = Field(
        None, description=f"Up to {MOST_FEATURES} numbers or words of the site's own, by name."
    )

    def facts(self) -> Facts | None:
        """Return the facts; None if there are none."""
        return known(
            Facts(
                work_dir=self.work_dir,
                script_hash=self.script_hash,
                submit_line=self.submit_line,
                qos=self.qos,
                nodes=self.nodes,
                gpus=self.gpus,
                gpu_type=self.gpu_type,
                array_size=self.array_size,
                constraint=self.constraint,
                dependency=self.dependency,
                submit_host=self.submit_host,
                interactive=self.interactive or None,
                features=self.features or {},
            )
        )


class SubmissionBody(FactsBody, JobBody):
    """A job as it is submitted. Only `requested_walltime` is required."""

    submit_time: Time | None = Field(None, description="Default: now.")
    cluster: Text = Field(
        DEFAULT_CLUSTER, description="Cluster; predictions use its own history only."
    )
    job_id: JobId | None = None

    def submission(self, now: float) -> Submission:
        """Return the submission; ``now`` is its time in Unix seconds where the body has none."""
        submit_time = now if self.submit_time is None else unix_seconds(self.submit_time)
        return self.submitted(self.cluster, submit_time, self.job_id)


class AskedNodesBody(RequestBody):
    """Fields of a request that matter where jobs take whole nodes or whole cores."""

    requested_nodes: Processors = Field(
        1, description="Least number of nodes; where they go whole, the job takes all their cores."
    )
    exclusive: bool = Field(
        default=False, description="Whether the job shares its nodes with no other."
    )
    threads_per_core: Annotated[int, Whole(1, 1024)] | None = Field(
        None, description="Processors of each core that the job uses; default: all."
    )

    def taken(self, submission: Submission, nodes: Mapping[str | None, QueueNodes]) -> Submission:
        """Return the submission with the processors that it will take, where nodes are known."""
        request = ProcessorRequest(
            processors=submission.requested_processors or 1,
            nodes=self.requested_nodes,
            threads_per_core=self.threads_per_core,
            exclusive=self.exclusive,
        )
        return with_taken(submission, request, nodes_of(nodes, submission.queue))


class AskedSubmission(AskedNodesBody, SubmissionBody):
    """A job as it is submitted, or as it runs."""

    elapsed: Duration | None = Field(
        None, description="Seconds that the job has been running; left out before its start."
    )


class QuestionBody(RequestBody):
    """Method that answers, and options of its answer."""

    method: Method | None = Field(None, description="The service's default, if it is left out.")
    coverage: Coverage | None = Field(
        None,
        description="Share of jobs whose runtime the interval is to hold; the service's setting, "
        "if it is left out.",
    )
    underestimation_rate: UnderestimationRate | None = Field(
        None,
        description="Share of jobs for which the prediction may be too short; the method's own "
        "trade-off, if it is left out. Refused for methods without intervals.",
    )
    explain: bool = Field(
        default=False, description="Whether the runs of the same user that weigh most are wanted."
    )


class PredictionRequest(QuestionBody, AskedSubmission):
    """A job as it is submitted or runs, the method that answers, and options of the answer."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})


class PredictionBatch(QuestionBody):
    """Several submissions for one method, with the same options."""

    submissions: Annotated[list[AskedSubmission], FailFast()] = Field(
        description="The jobs, at most as many as the setting max_batch allows."
    )


class ExtensionRequest(RequestBody):
    """A job that outlived its prediction. All times are in seconds."""

    requested_walltime: PositiveDuration
    predicted_walltime: PositiveDuration = Field(description="At most the request.")
    elapsed: Duration = Field(description="How long the job has been running.")
    submission: SubmissionBody | None = Field(
        None, description="The job, so that the answer can use its user's longer runs."
    )


class CompletionBody(SubmissionBody):
    """One run of a job that has ended.

    Either `start_time` or `runtime` may be left out.
    """

    job_id: JobId
    submit_time: Time | None = Field(
        None, description="Default: the start. A time after the start counts as the start."
    )
    start_time: Time | None = None
    end_time: Time
    runtime: Duration | None = Field(None, description="Seconds; default: end minus start.")
    status: Status = Status.UNKNOWN
    interactive: bool = Field(
        default=False,
        description="Whether a person sat before it; does not count for the user's accuracy.",
    )
    prediction_id: Text | None = Field(None, description="Id of this job's prediction.")

    def completion(self) -> Completion:
        """Convert to a `Completion`.

        Raises:
            InvalidFieldError: the times contradict each other.
        """
        end = unix_seconds(self.end_time)
        start, runtime = self._start_and_runtime(end)
        submission = self.submission(start)
        if submission.submit_time > start:  # a clock that jumped back while the job waited
            submission = replace(submission, submit_time=start)
        return Completion(
            submission=submission,
            start_time=start,
            end_time=end,
            runtime=runtime,
            status=self.status,
            interactive=self.interactive,
        )

    def runs(self) -> list[tuple[Completion, str | None]]:
        """Return the one run that the body reports, with the id of its prediction."""
        return [(self.completion(), self.prediction_id)]

    def _start_and_runtime(self, end: float) -> tuple[float, float]:
        """Return start (Unix seconds) and runtime (seconds); one may follow from the other."""
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
            raise InvalidFieldError(
                f"The run would have taken more than {LONGEST:,.0f} s.", "runtime"
            )
        return start, runtime


class CompletionBatch(RequestBody):
    """Several runs that have ended."""

    completions: Annotated[list[CompletionBody], FailFast()] = Field(description="The runs.")

    def runs(self) -> list[tuple[Completion, str | None]]:
        """Return the runs that the body reports, with the ids of their predictions.

        Raises:
            InvalidFieldError: the times of a run contradict each other.
        """
        runs = []
        for place, body in enumerate(self.completions):
            try:
                runs.extend(body.runs())
            except InvalidFieldError as error:
                raise error.within(f"completions.{place}") from error
        return runs


class WaitingJob(RequestBody):
    """A job in the queue."""

    job_id: JobId
    user: Text | None = None
    requested_walltime: PositiveDuration = Field(description="Seconds.")
    submit_time: Time


class ClusterQuery(RequestBody):
    """The query of calls about one cluster."""

    cluster: Text = Field(DEFAULT_CLUSTER, description="Cluster that the answer is about.")


class PriorityRequest(RequestBody):
    """The waiting jobs."""

    now: Time | None = Field(None, description="Default: the service's clock.")
    cluster: Text = DEFAULT_CLUSTER
    jobs: Annotated[list[WaitingJob], FailFast()] = Field(description="The waiting jobs.")


def method_of(name: str | None, default: str) -> str:
    """Return the name of the method that answers; ``name`` is that of a body, if it has one.

    Raises:
        InvalidFieldError: there is no such method.
    """
    if name is None:
        return default
    if name not in METHODS:
        methods = ", ".join(sorted(METHODS))
        raise InvalidFieldError(f"There is no such method; there are {methods}.", "method")
    return name


def check_length(items: Sequence[object], field: str, limit: int) -> None:
    """Refuse a list of more than ``limit`` items.

    Raises:
        InvalidFieldError: ``items``, the list in ``field`` of the body, is longer.
    """
    if len(items) > limit:
        raise InvalidFieldError(f"There must be at most {limit} in one request.", field)


def refusal(error: ValidationError) -> RequestError:
    """Convert the first error of pydantic; if there are very many, return their number only."""
    if error.error_count() > MOST_ERRORS:
        return InvalidFieldError(f"The body has {error.error_count():,} errors.", "body")
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return MalformedJSONError(f"The body is not JSON: {first['msg']}.")
    return invalid_field(first["type"], first["msg"], first["loc"])


def invalid_field(kind: str, message: str, path: Sequence[str | int]) -> InvalidFieldError:
    """Convert an error of pydantic, from its type, message and path."""
    detail = "There is no such field." if kind == "extra_forbidden" else f"{message}."
    return InvalidFieldError(detail, ".".join(map(str, path)) or "body")
