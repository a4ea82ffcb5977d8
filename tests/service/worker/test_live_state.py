"""What rounds have adopted is what a process answers by."""

import pytest
from runs import a_run

from predictors.methods.attention_weights import shipped
from predictors.methods.knn import KnnParameters
from predictors.tuning.adopting import Held
from predictors.tuning.cluster_round import Standing
from service.metrics import Metrics
from service.settings import Settings
from service.worker.live_state import LiveState

CLUSTER = "default"


def standing(**adopted) -> Standing:
    """What is in force: what the settings say, but for what was adopted."""
    usual = {
        "knn": Held(now=KnnParameters()),
        "attention": Held(now=shipped()),
        "price": Held(now=1.0),
        "auto": Held(now="attention"),
    }
    return Standing(**{**usual, **adopted})


@pytest.fixture
def live() -> LiveState:
    """A process that knows one run, and where least-cost has a price of its own."""
    state = LiveState(Settings(predictors={"least-cost": {"price": 2.0}}), Metrics())
    state.apply([a_run("1")])
    return state


def prices(live: LiveState) -> list[float]:
    methods = live.of(CLUSTER).predictors
    return [methods[name].parameters["price"] for name in ("attention", "least-cost")]


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        (Held(now=1.0), [1.0, 2.0]),
        (Held(now=1.0, before=3.0, since=5.0), [1.0, 1.0]),
        (Held(now=3.0, before=1.0, since=5.0), [3.0, 3.0]),
        (Held(now=3.0), [3.0, 3.0]),  # back in force, as a later price has lost
    ],
)
def test_the_price_that_is_in_force_is_answered_by(live, held, expected):
    live.retune({CLUSTER: standing(price=held)})
    assert prices(live) == expected
    live.retune({CLUSTER: standing()})
    assert prices(live) == [1.0, 2.0]
