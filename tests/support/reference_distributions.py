"""The distributions of a job's runtime by attention and by least-cost, in plain Python and numpy.

Written from the formulas of docs/attention.md, whose notation they keep, and slow: a list of runs
is walked for each job. Only the arrays of the network are taken from the package.
"""

from collections import Counter
from dataclasses import dataclass, replace
from math import log, log1p

import numpy as np

from predictors.jobs import without_digits

OWN, OWN_SCALED, OTHER, OTHER_SCALED, REQUEST = range(5)
UNLIKE = 99


@dataclass(frozen=True)
class Run:
    """An ended run i: r_i seconds under a request of q_i on n_i processors."""

    user: str | None
    group: str | None
    queue: str | None
    application: str | None
    q: float
    n: float
    memory: float | None
    submit: float
    end: float
    r: float

    @classmethod
    def of(cls, submission, end=0.0, runtime=0.0):
        """A run, or a job where ``end`` and ``runtime`` are left out."""
        return cls(
            user=submission.user,
            group=submission.project or submission.group,
            queue=submission.queue,
            application=submission.application,
            q=float(submission.requested_walltime),
            n=float(submission.requested_processors or 1),
            memory=submission.requested_memory,
            submit=float(submission.submit_time),
            end=end,
            r=runtime,
        )


@dataclass(frozen=True)
class Point:
    """A support point: the run behind it, its kind, and its ranks among the user's runs."""

    run: Run
    kind: int
    rank: int
    like_rank: int


def recognised(run):
    """The run with the digits of its application's name left out."""
    return replace(run, application=without_digits(run.application))


def support(runs, job):
    """The support points, runs before the job by age; empty lists where nothing is known.

    Args:
        runs: those that had ended by the submission, the last to end first.
        job: a Run of which ``end`` and ``r`` mean nothing.

    Returns:
        The points, the user's last 192 runs, and the number of those that are like the job.
    """
    own = [run for run in runs if run.user == job.user][:192]
    points, like, same_application = [], 0, 0
    for rank, run in enumerate(own):
        is_like = resembles(run, job)
        same = run.application == job.application is not None and not is_like
        if rank < 40 or (is_like and like < 12) or (same and same_application < 8):
            points.append(Point(run, OWN, rank, like if is_like else UNLIKE))
        like += is_like
        same_application += same
    changed = [each for each in points if each.run.q != job.q][:24]
    points += [Point(each.run, OWN_SCALED, each.rank, each.like_rank) for each in changed]
    if len(own) < 16:
        points += support_of_others(runs, job)
    return points, own, like


def resembles(run, job):
    """Whether a run is like the job: same application, request and processors."""
    return run.application == job.application and (run.q, run.n) == (job.q, job.n)


def support_of_others(runs, job):
    """The points that stand for other users, for a user with fewer than 16 runs."""
    points, fresh, grouped, asked, last = [], 0, 0, 0, object()
    for age, run in enumerate(last_runs(runs, 256, 16), start=1):
        if run.user == job.user:
            continue
        same_group = run.group == job.group is not None
        same_request = run.q == job.q
        wanted = fresh < 10 or (same_request and asked < 6)
        if (run.user != last and wanted) or (same_group and grouped < 8):
            last = run.user
            fresh, grouped, asked = fresh + 1, grouped + same_group, asked + same_request
            points.append(Point(run, OTHER, age, UNLIKE))
            if not same_request:
                points.append(Point(run, OTHER_SCALED, age, UNLIKE))
    return points


def value(point, job):
    """v_k: seconds, at most the request."""
    used = min(point.run.r, point.run.q)
    seconds = used * job.q / point.run.q if point.kind in {OWN_SCALED, OTHER_SCALED} else used
    return max(min(1.0, job.q), min(seconds, job.q))


def features(points, values, job):
    """The matrix f of 36 rows, a column for each point; the last column is the request's."""
    found = np.zeros((36, len(values)))
    for k, point in enumerate(points):
        found[:32, k] = features_of(point, values[k], job)
    found[25, -1] = 1
    found[26, -1] = not any(point.kind < OTHER for point in points)
    last_like = next((k for k in range(len(points)) if found[29, k]), 0)
    for k in range(len(points)):
        difference = np.clip(log(values[k] / values[last_like]) / 2, -3, 3)
        found[32, k], found[33, k] = difference, abs(difference)
    distances = np.abs(np.subtract.outer(np.log(values), np.log(values)))
    found[34], found[35] = (distances < 0.05).mean(0), (distances < 0.4).mean(0)
    return found


