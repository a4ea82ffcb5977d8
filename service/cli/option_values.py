"""The values that options take, for shell completion, which has no time to import their owners."""

import re
from collections.abc import Callable
from importlib.resources import files

METHODS = (
    *re.findall(
        r'^    "([a-z-]+)": ', (files("predictors") / "registry.py").read_text(), re.MULTILINE
    ),
    "auto",
)
"""The names in the registry, read as text: importing it would load the compiler."""

POLICIES = ("fcfs", "easy", "easy-sjbf", "conservative", "fcfs-pinned")
ORDERS = ("fcfs", "sjf", "wfp", "psp", "psp-aging")
EVENTS = ("batch", "sequential")
COMPRESSIONS = ("start-order", "keep", "replan")
PINNED = ("nodes", "start")
CORRECTIONS = ("double", "request", "tsafrir")
ADJUSTMENTS = ("regular", "selective", "guarded", "guarded-kept")
OVERRUNS = ("kill", "keep", "swap")
ESTIMATES = ("exact", "requested", "service", *(name for name in METHODS if name != "requested"))
FORMATS = ("swf", "sacct", "pbs", "htcondor")
SEARCHES = ("genetic", "exhaustive")
FITNESSES = ("product", "sum")
DISTANCES = ("euclidean", "manhattan")
SCOPES = ("predict", "ingest", "read", "self", "admin")

Completion = Callable[[str], list[str]]


def one_of(values: tuple[str, ...]) -> Completion:
    """Completes one of ``values``, or the last of a list with commas."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{value}" for value in values if value.startswith(last)]

    return complete
