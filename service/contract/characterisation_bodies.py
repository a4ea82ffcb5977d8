"""The JSON of what applications are when they run alone."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import FailFast, Field

from predictors.jobs import DEFAULT_CLUSTER, LONGEST
from service.contract.bodies import RequestBody
from service.contract.fields import Processors, Text
from simulator.shared_nodes.jobs import SHORTEST_EXECUTION

ExecutionTime = Annotated[float, Field(ge=SHORTEST_EXECUTION, le=LONGEST)]
CpuShare = Annotated[float, Field(ge=0.001, le=1, allow_inf_nan=False)]


class CharacterisationBody(RequestBody):
    """An application as it runs alone, with one number of tasks."""

    application: Text = Field(description="Job name or executable, as in submissions.")
    tasks: Processors = Field(1, description="Number of tasks, one to a node.")
    execution_time: ExecutionTime = Field(description="ExeTime_tot: seconds in isolation.")
    cpu_share: CpuShare = Field(
        1.0, description="CPU(J): share of a CPU that each task uses in isolation."
    )


class CharacterisationsBody(RequestBody):
    """What applications of one cluster are when they run alone."""

    cluster: Text = DEFAULT_CLUSTER
    applications: Annotated[list[CharacterisationBody], FailFast(), Field(min_length=1)]


class ApplicationQuery(RequestBody):
    """The query that names one application of a cluster."""

    cluster: Text = Field(DEFAULT_CLUSTER, description="Cluster that the answer is about.")
    application: Text = Field(description="Job name or executable, as in submissions.")


@dataclass(slots=True)
class CharacterisationAnswer:
    """An application as it runs alone, with one number of tasks."""

    application: Annotated[str, Field(description="Its pseudonym, where names are hidden.")]
    tasks: int
    execution_time: Annotated[float, Field(description="Seconds in isolation.")]
    cpu_share: Annotated[float, Field(description="Share of a CPU that each task uses.")]
    source: Annotated[
        Literal["posted", "accounting"],
        Field(description="accounting: from the run that got the largest share of its CPUs."),
    ]
    recorded_at: Annotated[float, Field(description="Unix seconds.")]


@dataclass(slots=True)
class CharacterisationsAnswer:
    """The known applications of a cluster, by name and number of tasks."""

    cluster: str
    applications: list[CharacterisationAnswer]


@dataclass(slots=True)
class DroppedAnswer:
    """The number of characterisations that were deleted."""

    dropped: int
