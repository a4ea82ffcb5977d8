"""What rounds have adopted is what a process answers by."""

import gc
from weakref import ref

import numpy as np
import pytest
from msgspec import to_builtins
from msgspec.structs import replace
from runs import a_run

from predictors.auto import Auto
from predictors.base import USUAL, Memory
from predictors.jobs import LATEST_TIME
from predictors.limits import LimitHits
from predictors.memory.columns import PIT
from predictors.memory.error_ratios import ErrorRatios
from predictors.methods.attention import Attention
from predictors.methods.knn import KnnParameters
from predictors.tuning.adoption import Adopted
from predictors.tuning.cluster_round import ClusterParameters, ClusterRound
from service.metrics import Metrics
from service.settings import Settings
from service.worker.live_state import LATE_RUNS, LiveState
from service.worker.tuning_rounds import adoptions

CLUSTER = "default"


def standing(**adopted) -> ClusterParameters:
    """What is in force: what the settings say, but for what was adopted."""
    return ClusterParameters(**{"knn": Adopted(now=KnnParameters()), **adopted})


@pytest.fixture
def live() -> LiveState:
    """A process that knows one run."""
    state = LiveState(Settings(), Metrics())
    state.apply([a_run("1")])
    return state


def test_parameters_of_knn_that_do_not_fit_are_told_once_and_left_out(live, capsys):
    too_long = standing(knn=Adopted(now=KnnParameters(history=50_000)))
    for _ in range(3):  # as a worker looks once a second
        live.retune({CLUSTER: too_long})
    assert live.of(CLUSTER).predictors["knn"].given == KnnParameters()
    assert capsys.readouterr().out.count("does not fit") == 1


def test_forest_has_the_price_of_attention_as_auto_compares_them():
    state = LiveState(Settings(predictors={"attention": {"price": 3.0}}), Metrics())
    state.apply([a_run("1")])
    cluster = state.of(CLUSTER)
    assert cluster.predictors["forest"].parameters["price"] == 3.0
    assert cluster.choice["price"] == 3.0
    other = Settings(predictors={"attention": {"price": 3.0}, "forest": {"price": 1.0}})
    with pytest.raises(ValueError, match=r"predictors\.forest: price"):
        LiveState(other, Metrics())


def test_after_a_start_all_is_ranked_and_auto_answers_as_by_itself():
    runs = [a_run(str(n), start=1000.0 * n, runtime=60.0 + n * n % 977) for n in range(400)]
    state, alone = LiveState(Settings(), Metrics()), Attention()
    by_itself = Auto(every=0)
    for run in runs:
        alone.observe(run)
        by_itself.observe(run)
    state.remember(runs, (), {CLUSTER: standing()})
    state.rank_runs()
    cluster, job = state.of(CLUSTER), a_run("next", start=1e6).submission
    for name in ("least-cost", "attention"):
        ranks = cluster.predictors[name]._recent.columns[0][PIT, : len(runs)]
        assert not np.isnan(ranks).any(), f"a request would have to wait for {name}"
    assert cluster.ask("attention", job, USUAL) == alone.ask(job, USUAL)
    assert cluster.ask("auto", job, USUAL) == by_itself.ask(job, USUAL)
    known, strangers = by_itself.cluster_costs()
    assert cluster.choice["relative_costs"] == {
        name: round(cost, 4) for name, cost in known.items()
    }
    assert set(cluster.choice["relative_costs_without_runs"]) == set(strangers)


def test_a_start_asks_only_about_runs_of_which_it_is_remembered_how_they_ended(monkeypatch):
    """Of two clusters, of which one has more runs than are remembered."""
    monkeypatch.setattr(ErrorRatios, "memory", Memory(latest_jobs=5))
    settings = Settings(method="last-two")
    runs = [a_run(str(n), start=1000.0 * n, runtime=60.0 + n, cluster="long") for n in range(20)]
    runs += [a_run(str(n), start=1000.0 * n, runtime=60.0 + n, cluster="short") for n in range(3)]
    started, whole = LiveState(settings, Metrics()), LiveState(settings, Metrics())
    started.remember(runs, ())
    whole.apply(runs)
    for cluster, judged in (("long", 5), ("short", 3)):
        found, wanted = (list(each.of(cluster).error_ratios._ratios) for each in (started, whole))
        assert found == wanted[-5:]
        assert len(found) == judged