def features_of(point, v, job):
    """The first 32 features of a point that is a run."""
    run = point.run
    own = point.kind < OTHER
    same_name = run.application == job.application
    alike = same_name and (run.q, run.n) == (job.q, job.n)
    like = own and alike
    both_named = run.application is not None and job.application is not None
    d = log(job.q / run.q)
    used = max(min(run.r, run.q), 1e-9 * run.q)
    both_memory = bool(run.memory and job.memory)
    age = log1p(max(0.0, job.submit - run.end) / 3600) / 2
    return [
        own,
        not own and run.group == job.group is not None,
        run.q == job.q,
        min(3.0, abs(d)),
        np.clip(d, -3, 3),
        run.n == job.n,
        min(4.0, abs(log(job.n / run.n))),
        same_name and run.application is not None,
        not same_name and both_named,
        run.queue == job.queue is not None,
        run.queue != job.queue and None not in {run.queue, job.queue},
        like,
        age,
        log1p(max(0.0, job.submit - run.submit) / 600) / 2,
        log1p(point.rank) / 2,
        log1p(point.rank) / 2 if alike else 0,
        log1p(point.like_rank) / 2 if alike else 0,
        point.rank == 0,
        run.r >= 0.99 * run.q,
        run.r < 60,
        min(4.0, log(run.q / used)) / 2,
        min(6.0, log(job.q / v)) / 2,
        own and job.submit - run.submit < 60,
        point.kind in {OWN_SCALED, OTHER_SCALED},
        not own,
        0,
        0,
        run.memory is not None and run.memory == job.memory,
        min(3.0, abs(log(job.memory / run.memory))) if both_memory else 0,
        like and point.like_rank == 0,
        np.clip(d, -3, 3) if same_name else 0,
        abs(d) < 0.1,
    ]


def context(runs, own, points, job, mu):
    """The vector c of 22 numbers about user, job and cluster; ``mu`` is the mean runtime."""
    c = np.zeros(22)
    like = [each for each in points if each.kind == OWN and each.like_rank < 12]
    c[0] = log1p(len(own)) / 3
    c[1] = log1p(sum(resembles(run, job) for run in own)) / 2
    c[2], c[3] = (log(job.q) - 9) / 2, np.clip(log(job.n) / 4, 0, 4)
    c[4] = np.clip(log(job.q / max(mu, 1.0)) / 2, -3, 3)
    habit = own[:24]
    if habit:
        usage = np.array([min(1.0, max(1.0, run.r) / run.q) for run in habit])
        asked = np.array([run.q for run in habit])
        c[5:8] = usage.mean(), (usage >= 0.95).mean(), (usage < 0.05).mean()
        c[20] = min(3.0, log1p(max(0.0, job.submit - own[0].end) / 3600) / 3)
        c[21] = own[0].q == job.q
        if len(habit) > 1:
            of_runtime, of_usage = changes(np.log(usage * asked)), changes(np.log(usage))
            other = asked[1:] != asked[:-1]
            c[8:11] = of_runtime.mean(), of_usage.mean(), other.mean()
            if other.any():
                c[11:13] = of_runtime[other].mean(), of_usage[other].mean()
                c[13] = np.clip(c[11] - c[12], -2, 2)
    if len(like) > 1:
        runtimes = [max(1.0, min(each.run.r, each.run.q)) for each in like]
        c[14:16] = changes(np.log(runtimes)).mean(), 1
    usage = np.array([min(run.r / run.q, 1.0) for run in last_runs(runs, 64, 4)])
    if len(usage):
        c[16:19] = usage.mean(), (usage >= 0.95).mean(), (usage < 0.05).mean()
    c[19] = not own
    return c


def changes(logarithms):
    """Distances of neighbours, at most 3."""
    return np.minimum(3.0, np.abs(np.diff(logarithms)))


def softmax_of_scores(f, c, layers):
    """w: the weight of each support point by the network."""
    w1, u1, b1, w2, b2, a2, a0 = (np.asarray(each, float) for each in layers)
    first = np.maximum(0, w1 @ f + (u1 @ c + b1)[:, None])
    second = np.maximum(0, w2 @ first + b2[:, None])
    s = a2 @ second + a0 @ f
    w = np.exp(s - s.max())
    return w / w.sum()


