"""What the shell offers at a TAB: commands, options, and the values of options."""

import os
import subprocess

import pytest
from running_service import WALLTIMED

from predictors.registry import METHODS
from service.adapters.history_files import READERS
from simulator.cli import options as values
from simulator.engine.machine import CORRECTION_NUMBERS
from simulator.engine.policies import POLICIES
from simulator.engine.policies.conservative import COMPRESSIONS
from simulator.engine.policies.pinning import PINNED
from simulator.engine.queue_orders import ORDERS
from simulator.scheduling.semantics import EVENT_ORDERS, HAND_OVERS, PROFILES, TWINS
from simulator.scheduling.workload import OVERRUNS
from terminal import options as shared

pytestmark = pytest.mark.cold


def offered(line: str) -> set[str]:
    """What bash is told after ``line``."""
    done = subprocess.run(
        [WALLTIMED],
        env=os.environ
        | {
            "_WALLTIMED_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(line.count(" ")),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("named", "owned"),
    [
        (values.METHODS, METHODS),
        (values.POLICIES, POLICIES),
        (values.TWINS, TWINS),
        (values.ORDERS, ORDERS),
        (values.EVENTS, EVENT_ORDERS),
        (values.COMPRESSIONS, COMPRESSIONS),
        (values.PINNED, PINNED),
        (values.CORRECTIONS, CORRECTION_NUMBERS),
        (values.ADJUSTMENTS, {**PROFILES, **HAND_OVERS}),
        (values.OVERRUNS, OVERRUNS),
        (shared.FORMATS, READERS),
    ],
)
def test_what_is_offered_is_what_there_is(named, owned):
    assert set(named) == set(owned)


@pytest.mark.parametrize(
    ("line", "offers"),
    [
        ("walltimed simulate --policy ", {*values.POLICIES, *values.TWINS}),
        ("walltimed simulate --policy easy,con", {"easy,conservative"}),
        ("walltimed replay -m l", {"last-two", "least-cost"}),
        ("walltimed import --format s", {"swf", "sacct"}),
        ("walltimed token issue x --scope ", {"predict", "ingest", "read", "self", "admin"}),
    ],
)
def test_values_of_options_are_offered(line, offers):
    assert offered(line) == offers
