"""Rounds in a simulation look at as many runs as those of a service."""

import numpy as np
from msgspec.structs import replace

from predictors.jobs import Completion, Submission
from predictors.methods.attention import Attention
from predictors.methods.attention_weights import NOTHING_LEARNED
from predictors.tuning import simulated
from predictors.tuning.plan import FEWEST_JOBS, TuningPlan
from predictors.tuning.simulated import SimulatedRounds
from predictors.tuning.verdict import NO_CASES


def test_a_round_looks_at_the_learned_runs_and_at_the_test_runs_after_them():
    plan = TuningPlan(learned=600, test=100)
    rounds = SimulatedRounds(
        Attention(), first="least-cost", prices=(1.0,), plan=plan, every=FEWEST_JOBS
    )
    for number in range(800):
        end = 1000.0 * number
        job = Submission(requested_walltime=60.0, submit_time=end - 20.0, user="ada")
        run = Completion(submission=job, start_time=end - 10.0, end_time=end, runtime=10.0)
        said = {name: np.array([10.0]) for name in ("attention", "least-cost")}
        rounds.observe(run, said)
    older, later = rounds._stretch.divided(plan.test)
    assert [len(older), len(later)] == [600, 100]
    assert later[-1].end == 799_000.0


def rounds_of(runs, *, every):
    """Rounds of runs of 10 s: attention is right at a price of 0, least-cost at a price of 1."""
    attention = Attention(weights=NOTHING_LEARNED)
    rounds = SimulatedRounds(
        attention,
        first="least-cost",
        prices=(0.0, 1.0),
        plan=TuningPlan(learned=100, test=100),
        every=every,
    )
    right, wrong = {"attention": [10.0, 50.0]}, {"least-cost": [50.0, 10.0]}
    said = {name: np.array(each) for name, each in (right | wrong).items()}
    for number in range(runs):
        end = 1000.0 * number
        job = Submission(requested_walltime=60.0, submit_time=end - 20.0, user=f"u{number % 9}")
        run = Completion(submission=job, start_time=end - 10.0, end_time=end, runtime=10.0)
        rounds.observe(run, said)
    return rounds, attention


def test_rounds_are_held_as_often_as_asked_once_there_are_enough_runs(monkeypatch):
    monkeypatch.setattr(simulated, "FEWEST_JOBS", 45)
    rounds, attention = rounds_of(90, every=20)
    assert [ended for ended, _ in rounds.changes] == [45] * 4 + [65] * 4 + [85] * 4
    first_round = [(change.subject, change.action) for _, change in rounds.changes[:4]]
    assert first_round == [
        ("attention", "kept"),
        ("auto", "adopted"),
        ("attention", "kept"),
        ("auto", "kept"),
    ]
    assert rounds.methods == ["attention", "least-cost"]
    assert [each.price for each in rounds.attentions] == [0.0, 1.0]
    assert all(each.weights is attention.weights for each in rounds.attentions)
    assert rounds_of(44, every=20)[0].changes == []
    assert rounds_of(44, every=20)[0].methods == ["least-cost", "least-cost"]


def test_without_rounds_attention_observes_and_nothing_is_changed(monkeypatch):
    monkeypatch.setattr(simulated, "FEWEST_JOBS", 40)
    rounds, attention = rounds_of(60, every=0)
    job = Submission(requested_walltime=60.0, submit_time=1e6, user="u1")
    assert rounds.changes == []
    assert attention.predict(job).basis.jobs > 0


def test_new_weights_that_win_at_a_price_are_in_force_there_at_once(monkeypatch):
    """Attention with them answers from the runs that it has observed, and is asked again."""
    better, judged = replace(NOTHING_LEARNED, unseen=3.0), []

    def settled(subject, held, older, later):
        judged.append((subject.name, len(older), len(later), [*later][-1].said["attention"][1]))
        wins = subject.name == "attention" and len(judged) > 2
        return subject.name, replace(held, now=better) if wins else held

    monkeypatch.setattr(simulated, "settle", settled)
    monkeypatch.setattr(simulated, "FEWEST_JOBS", 40)
    rounds, _ = rounds_of(40, every=20)
    weights = [each.weights for each in rounds.attentions]
    assert [each is better for each in weights] == [False, True]
    assert [each[:3] for each in judged] == [("attention", 30, 10), ("auto", 30, 10)] * 2
    assert [each[3] == 50.0 for each in judged] == [True, True, True, False]
    job = Submission(requested_walltime=60.0, submit_time=1e6, user="u1")
    assert all(each.predict(job).basis.jobs > 0 for each in rounds.attentions)


def test_sites_with_the_same_weights_make_one_proposal_and_judge_it_by_their_own_prices(
    monkeypatch,
):
    better, made, judged = replace(NOTHING_LEARNED, unseen=3.0), [], []

    def propose(_, now, older):
        made.append((now, len(older)))
        return better

    def judge(subject, old, new, later):
        judged.append((subject._price, old, new, len(later)))
        return NO_CASES

    monkeypatch.setattr(simulated.AttentionWeights, "propose", propose)
    monkeypatch.setattr(simulated.AttentionWeights, "judge", judge)
    monkeypatch.setattr(simulated, "FEWEST_JOBS", 40)
    rounds_of(40, every=20)
    assert made == [(NOTHING_LEARNED, 30)]
    assert judged == [
        (0.0, NOTHING_LEARNED, better, 10),
        (1.0, NOTHING_LEARNED, better, 10),
    ]