@pytest.mark.parametrize(("last_end", "expected"), [(1e9, 1e9), (LATEST_TIME, 2e9)])
def test_what_was_adopted_is_looked_at_again_in_spite_of_an_end_far_in_the_future(
    last_end, expected
):
    usual = standing()
    better = KnnParameters(neighbours=3)
    knn = Adopted(now=better, before=KnnParameters(), since=last_end)
    found = ClusterRound(knn=None, changes=[], in_force=replace(usual, knn=knn))
    (row,) = adoptions(found, usual, usual, now=2e9)
    assert (row.parameters, row.made_until) == (to_builtins(better), expected)


class Counting:
    """Keeps the names of the runs that it observes."""

    def __init__(self, **asked_for) -> None:
        self.memory = Memory(**asked_for)
        self.observed: list[str] = []

    def observe(self, completion) -> None:
        self.observed.append(completion.submission.job_id)


def test_at_a_start_a_method_learns_those_of_the_last_runs_that_it_asks_for():
    runs = [a_run(str(n), start=1000.0 * n, runtime=60.0) for n in range(6)]
    live = LiveState(Settings(), Metrics())
    live.apply(runs[:1])
    state = live.of(CLUSTER)
    of_users, last_two = Counting(jobs_per_user=1), Counting(latest_jobs=2)
    more = Counting(latest_jobs=9)
    state.predictors |= {"max-usage": of_users, "knn": last_two, "least-cost": more}
    live.remember(runs, ())
    assert last_two.observed == ["4", "5"]
    assert of_users.observed == more.observed == [run.submission.job_id for run in runs]


def six_runs(cluster: str = CLUSTER):
    return [a_run(str(n), start=1000.0 * n, runtime=60.0, cluster=cluster) for n in range(6)]


def test_a_window_is_learned_once(monkeypatch):
    """The last runs are 3, 4 and 5; run 0 is among them as its user had no later one."""
    for each in (ErrorRatios, LimitHits):
        monkeypatch.setattr(each, "memory", Memory(latest_jobs=3))
    live = LiveState(Settings(method="last-two"), Metrics())
    live.apply([a_run("first", start=-1e6)])
    state, window, runs = live.of(CLUSTER), Counting(window_seconds=1e9), six_runs()
    state.predictors |= {name: Counting() for name in state.predictors} | {"percentile": window}
    state.remember_window(runs[:3], [runs[0], *runs[3:]])
    assert window.observed == [run.submission.job_id for run in runs]


@pytest.mark.parametrize("with_older", [["a", "b", "c"], ["b"], ["a", "c"], ["c"], []])
def test_each_cluster_learns_the_older_part_that_is_its_own(with_older):
    """Of each of three clusters run 2 was read first, and 0 and 1 of some of them after that."""
    clusters = {name: six_runs(name)[:3] for name in "abc"}
    live = LiveState(Settings(max_clusters=3), Metrics())
    live.apply([a_run("first", start=-1e6, cluster=name) for name in clusters])
    windows = {}
    for name in clusters:
        windows[name] = Counting(window_seconds=1e9)
        live.of(name).predictors["percentile"] = windows[name]
    live.remember(
        [runs[2] for runs in clusters.values()],
        [run for name in with_older for run in clusters[name][:2]],
    )
    assert {name: window.observed for name, window in windows.items()} == {
        name: ["0", "1", "2"] if name in with_older else ["2"] for name in clusters
    }


def test_a_cluster_too_many_learns_nothing_and_keeps_no_other_from_it():
    """Of two clusters at most the third has an older part, which is nobody else's."""
    live = LiveState(Settings(max_clusters=2), Metrics())
    clusters = {name: six_runs(name) for name in "abc"}
    live.apply([*clusters["c"][:1], *clusters["a"][:1]])
    recent = [run for runs in clusters.values() for run in runs[3:]]
    older = [run for name in "bc" for run in clusters[name][1:3]]
    window = live.of("c").predictors["percentile"] = Counting(window_seconds=1e9)
    live.remember(recent, older)
    assert live.clusters == ["a", "c"]
    assert window.observed == ["1", "2", "3", "4", "5"]


