"""Measures how well it is known at a submission that a job will end at its limit.

    .venv/bin/python research/limits.py LOG... --limit 30000
    .venv/bin/python research/limits.py LOG... --limit 30000 --used 0.8
    .venv/bin/python research/limits.py LOG... --limit 30000 --learn
    .venv/bin/python research/limits.py LOG... --limit 10000 --reachable

Prints a row for each log, over its jobs from number 2,000 on; each is judged as of its
submission, or, with --used, when it has run for that share of its limit; then warnings at a
probability of each of ``THRESHOLDS``. With --reachable the AUC of models that are fitted to the log
itself stand beside that of the shipped weights.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from msgspec.structs import replace
from numpy.typing import NDArray
from played_logs import LogPart, Traces, log_parts, play_logs, run_script
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingClassifier

from predictors.base import RUNNING_WARNING_PROBABILITY, WARNING_PROBABILITY
from predictors.jobs import Completion
from predictors.limits import LimitHits
from predictors.memory.columns import Floats
from predictors.memory.limit_features import FEATURES, LAST_RUNS
from simulator.cli.options import Distributed, Processes
from simulator.replay.trace_replay import play_jobs
from simulator.reports.tables import text_table
from terminal.console import out
from terminal.options import Limit

FIRST_JUDGED = 2_000
"""Number of first jobs of a log that are not judged."""

GROUPS = 10
"""Groups of equally many jobs, by probability, in which the calibration error is taken."""

PENALTY = 20.0
"""Ridge penalty of the weights, for features of variance 1."""

STEPS = 12
"""Newton steps of the regression; the last ones change no printed digit."""

WEEK = 7 * 86_400.0

Flags = NDArray[np.bool_]


class Played(NamedTuple):
    """A log that was played.

    Attributes:
        probabilities: of the judged jobs, in order of submission.
        hits: which of them ended at their limits.
        chains: which of them were recognised as going on where another was cut.
        last_hits: whether the last like run had ended at its limit; the rule to beat.
        requested: core seconds requested.
        used: core seconds used, at most those requested.
        firsts: which are of users without a hit among their last runs.
        weeks: number of the user's week in which each was submitted.
        features: at the submissions, one row a job.
    """

    probabilities: Floats
    hits: Flags
    chains: Flags
    last_hits: Floats
    requested: Floats
    used: Floats
    firsts: Flags
    weeks: NDArray[np.int64]
    features: Floats

    def warnings(self, least: float) -> tuple[float, float, float, float]:
        """Return how warnings from a probability of ``least`` on would have turned out.

        Returns:
            The share of jobs that are warned, of hits among them, the mean share of false alarms
            among a user's jobs of a week, and the share of the hits without chains that is warned.
        """
        warned = (self.probabilities >= least) & ~self.chains
        alarms = np.bincount(self.weeks, weights=warned & ~self.hits)
        found = int((warned & self.hits).sum())
        return (
            float(warned.mean()),
            found / max(1, int(warned.sum())),
            float((alarms / np.bincount(self.weeks)).mean()),
            found / max(1, int((self.hits & ~self.chains).sum())),
        )


def play(part: LogPart) -> Played:
    """Play a log to the model: features and probabilities as of each job's submission."""
    log, used = part.runs(), part.options
    asked = [as_of(run, used) for run in log]
    model = LimitHits()
    features = np.zeros((len(log), len(FEATURES)))
    probabilities = np.full(len(log), np.nan)
    chains, firsts = np.zeros(len(log), bool), np.zeros(len(log), bool)
    lately: dict[str | None, deque[bool]] = defaultdict(lambda: deque(maxlen=LAST_RUNS))

    def submitted(job: int) -> None:
        elapsed = used * log[job].submission.requested_walltime
        if log[job].runtime < elapsed:
            return
        risk = model.of(asked[job].submission, elapsed or None)
        features[job] = model.features(asked[job].submission)
        probabilities[job] = np.nan if risk.probability is None else risk.probability
        chains[job] = risk.reason == "chain"
        firsts[job] = not any(lately[log[job].submission.user])

    def ended(job: int) -> None:
        model.observe(log[job])
        lately[log[job].submission.user].append(log[job].met_limit)

    play_jobs(asked, ended=ended, submitted=submitted)
    judged = np.argsort([run.submission.submit_time for run in asked], kind="stable")[FIRST_JUDGED:]
    judged = judged[~np.isnan(probabilities[judged])]
    requested, used = core_seconds([log[job] for job in judged])
    return Played(
        probabilities[judged],
        np.array([log[job].met_limit for job in judged]),
        chains[judged],
        features[judged, FEATURES.index("last like run hit")],
        requested,
        used,
        firsts[judged],
        weeks_of([log[job] for job in judged]),
        features[judged],
    )


