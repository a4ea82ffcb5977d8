"""What a round may be asked to look at, to the ends of each number, and what it does by default."""

import pytest

from predictors.tuning.plan import TooShortHistoryError, TuningPlan

BOUNDS = {
    "history": (0, 100_000, 1),
    "training": (100, 100_000, 1),
    "test": (100, 100_000, 1),
    "penalty": (0, 1_000, 0.001),
    "generations": (1, 10_000, 1),
    "population": (2, 10_000, 1),
    "seed": (0, 4_294_967_295, 1),
    "errors": (0, 100, 0.001),
}
"""The least value, the greatest, and how far beyond it is refused."""


@pytest.mark.parametrize("name", BOUNDS)
def test_a_number_of_a_plan_is_taken_to_its_bounds_and_no_further(name):
    least, most, step = BOUNDS[name]
    for value in (least, most):
        assert getattr(TuningPlan(**{name: value}), name) == value
    for value in (least - step, most + step, float("nan"), "1"):
        with pytest.raises(ValueError, match=name):
            TuningPlan(**{name: value})


@pytest.mark.parametrize("wrong", [{"subjects": ("x",)}])
def test_a_name_that_a_plan_does_not_know_is_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        TuningPlan(**wrong)


def test_a_plan_looks_at_27_000_jobs_by_default_and_needs_a_thousand():
    plan = TuningPlan()
    assert (plan.history, plan.training, plan.test) == (5_000, 20_000, 2_000)
    assert (plan.jobs, plan.fewest_jobs) == (27_000, 1_000)
    assert (plan.penalty, plan.errors, plan.seed) == (1.0, 1.65, 0)
    assert (plan.generations, plan.population) == (100, 50)
    assert plan.divide(27_000) == plan.divide(27_000) == (5_000, 25_000)
    assert plan.divide(30_000) == (8_000, 28_000)
    plan.check(1_000)
    with pytest.raises(TooShortHistoryError, match="there are 999"):
        plan.check(999)


def test_a_small_plan_needs_its_own_jobs_alone():
    assert TuningPlan(history=0, training=100, test=100).fewest_jobs == 200
