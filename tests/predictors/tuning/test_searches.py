"""What the searches try, choose and say of it, with batches and costs made by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from runs import ended

from papers.xu.exhaustive import Survey, exhaustive, survey
from predictors.memory.job_table import TEMPLATE_ATTRIBUTES, UNKNOWN
from predictors.methods.knn import KnnParameters
from predictors.tuning import genetic as evolution
from predictors.tuning.batch import batch_of, usable_columns
from predictors.tuning.genetic import GENES, converged, decode
from predictors.tuning.plan import TuningPlan

UNSEARCHED = KnnParameters(scaling=700)


def test_the_genetic_search_ends_after_20_generations_that_gain_less_than_a_thousandth():
    assert (evolution.PATIENCE, evolution.IMPROVEMENT) == (20, 1e-3)
    assert not converged([])
    assert not converged([100.0] * 20)
    assert converged([100.0] * 21)
    assert converged([100.0, *[99.95] * 20])
    assert not converged([100.0, *[99.85] * 20])
    assert converged([500.0, 100.0, *[99.95] * 20])
    assert not converged([100.0, *[99.95] * 19])


def survey_of(cheapest):
    """A survey of 24 sets for each of two histories, one of which is the cheapest."""
    shape = (2, 6, 4, 6)
    errors, shares = np.full(shape, 100.0), np.full(shape, 0.5)
    errors[cheapest] = 60.0
    return Survey(template=("user",), histories=[500, 2000], errors=errors, shares=shares)


@pytest.mark.parametrize(
    ("place", "expected"),
    [((0, 0, 0, 0), (500, 2, 0.0, 0.0)), ((1, 3, 2, 4), (2000, 8, 1.0, 0.2))],
)
def test_the_best_set_of_a_survey_is_told_by_its_parameters_and_its_cost(place, expected):
    best = survey_of(place).best(TuningPlan(penalty=2.0), UNSEARCHED)
    found = best.parameters
    assert (found.history, found.neighbours, found.alpha, found.beta) == expected
    assert (found.template, best.cost) == (("user",), 60.0 * 2)
    assert found.scaling == 700


def test_the_exhaustive_search_surveys_every_template_and_tells_the_best_so_far():
    """Four templates cost 90, 60, 80 and 60; the first of the two cheapest is found."""
    batch = SimpleNamespace(usable_attributes=("user", "group"), unsearched=UNSEARCHED)
    costs = {(): 90.0, ("user",): 60.0, ("group",): 80.0, ("user", "group"): 60.0}
    told = []

    def surveyor(asked, template):
        assert asked is batch
        errors = np.full((1, 6, 4, 6), costs[template])
        return Survey(template=template, histories=[500], errors=errors, shares=0 * errors)

    found = exhaustive(batch, TuningPlan(), report=told.append, surveyor=surveyor)
    assert found.parameters.template == ("user",)
    assert (found.cost, found.costs) == (60.0, (90.0, 60.0, 60.0, 60.0))
    assert found.evaluations == 4 * 6 * 4 * 6
    assert [(each.step, each.steps, each.cost) for each in told] == [
        (1, 4, 90.0),
        (2, 4, 60.0),
        (3, 4, 60.0),
        (4, 4, 60.0),
    ]
    assert told[0].parameters.template == ()


def runs(count=30):
    """Runs of a quarter of an hour; a third of them of nobody known."""
    return [
        ended(1e4 * place + 900.0, 900.0 + place, user=(None, "ada", "bob")[place % 3])
        for place in range(count)
    ]


@pytest.mark.parametrize(
    ("longest", "expected"), [(500, [500]), (1999, [500]), (2000, [500, 2000])]
)
def test_no_longer_history_is_surveyed_than_the_batch_knows(longest, expected):
    log = runs()
    found = survey(batch_of(log, log[20:], longest_history=longest), ("user",))
    assert found.histories == expected
    assert found.errors.shape == found.shares.shape == (len(expected), 6, 4, 6)
    assert (found.template, np.isfinite(found.errors).all()) == (("user",), True)


def test_a_batch_tells_of_its_jobs():
    log = runs()
    batch = batch_of(log, log[20:])
    assert batch.users.tolist() == ["bob", "", "ada", "bob", "", "ada", "bob", "", "ada", "bob"]
    assert batch.ends.tolist() == [run.end_time for run in log[20:]]
    assert batch.runtimes.tolist() == [920.0 + place for place in range(10)]
    assert batch.requests.tolist() == [3600.0] * 10
    assert batch.usable_attributes == ("user",)
    some = batch.select(slice(3, 5))
    assert (some.users.tolist(), some.ends.tolist()) == (["bob", ""], [23e4 + 900, 24e4 + 900])
    assert (some.runtimes.tolist(), len(some)) == ([923.0, 924.0], 2)


def test_an_attribute_is_of_use_if_any_job_has_it():
    ids = np.full((3, len(TEMPLATE_ATTRIBUTES)), UNKNOWN)
    assert usable_columns(ids) == []
    ids[1, 2], ids[0, 0], ids[2, 0] = 0, 5, 7
    assert usable_columns(ids) == [0, 2]


def test_a_genome_half_way_is_half_way_in_each_parameter():
    """By logarithms for N, from 10 to 250, and for K, from 1 to 50; a bit is set from 1/2 on."""
    batch = SimpleNamespace(
        usable_attributes=TEMPLATE_ATTRIBUTES, unsearched=UNSEARCHED, longest_history=250
    )
    genome = np.full(GENES, 0.5)
    genome[1] = 0.49
    found = decode(genome, batch)
    expected = tuple(name for name in TEMPLATE_ATTRIBUTES if name != TEMPLATE_ATTRIBUTES[1])
    assert found.template == expected
    assert (found.history, found.neighbours, found.alpha, found.beta) == (50, 7, 1.0, 0.5)
    assert found.scaling == 700
