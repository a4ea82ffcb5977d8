"""Accuracy of requests and of adjusted requests, as in sections 3 and 5 of Tang et al. 2013.

Section 3 has Tables 1 and 2 and Figs. 1 and 2 about requests; section 5 has Figs. 4 to 11, and 13.
``--log`` names any site's log. Keys with a part that the log does not know are those without it:
without projects the double key is the user, the triple key the user and the walltime.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from papers.study import Inputs, LogPart
from papers.tang.percentile_schemes import (
    PERCENTILES,
    Scheme,
    predictions,
    schemes,
    sweep,
    usable_keys,
)
from papers.tang.tang_simulations import INTREPID, LOGS, MONTH
from papers.tang.tang_simulations import PERCENTILES as ADJUSTED
from predictors.jobs import Completion
from predictors.measures import PredictionMeasures, accuracy
from predictors.methods.percentile import KEYS
from simulator.reports.exhibit import Value
from simulator.traces.trace import Reals

FEWEST_IN_GROUP = 10
"""Jobs; smaller groups are left out of Table 2."""

BARS = 20
"""Of Fig. 1."""

REQUESTS = "requests"


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A number about the requests of a log.

    Attributes:
        log: its short name.
        quantity: what is measured.
        place: a class, a quarter or a key.
        value: None where no group is large enough.
    """

    log: str
    quantity: str
    place: str
    value: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemeMeasures:
    """Measures of one way to adjust requests, or of the requests.

    Attributes:
        key: of similar jobs, or ``requests``.
        kind: ``triple`` or ``double``, where ``key`` stands for one of these.
        percentile, window_days, lower_bound, min_jobs: as in ``Scheme``.
        accuracy: mean over the jobs, as the shares of Tang's classes that follow.
    """

    key: str
    kind: str
    percentile: float
    window_days: float | None
    lower_bound: float
    min_jobs: int
    accuracy: float
    not_adjusted: float
    overestimated: float
    underestimated: float
    badly_underestimated: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyOf:
    """Accuracy of requests, or of adjusted requests, for a part of a log.

    Attributes:
        key: of similar jobs.
        kind: ``triple`` or ``double``.
        estimates: requests, or a percentile.
        place: percent of the jobs whose accuracy is not higher, or a month.
        accuracy: of the job at this place, or the mean of the month.
    """

    key: str
    kind: str
    estimates: str
    place: str
    accuracy: float


def described(inputs: Inputs) -> list[Described]:
    """Return the numbers about the requests of the log."""
    [found] = inputs.play(_described, [_part(inputs)])
    return found


def swept(inputs: Inputs) -> list[SchemeMeasures]:
    """Return the measures of all schemes."""
    [found] = inputs.play(_swept, [_part(inputs)])
    return found


def distributions(inputs: Inputs) -> list[AccuracyOf]:
    """Return the distribution of accuracy before and after adjustment."""
    [found] = inputs.play(_distributions, [_part(inputs)])
    return found


def by_month(inputs: Inputs) -> list[AccuracyOf]:
    """Return the mean accuracy by month."""
    [found] = inputs.play(_by_month, [_part(inputs)])
    return found


def path_of(inputs: Inputs) -> Path:
    """Return the log: the one named by ``--log``, else Intrepid's."""
    named: Path | None = inputs.options.get("log")
    return named if named is not None else inputs.logs / LOGS[INTREPID]


def _part(inputs: Inputs) -> LogPart:
    return LogPart(str(path_of(inputs)), inputs.limit)


def _described(part: LogPart) -> list[Described]:
    runs = part.runs()
    log = "-".join(Path(part.trace).name.split(".")[0].split("-")[:2])
    return [
        Described(log=log, quantity=quantity, place=place, value=value)
        for numbers in (_basics(runs), _distribution(runs), _quarters(runs), _spreads(runs))
        for quantity, place, value in numbers
    ]


Numbers = Iterator[tuple[str, str, Value]]
"""Quantity, place and value."""


def _basics(runs: Sequence[Completion]) -> Numbers:
    """Yield the log in numbers (Table 1)."""
    submit = np.array([run.submission.submit_time for run in runs])
    found = {
        "jobs": float(len(runs)),
        "days": float(np.ptp(submit)) / 86400,
        "average run time, s": float(np.mean([run.runtime for run in runs])),
        "average request, s": float(requested_of(runs).mean()),
        "users": float(len({run.submission.user for run in runs} - {None})),
    }
    for place, value in found.items():
        yield "Basic information", place, value


def _distribution(runs: Sequence[Completion]) -> Numbers:
    """Yield the distribution of R (Fig. 1)."""
    usages = usages_of(runs)
    bars, edges = np.histogram(usages, bins=BARS, range=(0, 1))
    for edge, share in zip(edges[1:], bars / max(1, len(usages)), strict=True):
        yield "Jobs by R", f"{edge:.2f}", float(share)
    shares = {
        "close to 1": usages > 0.95,
        "above 0.8": usages > 0.8,
        "below 0.5": usages < 0.5,
        "below 0.2": usages < 0.2,
    }
    for place, chosen in shares.items():
        yield "Shares that the text names", place, float(np.mean(chosen))


def _quarters(runs: Sequence[Completion]) -> Numbers:
    """Yield mean and standard deviation of R, of all jobs and by quarter (Fig. 2)."""
    usages = usages_of(runs).tolist()
    quarters: dict[str, list[float]] = {"all": usages}
    for run, usage in zip(runs, usages, strict=True):
        quarters.setdefault(_quarter(run.submission.submit_time), []).append(usage)
    for quarter, values in quarters.items():
        yield "average R", quarter, float(np.mean(values))
        yield "standard deviation", quarter, float(np.std(values))


