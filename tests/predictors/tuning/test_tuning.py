"""Tuning: its fast evaluation is what knn itself would do, and its searches find what is there."""

import random
from pathlib import Path

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from papers.xu.exhaustive import exhaustive, templates
from predictors.jobs import Completion, Submission
from predictors.memory.job_table import TEMPLATE_ATTRIBUTES
from predictors.methods.knn import Knn, KnnParameters
from predictors.tuning.adoption import Adopted
from predictors.tuning.batch import Errors, batch_of
from predictors.tuning.genetic import GENES, IMPROVEMENT, PATIENCE, decode, genetic
from predictors.tuning.knn_tunable import tune
from predictors.tuning.plan import FEWEST_JOBS, GENERATIONS, TooShortHistoryError, TuningPlan
from simulator.traces.completions import usable_runs

TRACES = Path(__file__).parents[4] / "shared/traces"


def up_to_the_request(submission, chance):
    return chance.randrange(1, int(submission.requested_walltime))


def by_application(submission, chance):
    seconds = {"a": 60, "b": 1800, "c": 5000}[submission.application] + chance.randrange(9)
    return min(submission.requested_walltime, seconds)


def anything(_submission, chance):
    """Zero is possible, and so is a multiple of the request."""
    return chance.randrange(0, 9000)


def history(jobs, *, seed=1, missing=(), runtime=up_to_the_request):
    """Completions in order of their end, of jobs that repeat and overlap."""
    chance = random.Random(seed)
    made = []
    now = 0.0
    for number in range(jobs):
        now += chance.randrange(0, 120)
        known = {
            "user": f"u{chance.randrange(6)}",
            "group": f"g{chance.randrange(3)}",
            "queue": chance.choice(("short", "long", None)),
            "application": chance.choice("abc"),
            "requested_processors": chance.choice((1, 4, 16, 64, None)),
            "requested_memory": chance.choice((None, 512.0, 2048.0)),
        }
        submission = Submission(
            job_id=str(number),
            requested_walltime=chance.choice((600.0, 3600.0, 7200.0)),
            submit_time=now,
            **{name: value for name, value in known.items() if name not in missing},
        )
        seconds = float(runtime(submission, chance))
        end = now + chance.randrange(0, 900) + seconds
        made.append(
            Completion(
                submission=submission, start_time=end - seconds, end_time=end, runtime=seconds
            )
        )
    return sorted(made, key=lambda completion: completion.end_time)


def replayed(completions, trials, parameters):
    """What the real predictor answers, told of every completion at its end."""
    knn = Knn().retuned(parameters)
    waiting = list(completions)
    answers = {}
    for trial in sorted(trials, key=lambda one: one.submission.submit_time):
        while waiting and waiting[0].end_time <= trial.submission.submit_time:
            knn.observe(waiting.pop(0))
        answers[trial.submission.job_id] = knn.predict(trial.submission).predicted_walltime
    return np.array([answers[trial.submission.job_id] for trial in trials])


parameter_sets = st.builds(
    KnnParameters,
    template=st.lists(st.sampled_from(TEMPLATE_ATTRIBUTES), unique=True).map(tuple),
    history=st.integers(1, 400),
    neighbours=st.integers(1, 50),
    alpha=st.floats(-1, 3),
    beta=st.floats(0, 1),
    scaling=st.just(150),
)


@pytest.mark.parametrize("missing", [(), ("application", "requested_memory"), TEMPLATE_ATTRIBUTES])
def test_fitness_is_that_of_the_real_predictor(missing):
    completions = history(500, missing=missing, runtime=anything)
    trials = completions[300:]
    batch = batch_of(
        completions, trials, longest_history=400, unsearched=KnnParameters(scaling=150)
    )
    runtimes = np.array([trial.runtime for trial in trials])

    @examples(40)
    @given(parameter_sets)
    def check(parameters):
        expected = replayed(completions, trials, parameters)
        errors = batch.errors(parameters)
        mae = float(np.abs(expected - runtimes).mean())
        assert errors.mean_absolute_error == pytest.approx(mae, rel=1e-9)
        assert errors.underestimation_rate == float((expected < runtimes).mean())
        assert batch.predictions(parameters) == pytest.approx(expected, rel=1e-12)

    check()


def test_some_of_the_trial_jobs_are_a_batch_of_their_own():
    completions = history(400)
    whole = batch_of(completions, completions[200:])
    part = batch_of(completions, completions[300:350])
    parameters = KnnParameters(template=("user",), history=90, neighbours=7, beta=0.1)
    assert whole.select(slice(100, 150)).errors(parameters) == part.errors(parameters)
    assert len(whole.select(slice(100, 150))) == 50


def test_cost_prices_underestimated_jobs():
    errors = Errors(mean_absolute_error=100.0, underestimation_rate=0.5)
    assert errors.cost(0.0) == 100.0
    assert errors.cost(4.0) == 300.0


def test_the_searches_make_small_what_the_plan_wants():
    completions = history(600)
    batch = batch_of(completions, completions[300:])
    for search in (exhaustive, genetic):
        found = search(batch, TuningPlan(penalty=2.0, generations=5))
        assert found.cost == pytest.approx(batch.errors(found.parameters).cost(2.0))


def test_population_and_generations_say_how_many_sets_are_tried():
    completions = history(400)
    batch = batch_of(completions, completions[300:])
    found = genetic(batch, TuningPlan(population=12, generations=3))
    assert (len(found.costs), found.evaluations) == (3, 36)


