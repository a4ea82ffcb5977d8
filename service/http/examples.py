"""Bodies that the OpenAPI document shows: one for each thing that can be asked of a prediction."""

from collections.abc import Mapping
from typing import Any

Examples = Mapping[str, tuple[str, dict[str, Any]]]
"""A summary and a body, by name."""

JOB: dict[str, Any] = {
    "user": "ada",
    "queue": "batch",
    "application": "cfd",
    "requested_walltime": 7200,
    "requested_processors": 16,
}

PREDICTION: Examples = {
    "submission": ("A job as it is submitted.", JOB),
    "coverage": (
        "An interval that holds the runtime of four jobs in five.",
        JOB | {"method": "least-cost", "coverage": 0.8},
    ),
    "underestimation_rate": (
        "A prediction that is too short for one job in ten.",
        JOB | {"method": "least-cost", "underestimation_rate": 0.1},
    ),
    "elapsed": (
        "A job that has been running for 1,000 s.",
        JOB | {"method": "least-cost", "elapsed": 1000},
    ),
    "explain": (
        "The runs that weigh most are wanted too.",
        JOB | {"method": "least-cost", "explain": True},
    ),
}

BATCH: Examples = {
    "submissions": (
        "Two jobs, one of which runs already, and intervals that hold four in five.",
        {
            "method": "least-cost",
            "coverage": 0.8,
            "submissions": [JOB, JOB | {"elapsed": 1000}],
        },
    )
}

EXTENSION: Examples = {
    "submission": (
        "A job that has outlived its prediction, told with its submission.",
        {
            "requested_walltime": 7200,
            "predicted_walltime": 900,
            "elapsed": 2000,
            "submission": JOB,
        },
    ),
    "doubled": (
        "Nothing is told of the job: its prediction is doubled.",
        {"requested_walltime": 7200, "predicted_walltime": 900, "elapsed": 2000},
    ),
}


def shown(examples: Examples) -> dict[str, Any]:
    """What a route adds to the document so that it shows these bodies."""
    told = {name: {"summary": text, "value": body} for name, (text, body) in examples.items()}
    return {"requestBody": {"content": {"application/json": {"examples": told}}}}
