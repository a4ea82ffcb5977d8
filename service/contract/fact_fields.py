"""The further facts of a submission, as fields of requests."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from predictors.facts import MOST_FEATURES, Facts, known
from service.contract.fields import ErrorSentence, Processors, Text, Whole
from terminal.words import LONGEST_NAME, PRINTABLE

LONGEST_LINE = 4096
"""Characters of a path or command line, as Linux bounds a path."""

LARGEST_NUMBER = 1e15

Line = Annotated[
    str,
    Field(min_length=1, max_length=LONGEST_LINE, pattern=PRINTABLE),
    ErrorSentence(f"Input should be a string of 1 to {LONGEST_LINE} printable characters"),
]
Feature = Annotated[
    Annotated[float, Field(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER, allow_inf_nan=False)]
    | Annotated[str, Field(min_length=1, max_length=LONGEST_NAME, pattern=PRINTABLE)],
    ErrorSentence("Input should be a number in [-1e15, 1e15] or 1 to 256 printable characters"),
]
FeatureName = Annotated[
    str,
    Field(min_length=1, max_length=64, pattern=PRINTABLE),
    ErrorSentence("A feature's name should have 1 to 64 printable characters"),
]
Features = Annotated[
    dict[FeatureName, Feature],
    Field(max_length=MOST_FEATURES, json_schema_extra={"additionalProperties": False}),
]


class FactsBody(BaseModel):
    """Further facts of a job, all optional; text among them is stored as hashes only."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    work_dir: Line | None = Field(None, description="Working directory.")
    script_hash: Text | None = Field(
        None, description="Hash of the job script without blanks, comments and numbers."
    )
    submit_line: Line | None = Field(None, description="Command line of the submission.")
    qos: Text | None = Field(None, description="Quality of service.")
    nodes: Processors | None = Field(None, description="Number of nodes.")
    gpus: Annotated[int, Whole(0, 2**31 - 1)] | None = Field(None, description="Of the whole job.")
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
