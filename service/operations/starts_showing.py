"""Shows how near told starts came: ours, the scheduler's own and those by past waits."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, cast

from service.contract.queue_answers import ToldStartsAnswer
from service.live_queue.told_starts import HORIZONS, WEEK
from service.store import NEAR_MINUTES, StartScore
from service.worker.wait_scores import ARRIVAL, TELLERS

SHOWN_WEEKS = 8

Grouping = Callable[[StartScore], Any]


def told_answers(scores: Sequence[StartScore]) -> Iterator[ToldStartsAnswer]:
    """Yield scores by time to come, then those of first forecasts by queue, then by week."""
    for horizon in (ARRIVAL, *HORIZONS):
        yield from by_teller([each for each in scores if each.horizon == horizon], horizon=horizon)
    first = [each for each in scores if each.horizon == ARRIVAL]
    for queue in sorted({each.queue for each in first}):
        yield from by_teller([each for each in first if each.queue == queue], queue=queue)
    for week in sorted({each.week for each in first}, reverse=True):
        chosen = [each for each in first if each.week == week]
        yield from by_teller(chosen, week_begin=week * WEEK)


def by_teller(
    scores: Sequence[StartScore],
    *,
    horizon: str = ARRIVAL,
    queue: str | None = None,
    week_begin: float | None = None,
) -> Iterator[ToldStartsAnswer]:
    """Yield the sum of scores for each teller that has told a start."""
    for teller in TELLERS:
        told = [each for each in scores if each.teller == teller]
        if sum(each.told for each in told):
            yield told_answer(told, horizon=horizon, queue=queue, week_begin=week_begin)


def told_answer(
    scores: Sequence[StartScore], *, horizon: str, queue: str | None, week_begin: float | None
) -> ToldStartsAnswer:
    """Return the sum of scores of one teller."""

    def total(name: str) -> float:
        return float(sum(getattr(score, name) for score in scores))

    told, intervals = total("told"), total("intervals")
    near = {60.0 * minutes: total(f"within_{minutes}") / told for minutes in NEAR_MINUTES}
    return ToldStartsAnswer(
        queue=queue,
        week_begin=week_begin,
        horizon=cast("Literal['arrival', 'hour', 'six-hours', 'later']", horizon),
        teller=cast("Literal['walltimed', 'scheduler', 'past-waits']", scores[0].teller),
        jobs=round(total("jobs")),
        share_told=told / total("jobs"),
        half_within=next((seconds for seconds, share in near.items() if share >= 0.5), None),
        share_within_10_minutes=near[600.0],
        mean_absolute_error=total("absolute_error") / told,
        mean_error=total("error") / told,
        coverage=total("covered") / intervals if intervals else None,
    )