def _quarter(time: float) -> str:
    date = datetime.fromtimestamp(time, UTC)
    return f"{date.year} Q{(date.month + 2) // 3}"


SPREAD = "Average standard deviation of R within groups: the smaller, the better a key"
GROUPS = f"Groups of at least {FEWEST_IN_GROUP} jobs"


def _spreads(runs: Sequence[Completion]) -> Numbers:
    """Yield the spread of R within groups of similar jobs (Table 2)."""
    usages = usages_of(runs)
    yield SPREAD, "all jobs", float(usages.std())
    yield GROUPS, "all jobs", 1.0
    for key in usable_keys(runs):
        groups: dict[Any, list[float]] = {}
        for run, usage in zip(runs, usages.tolist(), strict=True):
            shared = tuple(getattr(run.submission, part) for part in KEYS[key])
            groups.setdefault(shared, []).append(usage)
        large = [values for values in groups.values() if len(values) >= FEWEST_IN_GROUP]
        spread = float(np.mean([np.std(values) for values in large])) if large else None
        yield SPREAD, key, spread
        yield GROUPS, key, float(len(large))


def _swept(part: LogPart) -> list[SchemeMeasures]:
    runs = part.runs()
    keys = usable_keys(runs)
    kinds = {key: kind for kind, key in keys_of(keys).items()}
    found = sweep(runs, schemes(keys))
    requested, run = requested_and_run(runs)
    base = float(accuracy(requested, run).mean())
    return [
        *(_measures(kinds.get(scheme.key, ""), scheme, each) for scheme, each in found.items()),
        *(_requests(percentile, base) for percentile in PERCENTILES),
    ]


def _measures(kind: str, scheme: Scheme, found: PredictionMeasures) -> SchemeMeasures:
    return SchemeMeasures(
        key=scheme.key,
        kind=kind,
        percentile=scheme.percentile,
        window_days=scheme.window_days,
        lower_bound=scheme.lower_bound,
        min_jobs=scheme.min_jobs,
        accuracy=found.accuracy,
        not_adjusted=found.not_adjusted,
        overestimated=found.overestimated,
        underestimated=found.underestimated,
        badly_underestimated=found.badly_underestimated,
    )


def _requests(percentile: float, base: float) -> SchemeMeasures:
    """Return the requests as they stand beside the schemes of a percentile."""
    return SchemeMeasures(
        key=REQUESTS,
        kind="",
        percentile=percentile,
        window_days=None,
        lower_bound=0.0,
        min_jobs=1,
        accuracy=base,
        not_adjusted=1.0,
        overestimated=0.0,
        underestimated=0.0,
        badly_underestimated=0.0,
    )


SHARES = range(10, 100, 10)
"""Percent of the jobs."""


def _distributions(part: LogPart) -> list[AccuracyOf]:
    runs = part.runs()
    labels = {"maximum": 100, "p85": 85, "median": 50}
    return [
        AccuracyOf(
            key=key,
            kind=kind,
            estimates=estimates,
            place=f"{share}",
            accuracy=float(np.quantile(values, share / 100)),
        )
        for kind, key in keys_of(usable_keys(runs)).items()
        for estimates, values in _accuracies(runs, key, labels).items()
        for share in SHARES
    ]


def _by_month(part: LogPart) -> list[AccuracyOf]:
    runs = part.runs()
    submit = np.array([each.submission.submit_time for each in runs])
    months = ((submit - submit.min()) // MONTH).astype(int)
    triple = keys_of(usable_keys(runs))["triple"]
    labels = {label: float(label[1:]) for label in ADJUSTED}
    return [
        AccuracyOf(
            key=triple,
            kind="triple",
            estimates=estimates,
            place=f"m{month + 1}",
            accuracy=float(values[months == month].mean()),
        )
        for estimates, values in _accuracies(runs, triple, labels).items()
        for month in np.unique(months)
    ]


def _accuracies(
    runs: Sequence[Completion], key: str, percentiles: Mapping[str, float]
) -> Mapping[str, Reals]:
    """Return the accuracy of each job by requests, and by percentiles of a month."""
    requested, run = requested_and_run(runs)
    compared = {
        label: Scheme(key, percentile, 30, 0.5, 10) for label, percentile in percentiles.items()
    }
    found = predictions(runs, list(compared.values()), requested)
    return {
        REQUESTS: accuracy(requested, run),
        **{label: accuracy(found[scheme], run) for label, scheme in compared.items()},
    }


def keys_of(usable: Iterable[str]) -> Mapping[str, str]:
    """Return the triple and the double key, as far as the log knows their parts."""
    usable = set(usable)
    triple = "user+project+walltime" if "user+project+walltime" in usable else "user+walltime"
    return {"triple": triple, "double": "user+project" if "user+project" in usable else "user"}


def requested_of(runs: Sequence[Completion]) -> Reals:
    """Return the requests in seconds."""
    return np.array([run.submission.requested_walltime for run in runs], dtype=float)


def requested_and_run(runs: Sequence[Completion]) -> tuple[Reals, Reals]:
    """Return requests, and run times cut to them: a usage above 1 counts as 1."""
    requested = requested_of(runs)
    return requested, np.minimum(requested, [run.runtime for run in runs])


def usages_of(runs: Sequence[Completion]) -> Reals:
    """Return the usage R of every run."""
    return np.array([run.usage for run in runs], dtype=float)
