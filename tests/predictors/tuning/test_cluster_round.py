"""What a round does about each subject of its plan, and what it puts in force."""

import pytest
from msgspec.structs import replace
from runs import ended

from predictors.methods.knn import KnnParameters
from predictors.tuning.adoption import Adopted
from predictors.tuning.cluster_round import ClusterParameters, tune_cluster
from predictors.tuning.plan import TooShortHistoryError, TuningPlan

IN_FORCE = ClusterParameters(
    knn=Adopted(now=KnnParameters(template=(), history=100, neighbours=1, beta=0.0))
)
SMALL = TuningPlan(history=100, training=200, test=100)


def log(count=400):
    """Two scripts in turn, of one and of fifty minutes."""
    return [
        ended(1e4 * place + seconds, seconds, user=f"u{place % 7}", application=application)
        for place in range(count)
        for seconds, application in [((60.0, "a"), (3000.0, "b"))[place % 2]]
    ]


def held(plan, in_force=IN_FORCE, runs=None, **told):
    """Return the result of a round."""
    return tune_cluster(log() if runs is None else runs, in_force, plan, **told)


def test_a_round_of_knn_alone_learns_no_forest():
    told = []
    done = held(replace(SMALL, subjects=("knn",)), report=told.append)
    assert told
    assert [change.subject for change in done.changes] == ["knn"]
    assert done.knn.adopted
    assert done.in_force.knn.now == done.knn.after.parameters
    assert "application" in done.in_force.knn.now.template
    assert done.in_force.knn.before == IN_FORCE.knn.now
    assert done.in_force.knn.since == log()[-1].end_time

    again = held(replace(SMALL, subjects=("knn",)), done.in_force)
    assert (again.knn.adopted, again.in_force) == (False, done.in_force)
    assert again.knn.review.cases == 0  # no run has ended since


def test_what_a_round_of_knn_drops_is_replaced_by_what_was_there_before():
    right = KnnParameters(template=("application",), history=100, neighbours=1, beta=0.0)
    lost = replace(IN_FORCE, knn=Adopted(now=IN_FORCE.knn.now, before=right, since=0.0))
    done = held(replace(SMALL, subjects=("knn",)), lost)
    assert (done.knn.dropped, done.knn.adopted) == (True, False)
    assert done.in_force.knn == Adopted(now=right)


def test_too_few_runs_are_refused_before_anything_is_done():
    with pytest.raises(TooShortHistoryError):
        held(replace(SMALL, subjects=("forest",)), runs=log(399))


def test_every_subject_of_a_plan_has_a_change_and_too_few_runs_teach_no_forest():
    done = held(SMALL)
    assert [(change.subject, change.action) for change in done.changes] == [
        ("knn", "adopted"),
        ("forest", "kept"),
    ]
    assert done.in_force.forest is None
