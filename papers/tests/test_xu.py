"""The study of tuning: what it plays is what knn would have said, round after round."""

from pathlib import Path

import numpy as np
import pytest
from workloads import synthetic

from papers.simulations import Simulation
from papers.study import Inputs, StudyError
from papers.xu import xu_schedules
from papers.xu.exhaustive import exhaustive
from papers.xu.retuning import (
    WINDOW,
    Retuning,
    best_window,
    names_of,
    parts_of,
    running_error,
    scored,
    tuned_predictions,
)
from papers.xu.xu_schedules import LogSimulation
from papers.xu.xu_study import properties_of
from predictors.methods.knn import Knn
from predictors.tuning.batch import batch_of
from predictors.tuning.plan import TuningPlan
from simulator.scheduling.semantics import Semantics
from simulator.traces.completions import usable_runs


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """``log(jobs)``: the runs of a generated log."""
    directory = tmp_path_factory.mktemp("generated")
    return lambda jobs: usable_runs(synthetic(directory / f"{jobs}.swf", jobs=jobs, seed=3))


def by_hand_as_published(runs, plan):
    """The last round before each submission, by the searches themselves; no round is refused."""
    ended = sorted(runs, key=lambda run: run.end_time)
    knn, told, predicted = Knn(), 0, {}
    for run in sorted(runs, key=lambda run: run.submission.submit_time):
        while told < len(ended) and ended[told].end_time <= run.submission.submit_time:
            knn.observe(ended[told])
            told += 1
            first = plan.history + plan.training
            if told >= first and (told - first) % plan.test == 0:
                batch = batch_of(ended[:told], ended[told - plan.training : told])
                knn = knn.retuned(exhaustive(batch, plan).parameters)
        predicted[run.submission.job_id] = knn.predict(run.submission).predicted_walltime
    return np.array([predicted[run.submission.job_id] for run in runs])


def test_as_published_every_round_is_used_until_the_next(log):
    runs = log(1500)
    plan = TuningPlan(history=300, training=300, test=250)
    retuning = Retuning(runs)
    assert len(retuning.rounds(plan)) == 4
    assert retuning.as_published(plan, exhaustive) == pytest.approx(
        by_hand_as_published(runs, plan), rel=1e-9
    )


def test_the_published_comparison_counts_windows_and_shares():
    actual = np.zeros(WINDOW + 2)
    predicted = np.zeros(WINDOW + 2)
    predicted[:2] = 5_000.0
    assert best_window(predicted, actual) == 1.0
    assert best_window(predicted[:10], actual[:10]) == 0.8
    running = running_error(predicted[:100], actual[:100])
    assert running == pytest.approx([5000, *(1e4 / jobs for jobs in range(2, 101))])


def test_a_log_is_scored_as_published_with_the_papers_number_beside(papers, tmp_path):
    file = tmp_path / "log.swf"
    synthetic(file, jobs=900, seed=2)
    small = [file, "--history", 200, "--training", 200, "--test", 200, "--generations", 2]
    small += ["--population", 4, "--processes", 1, "--limit", 800, "--wide"]
    code, printed, complaint = papers("xu", *small, "--figure", 2, "--table", 4)
    assert code == 0, complaint
    assert "knn, tuned (genetic)" in printed
    assert "(80.0%)" in printed
    assert "the first 800 jobs" in printed
    assert (tmp_path / "xu-figure-2.png").stat().st_size > 5_000
    rows = (tmp_path / "xu-figure-2.csv").read_text().splitlines()
    assert any(row.endswith(",0.8") and ',"1,000 s",' in row for row in rows)
    assert (tmp_path / "xu-table-4.csv").exists()


@pytest.fixture(scope="module")
def small_log(tmp_path_factory):
    file = tmp_path_factory.mktemp("logs") / "log.swf"
    synthetic(file, jobs=600, seed=2)
    return str(file)


def played(small_log, estimates, *, as_pyss):
    semantics = Semantics(policy="easy", events="sequential")
    run = Simulation(trace=small_log, semantics=semantics, estimates=estimates, limit=600)
    return xu_schedules.play(LogSimulation(run, as_pyss)).schedule


def test_predictions_in_the_log_take_work_away_and_predictions_beside_requests_do_not(small_log):
    requested = played(small_log, "requested", as_pyss=False).workload
    beside = played(small_log, "last-two", as_pyss=False).workload
    assert beside.runtime.tolist() == requested.runtime.tolist()
    in_the_log = played(small_log, "last-two", as_pyss=True).workload
    known = xu_schedules.predictions(small_log, None, 600, "last-two")
    expected = [
        min(np.ceil(run), np.ceil(known[job]))
        for job, run in zip(requested.trace.job, requested.trace.run, strict=True)
    ]
    assert in_the_log.runtime.tolist() == expected
    assert in_the_log.runtime.sum() < requested.runtime.sum()


def test_tuned_predictions_begin_with_the_first_round(log):
    runs = log(1200)
    plan = TuningPlan(history=300, training=300, test=250)
    predicted = tuned_predictions(runs, plan)
    scored = Retuning(runs).scored(plan)
    requested = np.array([run.submission.requested_walltime for run in runs])
    assert predicted[~scored].tolist() == requested[~scored].tolist()
    assert predicted[scored].mean() < requested[scored].mean()


def test_a_log_is_refused_of_which_hardly_a_job_comes_after_the_first_round(tmp_path):
    log = tmp_path / "at-once.swf"
    log.write_text("".join(f"{n} 0 0 9 1 -1 -1 1 9 -1 1 1 1 1 1 1 -1 -1\n" for n in range(1, 300)))
    plan = {"history": 100, "training": 100, "test": 100}
    [part] = parts_of(Inputs(paths=[log], limit=None, options=plan))
    with pytest.raises(StudyError, match="only 0 jobs are submitted after the first round"):
        scored(part)
    with pytest.raises(StudyError, match="history"):
        parts_of(Inputs(paths=[log], limit=None, options={"history": -1}))


def test_logs_are_told_apart_by_their_files_or_by_their_paths():
    assert list(names_of([Path("a/one.swf.gz"), Path("a/two.swf")]).values()) == ["one", "two"]
    same = [Path("a/log.swf"), Path("b/log.swf"), Path("c.2024.swf")]
    assert list(names_of(same).values()) == ["a/log.swf", "b/log.swf", "c"]


def test_an_unknown_user_is_not_counted_as_one(tmp_path):
    log = tmp_path / "log.swf"
    log.write_text(
        "".join(f"{n} {n} 0 9 1 -1 -1 1 9 -1 1 {user} 1 1 1 1 -1 -1\n"
                for n, user in enumerate((7, 8, -1), 1))
    )  # fmt: skip
    [part] = parts_of(Inputs(paths=[log], limit=None))
    assert properties_of(part).users == 2
