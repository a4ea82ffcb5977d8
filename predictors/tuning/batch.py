"""A stretch of history on which parameters of knn are tried."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictors.base import SHORTEST_ESTIMATE
from predictors.jobs import Completion
from predictors.measures import mean_absolute_error, underestimation_rate
from predictors.memory.columns import RUNTIME, UNKNOWN, Floats, Ids
from predictors.memory.job_table import TEMPLATE_ATTRIBUTES, JobTable, features_of
from predictors.methods.knn import LONGEST_HISTORY, KnnParameters
from predictors.tuning.neighbour_lists import Lists, build_lists, statistics
from predictors.tuning.objective import Errors

MOST_NEIGHBOURS = 50
"""Largest K that tuning tries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Trial jobs for parameters of knn, each with the history known at its submission.

    As in :class:`predictors.methods.knn.Knn`, a trial job sees the completions that had ended
    before its own submission, other trial jobs among them. The neighbour lists are built once
    and give the errors under any parameters.

    Attributes:
        requests: requests of the trial jobs, in seconds.
        runtimes: runtimes of the trial jobs, in seconds.
        users: whose they were.
        ends: when they ended, Unix seconds.
        usable_attributes: attributes that any trial job has; a template with another one matches
            nothing.
        longest_history: the largest N that can be asked for.
        unsearched: says over how many completions features are scaled, and how they are compared;
            what is searched has these of it.
        past_runtimes: of all completions, in order of their end.
        lists: the neighbours of the trial jobs.
    """

    requests: Floats
    runtimes: Floats
    users: NDArray[np.str_]
    ends: Floats
    usable_attributes: tuple[str, ...]
    longest_history: int
    unsearched: KnnParameters
    past_runtimes: Floats
    lists: Lists

    def __len__(self) -> int:
        return len(self.runtimes)

    def select(self, chosen: Any) -> "Batch":
        """Some of the trial jobs, by a slice or an array of indices; the lists are shared."""
        rows, begins, stops = self.lists
        return replace(
            self,
            requests=self.requests[chosen],
            runtimes=self.runtimes[chosen],
            users=self.users[chosen],
            ends=self.ends[chosen],
            lists=(rows, begins[chosen], stops[chosen]),
        )

    def neighbours(
        self, template: Sequence[str], history: int, ladder: Sequence[int]
    ) -> tuple[Floats, Floats]:
        """Mean and deviation of the neighbours' runtimes, for each K of ``ladder`` and each job."""
        bits = sum(1 << TEMPLATE_ATTRIBUTES.index(name) for name in template)
        steps = np.array(ladder, dtype=np.int64)
        return statistics(self.lists, self.past_runtimes, bits, history, steps)

    def predictions(self, parameters: KnnParameters) -> Floats:
        """The prediction of knn with ``parameters`` for each trial job, in seconds."""
        (means,), (deviations,) = self.neighbours(
            parameters.template, parameters.history, [parameters.neighbours]
        )
        seconds: Floats = means + parameters.alpha * deviations + parameters.beta * self.requests
        return np.minimum(self.requests, np.maximum(SHORTEST_ESTIMATE, seconds))

    def errors(self, parameters: KnnParameters) -> Errors:
        """The errors of knn with ``parameters`` over the trial jobs."""
        predictions = self.predictions(parameters)
        return Errors(
            mean_absolute_error=mean_absolute_error(predictions, self.runtimes),
            underestimation_rate=underestimation_rate(predictions, self.runtimes),
        )


def batch_of(
    completions: Sequence[Completion],
    trials: Sequence[Completion],
    *,
    longest_history: int = LONGEST_HISTORY,
    most_neighbours: int = MOST_NEIGHBOURS,
    unsearched: KnnParameters | None = None,
) -> Batch:
    """Find the neighbours of the trial jobs among the completions.

    Args:
        completions: the history, the trial jobs included, in the order of their observation.
        trials: the jobs whose runtimes are to be predicted; at least one.
        longest_history: the largest N that can be asked for.
        most_neighbours: the largest K that can be asked for.
        unsearched: scale and distance of the features; by default those of untuned knn.
    """
    unsearched = unsearched or KnnParameters()
    past = JobTable(len(completions))
    for completion in completions:
        past.add(completion)
    submissions = [trial.submission for trial in trials]
    times = np.array([job.submit_time for job in submissions], dtype=np.float64)
    features = np.array([features_of(job) for job in submissions])
    ids = np.array([past.ids_of(job) for job in submissions], dtype=np.int32)
    sizes = (longest_history, most_neighbours, unsearched.scaling)
    usable = usable_columns(ids)
    bits = sum(1 << column for column in usable)
    return Batch(
        requests=np.array([job.requested_walltime for job in submissions], dtype=np.float64),
        runtimes=np.array([trial.runtime for trial in trials], dtype=np.float64),
        users=np.array([job.user or "" for job in submissions]),
        ends=np.array([trial.end_time for trial in trials], dtype=np.float64),
        usable_attributes=tuple(TEMPLATE_ATTRIBUTES[column] for column in usable),
        longest_history=longest_history,
        unsearched=unsearched,
        past_runtimes=past.columns[0][RUNTIME],
        lists=build_lists(
            past.columns, len(past), sizes, (times, features, ids), (bits, unsearched.metric)
        ),
    )


def usable_columns(ids: Ids) -> list[int]:
    """The columns of attributes that any job has."""
    return [column for column, known in enumerate((ids != UNKNOWN).any(axis=0)) if known]