def kernel(own, job):
    """kappa: the hand-chosen likeness of the user's last 128 runs, as in least-cost."""
    return np.array(
        [
            0.96**age
            * (min(run.q, job.q) / max(run.q, job.q)) ** 4
            * (min(run.n, job.n) / max(run.n, job.n))
            * (1 if run.queue == job.queue else 3 / 4)
            * (1 if run.application == job.application else 1 / 4)
            for age, run in enumerate(own[:128])
        ]
    )


def with_tail(values, weights, q, runs):
    """The distribution mixed with 16 values that no run had, which count as ``runs`` runs."""
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    n_eff = 1 / (weights**2).sum()
    share = runs / (runs + n_eff)
    median = values[min(np.searchsorted(np.cumsum(weights), 0.5), len(values) - 1)]
    tail = np.concatenate(
        [median * (np.arange(8) + 0.5) / 8, median * (q / median) ** (np.arange(1, 9) / 8)]
    )
    values = np.concatenate([values, np.minimum(tail, q)])
    weights = np.concatenate([(1 - share) * weights, np.full(16, share / 16)])
    order = np.argsort(values, kind="stable")
    return values[order], weights[order]


def attention(runs, job, model, history=20_000):
    """Values and weights by attention, and mu; no values where no run says anything of the job.

    Args:
        runs: all that had ended by the submission, the last to end first.
        job: a Run.
        model: layers, the kernel's share and the number of runs that the tail counts for.
        history: among how many of the last runs all are sought.
    """
    layers, share, tail = model
    runs, job = [recognised(run) for run in runs[:history]], recognised(job)
    points, own, _ = support(runs, job)
    mu = mean_of_last(runs)
    if not points:
        return np.empty(0), np.empty(0), mu
    values = np.array([*(value(point, job) for point in points), job.q])
    f, c = features(points, values, job), context(runs, own, points, job, mu)
    weights = softmax_of_scores(f, c, layers)
    kappa = kernel(own, job)
    if kappa.sum():
        likely = share * kappa / kappa.sum()
        weights *= 1 - share
        weights[: min(40, len(own))] += likely[:40]
        older = np.array([min(run.r, job.q) for run in own[40:128]])
        values, weights = np.append(values, older), np.append(weights, likely[40:])
    return *with_tail(values, weights, job.q, tail), mu


def least_cost(runs, job, window=128, history=20_000):
    """Values and weights by least-cost, and mu, of what ``attention`` takes."""
    runs = runs[:history]
    own = [run for run in runs if run.user == job.user][:window]
    others = last_runs(runs, 16, 4) if len(runs) >= 16 else []
    values = [min(run.r, job.q) for run in own]
    values += [min(run.r / run.q, 1.0) * job.q for run in others]
    weights = np.append(kernel(own, job), np.full(len(others), 0.1 / 16))
    order = np.argsort(values, kind="stable")
    mu = mean_of_last(runs)
    return np.array(values)[order], weights[order], mu


def last_runs(runs, most, of_one):
    """The last runs, of which at most ``of_one`` are of one user.

    Runs of a user with as many newer ones are passed over. Where they follow each other they count
    as one of the 4,096 that are looked at.
    """
    found, of_user, looked, passed = [], Counter(), 0, object()
    for run in runs:
        is_new = of_user[run.user] < of_one
        looked += is_new or passed != run.user
        if len(found) == most or looked > 4096:
            break
        passed = object() if is_new else run.user
        if is_new:
            of_user[run.user] += 1
            found.append(run)
    return found


def mean_of_last(runs):
    """mu: the mean of the last 1,000 runs, of which at most 20 are of one user."""
    found = [int(run.r) for run in last_runs(runs, 1000, 20)]
    return float(np.mean(found)) if found else 0.0


def costs(values, weights, q, price):
    """The candidates of p* and the expected cost of each, in seconds."""
    candidates = np.minimum(q, np.append(values + 30, q))
    over = candidates[:, None] < values[None, :]
    cost = (weights * (np.abs(candidates[:, None] - values) + price * over)).sum(1)
    return candidates, cost