def as_of(run: Completion, used: float) -> Completion:
    """Return a run as if submitted when it had used a share of its limit, if it ran so long."""
    if not used or run.runtime < used * run.submission.requested_walltime:
        return run
    time = run.start_time + used * run.submission.requested_walltime
    return replace(run, submission=replace(run.submission, submit_time=time))


def weeks_of(runs: Sequence[Completion]) -> NDArray[np.int64]:
    """Return numbers of pairs of user and week, from 0 on."""
    weeks = [f"{run.submission.user} {run.submission.submit_time // WEEK:.0f}" for run in runs]
    return np.unique(weeks, return_inverse=True)[1]


def core_seconds(runs: Sequence[Completion]) -> tuple[Floats, Floats]:
    """Return requested and used core seconds of runs."""
    cores = np.array([run.submission.requested_processors or 1 for run in runs], float)
    requests = np.array([run.submission.requested_walltime for run in runs])
    runtimes = np.array([run.runtime for run in runs])
    return cores * requests, cores * np.minimum(requests, runtimes)


def auc(hits: Flags, scores: Floats) -> float:
    """Return the probability that a hit has a higher score than another job."""
    ranks, count = rankdata(scores), int(hits.sum())
    above = ranks[hits].sum() - count * (count + 1) / 2
    return float(above / (count * (len(hits) - count)))


def calibration_error(hits: Flags, probabilities: Floats) -> float:
    """Return the mean difference of probability and share of hits over groups of jobs."""
    groups = np.array_split(np.argsort(probabilities, kind="stable"), GROUPS)
    errors = [abs(hits[jobs].mean() - probabilities[jobs].mean()) * len(jobs) for jobs in groups]
    return float(sum(errors) / len(hits))


def held(hits: Flags, scores: Floats, used: Floats) -> float:
    """Return the share of the hits' core hours among as many flagged jobs as hits."""
    flagged = np.argsort(-scores, kind="stable")[: int(hits.sum())]
    return float((used[flagged] * hits[flagged]).sum() / used[hits].sum())


def row(part: LogPart, played: Played) -> tuple[str, ...]:
    """Return the cells of a log."""
    hits, probabilities = played.hits, played.probabilities
    least = RUNNING_WARNING_PROBABILITY if part.options else WARNING_PROBABILITY
    return (
        Path(part.trace).name.split(".")[0],
        f"{len(hits):,}",
        f"{hits.mean():.1%}",
        f"{played.used[hits].sum() / played.used.sum():.0%}",
        f"{played.firsts[hits].mean():.0%}",
        f"{auc(hits, played.last_hits):.3f}",
        f"{auc(hits, probabilities):.3f}",
        f"{100 * calibration_error(hits, probabilities):.1f}",
        f"{held(hits, probabilities, played.used):.0%}",
        f"{held(hits, probabilities * played.requested, played.used):.0%}",
        f"{played.chains.mean():.1%}",
        f"{hits[played.chains].mean() if played.chains.any() else 0.0:.0%}",
        *(f"{share:.1%}" for share in played.warnings(least)),
    )


HEADS = (
    *(
        "log",
        "jobs",
        "hits",
        "core h",
        "first",
        "rule",
        "AUC",
        "cal. error",
        "held",
        "held by core h",
    ),
    *("chains", "hit", "warned", "hit", "false alarms", "found"),
)

THRESHOLDS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.875, 0.9, 0.95)


def by_threshold(logs: Sequence[Played]) -> str:
    """Return a table of the medians over logs by threshold, and of the most false alarms."""
    cells = []
    for least in THRESHOLDS:
        outcomes = np.array([each.warnings(least) for each in logs])
        shares = (*np.median(outcomes, axis=0), outcomes[:, 2].max())
        cells.append([f"{least:.3g}", *(f"{share:.1%}" for share in shares)])
    heads = ("from", "warned", "hit", "false alarms", "found", "most false alarms")
    return text_table(heads, cells)


