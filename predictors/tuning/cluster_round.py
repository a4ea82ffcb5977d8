"""A round of a cluster: learns a forest, and searches parameters of knn."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from predictors.jobs import Completion
from predictors.methods.forest import Forest
from predictors.methods.forest_trees import LearnedForest
from predictors.methods.knn import KnnParameters
from predictors.tuning.adoption import Adopted, RoundChange, as_json
from predictors.tuning.forest_learning import learned_anew
from predictors.tuning.genetic import ProgressReport, no_report
from predictors.tuning.knn_tunable import KnnRound, tune
from predictors.tuning.plan import TuningPlan

FOREST_JOBS = 30_000
"""Number of newest completions that a round learns a forest from: the runs in its leaves, and those
that its features look at."""


class ClusterParameters(Struct, frozen=True, kw_only=True):
    """The results of rounds in force for a cluster.

    Attributes:
        forest: the trees of forest; None without.
    """

    knn: Adopted[KnnParameters]
    forest: LearnedForest | None = None


class ClusterRound(Struct, frozen=True, kw_only=True):
    """Result of a round.

    Attributes:
        knn: the search for parameters of knn; None if the plan leaves it out.
        changes: one for each subject of the plan.
        in_force: the results in force after the round.
    """

    knn: KnnRound | None
    changes: Sequence[RoundChange]
    in_force: ClusterParameters


def tune_cluster(
    completions: Sequence[Completion],
    in_force: ClusterParameters,
    plan: TuningPlan,
    report: ProgressReport = no_report,
) -> ClusterRound:
    """Run a round on a cluster's newest completions.

    Args:
        completions: of the cluster, in the order of their observation.
        plan: the jobs and the subjects of the round.
        report: called with the progress of the search for knn's parameters.

    Raises:
        TooShortHistoryError: there are too few completions.
    """
    plan.check(len(completions))
    knn, changes = None, []
    if "knn" in plan.subjects:
        knn, change, of_knn = tune(completions, in_force.knn, plan, report)
        in_force = replace(in_force, knn=of_knn)
        changes.append(change)
    if "forest" in plan.subjects:
        change, in_force = renew_forest(completions, in_force)
        changes.append(change)
    return ClusterRound(knn=knn, changes=changes, in_force=in_force)


def renew_forest(
    completions: Sequence[Completion], in_force: ClusterParameters
) -> tuple[RoundChange, ClusterParameters]:
    """Learn a forest on the newest completions; the one in force stays if they are too few.

    No comparison decides about a forest: ``auto`` uses it for whom it has cost least.
    """
    forest = Forest()
    for run in sorted(completions, key=lambda run: run.end_time)[-FOREST_JOBS:]:
        forest.observe(run)
    newest = learned_anew(forest)
    change = RoundChange(
        subject=Forest.name,
        action="kept" if newest is None else "learned",
        before=as_json(in_force.forest),
        after=as_json(newest),
    )
    return change, in_force if newest is None else replace(in_force, forest=newest)
