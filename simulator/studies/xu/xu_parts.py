"""What the study plays: one log, as it is compared at equal shares or as the paper publishes it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from predictors.jobs import Completion
from predictors.tuning.plan import TuningPlan
from simulator.studies.study import StudyError, runs_of
from simulator.studies.xu.equal_shares import STEPS, TuningComparison, compare
from simulator.studies.xu.published import PUBLISHED, PublishedComparison, compare_as_published
from simulator.studies.xu.retuning import submitted_after

BETTER = TuningPlan(errors=0)
"""A round adopts whatever is better on the test jobs, however little."""


class Part(NamedTuple):
    """One log.

    Attributes:
        trace: path of the log.
        limit: jobs after cleaning, or all.
        year: only jobs submitted in this calendar year (UTC), or all.
        plan: of the rounds.
        as_published: every round is used, as in the paper; else a comparison at equal shares.
    """

    trace: str
    limit: int | None
    year: int | None
    plan: TuningPlan
    as_published: bool = False


def parts(
    paths: Sequence[Path],
    limit: int | None,
    *,
    year: int | None = None,
    as_published: bool = False,
    **plan: Any,
) -> list[Part]:
    """A part for each log.

    Args:
        paths: of the logs.
        limit: jobs of each after cleaning, or all.
        year: only jobs submitted in this calendar year (UTC), or all.
        as_published: as the paper does, with its batches.
        plan: fields of TuningPlan; those that are None have their defaults.

    Raises:
        StudyError: the plan makes no sense.
    """
    given = {name: value for name, value in plan.items() if value is not None}
    try:
        chosen = replace(PUBLISHED if as_published else BETTER, **given)
        return [Part(str(path), limit, year, chosen, as_published) for path in paths]
    except ValueError as error:
        raise StudyError(str(error)) from error


def play(part: Part) -> TuningComparison | PublishedComparison:
    """Compare the methods on a log.

    Raises:
        StudyError: the log is too short for one round.
    """
    runs = jobs_of(part)
    published = part.plan.history + part.plan.training
    needed = published if part.as_published else part.plan.fewest_jobs
    if len(runs) <= needed:
        raise StudyError(
            f"{part.trace}: only {len(runs):,} jobs; more than {needed:,} have to end before the "
            "first round."
        )
    scored = submitted_after(runs, needed)
    if scored < STEPS:
        raise StudyError(f"{part.trace}: only {scored} jobs are submitted after the first round.")
    if part.as_published:
        return compare_as_published(runs, part.plan)
    return compare(runs, part.plan)


def jobs_of(part: Part) -> list[Completion]:
    """The jobs of the part's log that can be learned from."""
    return [run for run in runs_of(part.trace, part.limit) if _in_year(run, part.year)]


def _in_year(run: Completion, year: int | None) -> bool:
    submitted = datetime.fromtimestamp(run.submission.submit_time, UTC)
    return year is None or submitted.year == year