def some_users(runs: int, begin: int = 0):
    """Runs of three users, a minute apart, each as long as the number of its minute says."""
    return [
        a_run(f"{n}", start=60.0 * n - n % 977, runtime=1.0 + n % 977, user=f"u{n % 3}")
        for n in range(begin, begin + runs)
    ]


def answers_of(state: LiveState):
    """What all methods answer to jobs that are submitted later."""
    cluster = state.of(CLUSTER)
    jobs = [a_run("next", start=1e6, user=f"u{n}").submission for n in range(4)]
    methods = {*cluster.predictors, "auto"}
    return [(name, cluster.ask(name, job, USUAL)) for name in sorted(methods) for job in jobs]


def test_late_runs_wait_for_a_fold_which_answers_as_if_all_had_come_in_time():
    runs = some_users(900)
    early, late = runs[:200] + runs[500:], runs[200:500]
    live, in_time, anew = (LiveState(Settings(), Metrics()) for _ in range(3))
    live.apply(early)
    before = answers_of(live)
    live.apply(late)
    assert (live.late, answers_of(live)) == (300, before)
    live.apply([runs[-1], *(replace(run, end_time=run.end_time + 1.0) for run in runs[-9:])])
    assert live.late == 300, "runs that hardly any other has overtaken count at once"
    in_time.apply(runs)
    anew.remember([*early, *late], ())
    live.adopt(anew)
    assert live.late == 0
    assert answers_of(live) == answers_of(in_time) != before


def test_a_run_that_few_others_have_overtaken_counts_at_once_as_if_it_had_come_in_time():
    runs = some_users(600)
    place = len(runs) - 1 - LATE_RUNS
    live, in_time = LiveState(Settings(), Metrics()), LiveState(Settings(), Metrics())
    live.apply([*runs[:place], *runs[place + 1 :]])
    before = answers_of(live)
    live.apply(runs[place : place + 1])
    in_time.apply(runs)
    assert answers_of(live) == answers_of(in_time) != before
    assert live.late == 0
    live.apply(runs[place - 1 : place])
    assert live.late == 1


def test_a_state_that_is_replaced_is_freed_at_once():
    """It has megabytes of rows, and what was there at a start is excluded from collections."""
    live, anew = LiveState(Settings(), Metrics()), LiveState(Settings(), Metrics())
    live.apply(some_users(300))
    answers_of(live)
    replaced = [ref(live.of(CLUSTER)), *map(ref, live.of(CLUSTER).predictors.values())]
    gc.disable()
    try:
        live.adopt(anew)
        assert [each() for each in replaced] == [None] * len(replaced)
    finally:
        gc.enable()


def test_at_a_start_the_last_runs_are_those_that_ended_last_whatever_came_last():
    runs = [a_run(str(n), start=1000.0 * n, runtime=60.0) for n in range(6)]
    live = LiveState(Settings(), Metrics())
    live.apply(runs[:1])
    last_two = Counting(latest_jobs=2)
    live.of(CLUSTER).predictors["knn"] = last_two
    live.remember([*runs[3:], *runs[:3]], ())
    assert last_two.observed == ["4", "5"]


def test_after_a_start_limits_are_foreseen_as_by_a_fold_of_the_log():
    runs = [
        a_run(str(n), start=10_000.0 * n, runtime=3600.0 if n % 3 else 60.0) for n in range(400)
    ]
    state, alone = LiveState(Settings(), Metrics()), LimitHits()
    for run in runs:
        alone.observe(run)
    state.remember(runs, (), {CLUSTER: standing()})
    state.rank_runs()
    job = a_run("next", start=1e8).submission
    found = state.of(CLUSTER).limit_risk(job)
    assert found == alone.of(job)
    assert found.probability > 0.3


def test_a_failure_of_limits_costs_no_prediction(live, monkeypatch, capsys):
    monkeypatch.setattr(LimitHits, "of", None)
    found = live.of(CLUSTER).limit_risk(a_run("2").submission)
    assert (found.probability, found.reason) == (None, "failure")
    assert "the probability of a hit could not be computed" in capsys.readouterr().out