def weights(logs: Sequence[Played]) -> Floats:
    """Return the weights of a logistic regression in which all logs count alike."""
    features = np.vstack([log.features for log in logs])
    hits = np.concatenate([log.hits for log in logs]).astype(float)
    counts = np.concatenate([np.full(len(log.hits), 20_000 / len(log.hits)) for log in logs])
    means, scales = features.mean(0), features.std(0)
    means[0], scales[0] = 0.0, 1.0
    scaled = (features - means) / scales
    found = np.zeros(features.shape[1])
    for _ in range(STEPS):
        expected = 1 / (1 + np.exp(-scaled @ found))
        slope = scaled.T @ (counts * (hits - expected)) - PENALTY * found
        spread = counts * expected * (1 - expected)
        curvature = (scaled * spread[:, None]).T @ scaled + PENALTY * np.eye(len(found))
        found += np.linalg.solve(curvature, slope)
    found /= scales
    found[0] -= float((found[1:] * means[1:]).sum())
    return found


REFITTED = 1_000
"""Jobs after which a model of the log's past is fitted anew."""

FOLDS = 5


def reachable(part: LogPart) -> tuple[float, ...]:
    """Return the AUC on a log's later half by the shipped weights, and by boosted trees.

    The trees are fitted to all earlier jobs every REFITTED jobs, as if these had ended at once; and
    to four fifths of all jobs, drawn by chance, past and future, to judge the others.
    """
    played = play(part)
    features, hits = played.features, played.hits
    later = np.arange(len(hits)) >= len(hits) // 2
    by_past, by_all = np.zeros(len(hits)), np.zeros(len(hits))
    for first in range(len(hits) // 2, len(hits), REFITTED):
        asked = slice(first, first + REFITTED)
        by_past[asked] = _by_trees(features[:first], hits[:first], features[asked])
    fold = np.random.default_rng(1).integers(FOLDS, size=len(hits))
    for each in range(FOLDS):
        asked = fold == each
        by_all[asked] = _by_trees(features[~asked], hits[~asked], features[asked])
    scores = (played.probabilities, by_past, by_all)
    return tuple(auc(hits[later], each[later]) for each in scores)


def _by_trees(known: Floats, hits: Flags, asked: Floats) -> Floats:
    trees = HistGradientBoostingClassifier(
        max_iter=100, learning_rate=0.06, min_samples_leaf=40, random_state=1
    )
    return np.asarray(trees.fit(known, hits).predict_proba(asked)[:, 1])


def main(  # noqa: PLR0913 - options of a command
    traces: Traces,
    *,
    limit: Limit = None,
    learn: Annotated[
        bool, typer.Option("--learn", help="Print weights learned on these logs.")
    ] = False,
    used: Annotated[
        float, typer.Option(min=0, max=1, help="Ask when jobs have run for this share of limits.")
    ] = 0.0,
    with_reachable: Annotated[
        bool, typer.Option("--reachable", help="AUC of models fitted to the log itself.")
    ] = False,
    processes: Processes = None,
    distributed: Distributed = None,
) -> None:
    """Print how well hits are foreseen on each log, or the weights learned on all of them.

    Example: python research/limits.py SDSC-SP2-1998-4.2-cln.swf.gz --limit 20000
    """
    parts = log_parts(traces, limit, used)
    if with_reachable:
        areas = list(play_logs(reachable, parts, processes=processes, distributed=distributed))
        cells = [
            [Path(part.trace).name.split(".")[0], *map("{:.3f}".format, each)]
            for part, each in areas
        ]
        medians = np.median([each for _, each in areas], axis=0)
        cells.append(["median", *map("{:.3f}".format, medians)])
        heads = ("log", "shipped", "trees, refitted to the past", "trees with hindsight")
        out.print(text_table(heads, cells), soft_wrap=True, markup=False)
        return
    played = list(play_logs(play, parts, processes=processes, distributed=distributed))
    if learn:
        found = weights([each for _, each in played])
        out.print(", ".join(f"{weight:.4f}" for weight in found), soft_wrap=True, markup=False)
        return
    rows = [row(part, each) for part, each in played]
    areas = [auc(each.hits, each.probabilities) for _, each in played]
    out.print(text_table(HEADS, rows), soft_wrap=True, markup=False)
    if used:
        table = by_threshold([each for _, each in played])
        out.print(f"\n{table}", soft_wrap=True, markup=False)
    out.print(f"\nmedian AUC {np.median(areas):.3f}", markup=False)


if __name__ == "__main__":
    run_script(main)
