"""What rounds have adopted is what a process answers by."""

import pytest
from runs import a_run

from predictors.methods.attention_weights import NOTHING_LEARNED, shipped
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


def test_parameters_of_knn_that_do_not_fit_keep_nothing_else_from_being_in_force(live, capsys):
    too_long = Held(now=KnnParameters(history=50_000))
    adopted = standing(
        knn=too_long,
        attention=Held(now=NOTHING_LEARNED),
        price=Held(now=3.0),
        auto=Held(now="least-cost"),
    )
    for _ in range(3):  # as a worker looks once a second
        live.retune({CLUSTER: adopted})
    state = live.of(CLUSTER)
    assert state.predictors["attention"].weights is NOTHING_LEARNED
    assert prices(live) == [3.0, 3.0]
    assert state.resolved("auto") == "least-cost"
    assert state.predictors["knn"].given == KnnParameters()
    assert capsys.readouterr().out.count("does not fit") == 1
