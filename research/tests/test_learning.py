"""Learning on synthetic logs: what examples know, and that PyTorch and the compiled code agree."""

import importlib

import numpy as np
import pytest
from attention_examples import Examples, Recipe, examples_of, read_log, together
from msgspec.structs import replace
from runs import HOUR, ended, submission

from predictors.methods.attention import Attention
from predictors.methods.attention_network import Weights


def log(jobs=300, seed=0):
    """Users with two scripts each, of which one runs for minutes and one for hours."""
    random = np.random.default_rng(seed)
    runs = []
    for place in range(jobs):
        script = int(random.integers(2))
        known = {
            "user": f"u{random.integers(5)}",
            "application": f"{script}",
            "requested_processors": 4,
        }
        runtime = float(random.uniform(0.9, 1.1) * (600.0, 3 * HOUR)[script])
        runs.append(ended(100.0 * place + runtime, runtime, request=10 * HOUR, **known))
    return runs


def test_examples_see_only_runs_that_had_ended():
    """Two jobs submitted together do not know one another; a third knows both."""
    runs = [ended(submit + 600.0, 600.0, job_id=str(submit)) for submit in (0, 0, 700)]
    examples = examples_of(runs, jobs=10, seed=0)
    assert len(examples) == 1
    assert examples.counts.tolist() == [3]  # two runs and the request
    assert examples.before[0].sum() == 0
    assert examples.after[0].sum() == HOUR - 600


def change_request(run, seconds):
    asked = replace(run.submission, requested_walltime=seconds)
    return replace(run, submission=asked, runtime=min(run.runtime, seconds))


def test_the_seconds_between_atoms_are_split_at_the_runtime():
    runs = log(40)
    examples = examples_of(runs, jobs=40, seed=0)
    spans = examples.before.sum(axis=1) + examples.after.sum(axis=1)
    assert (spans > 0).any()
    assert (spans <= 10 * HOUR).all()
    assert np.isfinite(examples.features.astype(float)).all()


def test_the_unit_of_losses_is_the_mean_request_of_the_drawn_jobs():
    short = [change_request(run, HOUR) for run in log(20)]
    examples = examples_of([*short, *log(60)[20:]], jobs=60, seed=0)
    assert examples.units == pytest.approx(7 * HOUR)  # a third of an hour's jobs, else ten


def test_examples_are_drawn_by_the_seed_and_survive_a_file(tmp_path):
    runs = log()
    examples = examples_of(runs, jobs=50, seed=1)
    assert np.array_equal(examples_of(runs, jobs=50, seed=1).features, examples.features)
    assert not np.array_equal(examples_of(runs, jobs=50, seed=2).context, examples.context)
    examples.save(tmp_path)
    assert np.array_equal(Examples.load(tmp_path).features, examples.features)
    assert len(together([examples, examples])) == 2 * len(examples)


def test_a_log_says_whom_to_thank(tmp_path):
    path = tmp_path / "Site-2020.swf"
    job = "{} {} 0 60 1 -1 -1 1 600 -1 1 7 1 1 1 1 -1 -1"
    lines = ["; Acknowledge: Ada", "; Installation: A site", job.format(1, 0), job.format(2, 9)]
    path.write_text("\n".join(lines) + "\n")
    assert read_log(str(path)).described() == {
        "name": "Site-2020",
        "jobs": 2,
        "acknowledgement": "Ada",
        "source": "A site",
    }


@pytest.fixture
def learning():
    """The script that learns."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    return importlib.import_module("learn_attention")


def test_learning_lowers_the_loss_and_is_the_same_for_the_same_seed(learning):
    examples = examples_of(log(), jobs=300, seed=0)
    recipe = Recipe(passes=30, batch=64, units=(8, 8), teachers=0)
    losses = []
    weights = learning.learn(examples, recipe, origin={"logs": []}, progress=losses.append)
    again = learning.learn(examples, recipe)
    assert len(losses) == learning.steps_of(len(examples), recipe)
    assert sum(losses[-8:]) < 0.6 * sum(losses[:8])
    assert all(np.array_equal(*pair) for pair in zip(weights.layers, again.layers, strict=True))
    assert Weights.from_bytes(weights.to_bytes()).origin["recipe"]["seed"] == recipe.seed
    assert (weights.kernel_share, weights.tail_runs) == (recipe.by_hand, recipe.unseen)


def test_distance_is_the_squared_difference_of_shares_over_the_seconds_that_it_lasts(learning):
    """10 s at a half instead of a quarter, 20 s as the teachers say; the unit is 5 s."""
    torch = learning.torch

    class JobEstimates:
        def below(self, _):
            return torch.tensor([[0.5, 0.75]])

    batch = {
        "before": torch.tensor([[10.0, 5.0]]),
        "after": torch.tensor([[0.0, 15.0]]),
        "targets": torch.tensor([[0.25, 0.75]]),
        "units": torch.tensor([5.0]),
    }
    assert learning.distance(JobEstimates(), batch).item() == pytest.approx(10 * 0.25**2 / 5)


def test_a_small_network_comes_near_to_what_its_teachers_say_together(learning):
    examples = examples_of(log(), jobs=300, seed=0)
    recipe = Recipe(
        passes=60, batch=64, units=(6, 5), teachers=2, teacher_units=(8, 8), teacher_passes=20
    )
    losses = []
    weights = learning.learn(examples, recipe, progress=losses.append)
    again = learning.learn(examples, recipe)
    assert len(losses) == learning.steps_of(len(examples), recipe)
    steps = max(1, len(examples) // recipe.batch)
    distances = losses[2 * 20 * steps :]
    assert sum(distances[-8:]) < 0.2 * sum(distances[:8])
    assert len(weights.layers[2]) == 6
    assert all(np.array_equal(*pair) for pair in zip(weights.layers, again.layers, strict=True))


def test_teachers_are_heard_with_equal_weight(learning):
    """Two that put all weight on the first of two atoms, or half of it: three quarters together."""
    torch = learning.torch

    class Says:
        def __init__(self, share):
            self.share = share

        def below(self, batch):
            return torch.full((len(batch["counts"]), 1), self.share)

    found = learning.soft_targets(
        [Says(1.0), Says(0.5)], {"counts": torch.tensor([2, 2, 2])}, batch=2
    )
    assert found.tolist() == [[0.75], [0.75], [0.75]]


def test_what_was_learned_tells_the_two_scripts_apart(learning):
    examples = examples_of(log(), jobs=300, seed=0)
    attention = Attention(
        price=0.3,
        weights=learning.learn(
            examples, Recipe(passes=60, batch=64, teachers=2, teacher_passes=30)
        ),
    )
    for run in log(seed=5):
        attention.observe(run)
    for application, seconds in (("0", 600.0), ("1", 3 * HOUR)):
        known = {"user": "u1", "application": application, "requested_processors": 4}
        job = submission(request=10 * HOUR, **known)
        assert attention.predict(job).predicted_walltime == pytest.approx(seconds, rel=0.2)