@pytest.mark.parametrize("search", [exhaustive, genetic])
def test_a_search_finds_the_attribute_that_decides(search):
    completions = history(900, runtime=by_application)
    batch = batch_of(completions, completions[500:])
    found = search(batch, TuningPlan(penalty=0.0))
    assert "application" in found.parameters.template
    assert found.cost == pytest.approx(batch.errors(found.parameters).cost(0.0), rel=1e-9)
    assert found.cost < 0.5 * batch.errors(KnnParameters()).cost(0.0)
    assert list(found.costs) == sorted(found.costs, reverse=True)
    assert found.costs[-1] == found.cost


def test_a_higher_penalty_underestimates_fewer_jobs():
    completions = history(600)
    batch = batch_of(completions, completions[300:])
    shares = [
        batch.errors(exhaustive(batch, TuningPlan(penalty=penalty)).parameters).underestimation_rate
        for penalty in (0, 4, 40)
    ]
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] < shares[0] - 0.1


@pytest.mark.parametrize("search", [exhaustive, genetic])
def test_an_attribute_that_no_job_has_is_never_in_the_template(search):
    completions = history(500, missing=("group", "application"))
    batch = batch_of(completions, completions[300:])
    assert set(search(batch, TuningPlan()).parameters.template) <= {"user", "queue"}
    assert templates(batch) == [(), ("user",), ("queue",), ("user", "queue")]


def global_random_states():
    return random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002 - must not change


def test_the_genetic_search_is_seeded_and_touches_no_other_random_numbers():
    completions = history(400)
    batch = batch_of(completions, completions[200:])
    states = global_random_states()
    runs = [genetic(batch, TuningPlan(seed=seed, generations=8)) for seed in (3, 3, 4)]
    assert runs[0] == runs[1]
    assert runs[0].costs != runs[2].costs
    assert states == global_random_states()


def test_the_genetic_search_ends_after_its_generations_or_when_it_has_converged():
    completions = history(400)
    batch = batch_of(completions, completions[300:])
    assert len(genetic(batch, TuningPlan(generations=7)).costs) == 7
    steps = []
    found = genetic(batch, TuningPlan(), report=steps.append)
    assert PATIENCE < len(found.costs) < GENERATIONS
    assert found.costs[-1] > (1 - IMPROVEMENT) * found.costs[-1 - PATIENCE]
    assert [step.cost for step in steps] == list(found.costs)
    assert steps[-1].parameters == found.parameters
    assert steps[-1].steps == GENERATIONS


@pytest.mark.traces
@pytest.mark.skipif(not TRACES.exists(), reason=f"the real traces are not in {TRACES}")
@pytest.mark.parametrize(
    "name",
    [
        "ALCF-Theta-2023",
        "CERIT-SC-wagap-2013",
        pytest.param("Graham-2021-pending-noon", marks=pytest.mark.long),
        pytest.param("HPC2N-2002-2.2-cln", marks=pytest.mark.long),
        pytest.param("SDSC-DS-2004-2.1-cln", marks=pytest.mark.long),
        "SDSC-SP2-1998-4.2-cln",
    ],
)
def test_on_real_logs_the_genetic_search_costs_at_most_a_hundredth_more_than_the_exhaustive(name):
    runs = sorted(usable_runs(TRACES / f"{name}.swf.gz", 6_000), key=lambda run: run.end_time)
    batch = batch_of(runs, runs[2_000:])
    oracle = exhaustive(batch, TuningPlan())
    assert genetic(batch, TuningPlan()).cost <= 1.01 * oracle.cost


def test_genomes_reach_the_ends_of_the_space():
    completions = history(300)
    batch = batch_of(completions, completions[200:], longest_history=250)
    least, most = decode(np.zeros(GENES), batch), decode(np.ones(GENES), batch)
    assert least == replace(least, template=(), history=10, neighbours=1, alpha=-1.0, beta=0.0)
    assert most == replace(
        most, template=TEMPLATE_ATTRIBUTES, history=250, neighbours=50, alpha=3.0, beta=1.0
    )


def test_a_round_adopts_what_wins_on_the_test_jobs_only():
    completions = history(1500, runtime=by_application)
    plan = TuningPlan(history=500, training=600, test=400)
    done, _, held = tune(completions, Adopted(now=KnnParameters()), plan)
    assert done.adopted
    assert held.now == done.after.parameters
    assert done.after.test.cost(plan.penalty) < done.before.test.cost(plan.penalty)
    assert (done.training_jobs, done.test_jobs) == (600, 400)
    again, _, same = tune(completions, held, plan)
    assert not again.adopted
    assert same == held


def test_a_round_refuses_what_only_fits_the_training_jobs():
    """The workload changes between training and test: the search is misled, the test is not."""
    early = history(1100, runtime=lambda submission, _: submission.requested_walltime / 2)
    late = [later(one, early[-1].end_time) for one in history(400, runtime=by_application)]
    in_force = KnnParameters(template=("application",), history=100, neighbours=2)
    done, _, held = tune(
        early + late, Adopted(now=in_force), TuningPlan(history=300, training=800, test=400)
    )
    assert done.after.training.cost(1.0) < done.before.training.cost(1.0)
    assert done.after.test.cost(1.0) > done.before.test.cost(1.0)
    assert not done.adopted
    assert held.now == in_force


def later(completion, seconds):
    submission = completion.submission
    return replace(
        completion,
        submission=replace(submission, submit_time=submission.submit_time + seconds),
        start_time=completion.start_time + seconds,
        end_time=completion.end_time + seconds,
    )


def test_a_short_history_is_divided_in_proportion_and_a_tiny_one_refused():
    plan = TuningPlan(history=5000, training=5000, test=2000)
    assert plan.divide(12_000) == (5000, 10_000)
    assert plan.divide(1200) == (500, 1000)
    with pytest.raises(TooShortHistoryError, match="needs 1000 completions, there are 12"):
        tune(history(12), Adopted(now=KnnParameters()), plan)
    assert FEWEST_JOBS == 1000
