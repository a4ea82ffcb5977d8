"""What goes into the history store and comes out of it, beside the domain types."""

import hmac
from enum import StrEnum
from hashlib import sha256
from typing import Any

from msgspec import Struct

from predictors.jobs import Completion, Interval, Submission
from predictors.tuning.plan import TuningPlan


class ReportedCompletion(Struct, frozen=True, kw_only=True, gc=False):
    """A completion as it was reported.

    Attributes:
        completion: the run; its job id must be known.
        prediction_id: of the prediction that the site passed through the resource manager.
        replaced_id: of the prediction that ``prediction_id`` has replaced when the job started.
    """

    completion: Completion
    prediction_id: str | None = None
    replaced_id: str | None = None


class RecordedPrediction(Struct, frozen=True, kw_only=True, gc=False):
    """What was predicted for one submission, kept until its job ends.

    Attributes:
        prediction_id: names the prediction for good.
        submission: as it was when the prediction was asked for.
        method: that answered.
        predicted_walltime: its answer in seconds.
        estimates: seconds by method, of every method that was asked, the answering one included.
        interval: of the answer, where the method gives one.
        bounds: ends of the interval by method, of every method that was asked and gives one, the
            answering one included.
        coverage: that was asked of these intervals.
        underestimation_rate: that was asked of the answering method; None for its own trade-off.
        recorded_at: Unix seconds.
        erasure: number of the last erasure that surely came before the answer; 0 for none.
    """

    prediction_id: str
    submission: Submission
    method: str
    predicted_walltime: float
    estimates: dict[str, float]
    interval: Interval | None = None
    bounds: dict[str, tuple[float, float]] = {}
    coverage: float | None = None
    underestimation_rate: float | None = None
    recorded_at: float
    erasure: int = 0


class Source(StrEnum):
    """The origins of a characterisation."""

    POSTED = "posted"
    ACCOUNTING = "accounting"


class Characterisation(Struct, frozen=True, kw_only=True):
    """An application as it runs alone, with one number of tasks (Hanzich et al. 2005).

    Attributes:
        execution_time: ExeTime_tot, seconds in isolation.
        cpu_share: CPU(J), the fraction of a CPU that each task uses in isolation.
        source: whether it was posted, or comes from the CPU time of a run.
        recorded_at: Unix seconds.
    """

    cluster: str
    application: str
    tasks: int
    execution_time: float
    cpu_share: float
    source: Source
    recorded_at: float


class Ingested(Struct, frozen=True, kw_only=True):
    """The number of reported completions that were new, and of those that the store had already."""

    accepted: int
    duplicates: int

    def __add__(self, other: "Ingested") -> "Ingested":
        """New and known completions together."""
        return Ingested(
            accepted=self.accepted + other.accepted, duplicates=self.duplicates + other.duplicates
        )


class MethodScore(Struct, frozen=True, kw_only=True):
    """The scores of one method on the jobs of one cluster that it was asked about and that ended.

    Attributes:
        jobs: how many were scored.
        mean_absolute_error: seconds.
        underestimation_rate: share of jobs that ran longer than predicted.
        accuracy: mean of min(p, r) / max(p, r) over predictions p and runtimes r (Tang et al.
            2013, Eq 3).
        coverage: share of its intervals that held the runtime; None if it gave none.
        asked_coverage: mean of the coverages that were asked of them.
    """

    method: str
    jobs: int
    mean_absolute_error: float
    underestimation_rate: float
    accuracy: float
    coverage: float | None
    asked_coverage: float | None


class Promise(Struct, frozen=True, kw_only=True):
    """What was asked of a method, and what it kept.

    Attributes:
        jobs: how many it was asked about.
        asked: mean of the shares of jobs that were asked for.
        got: the share of jobs that came.
    """

    jobs: int
    asked: float
    got: float


class RecentScore(Struct, frozen=True, kw_only=True):
    """How one method did on those of a cluster's last scored jobs that it was asked about.

    Attributes:
        jobs: how many.
        underestimation_rate: share of them that ran longer than predicted.
        intervals: of the jobs that it gave an interval for, how many it was to hold and held.
        rates: of the jobs for which a rate of underestimates was asked, how many came.
    """

    method: str
    jobs: int
    underestimation_rate: float
    intervals: Promise | None
    rates: Promise | None


class ClusterHistory(Struct, frozen=True, kw_only=True):
    """How long the history of a cluster is.

    Attributes:
        runs: how many are stored.
        last_end: when the last of them ended, in Unix seconds.
    """

    cluster: str
    runs: int
    last_end: float


class DailyScore(Struct, frozen=True, kw_only=True):
    """How one method did on a part of a cluster's jobs.

    Attributes:
        label: what the part is of: a day since 1970, or the name of a queue, group or class.
        jobs: how many were scored.
        mean_absolute_error: seconds.
        underestimation_rate: share of jobs that ran longer than predicted.
        accuracy: as in ``MethodScore``.
        intervals: how many intervals were given.
        coverage: share of intervals that held the runtime; None if there were none.
        asked_coverage: mean of the shares that the intervals were to hold.
    """

    label: int | str
    method: str
    jobs: int
    mean_absolute_error: float
    underestimation_rate: float
    accuracy: float
    intervals: int
    coverage: float | None
    asked_coverage: float | None


class Token(Struct, frozen=True, kw_only=True):
    """An API token without its secret.

    Attributes:
        token_id: public part, safe to log.
        name: what it is for, in the administrator's words.
        scopes: what it allows; ``admin`` allows everything.
        user: whose own jobs a token of scope ``self`` is about, as the history calls the user.
        secret_hash: SHA-256 of the secret part.
        created_at: Unix seconds.
        revoked_at: Unix seconds; None while it is valid.
    """

    token_id: str
    name: str
    scopes: frozenset[str]
    secret_hash: bytes
    created_at: float
    user: str | None = None
    revoked_at: float | None = None

    def matches(self, secret: str) -> bool:
        """Whether this is the token's secret; takes the same time for every wrong one."""
        digest = sha256(secret.encode(errors="replace")).digest()
        return hmac.compare_digest(digest, self.secret_hash)

    def allows(self, scope: str) -> bool:
        """Whether a bearer may use what needs ``scope``."""
        return self.revoked_at is None and bool(self.scopes & {scope, "admin"})


class Adoption(Struct, frozen=True, kw_only=True):
    """What a round puts in force.

    Attributes:
        subject: what it is about: ``knn``, ``attention``, ``price`` or ``auto``.
        parameters: as JSON; None: what the settings say.
        content: what is no JSON.
        made_until: when the last of the runs ended that it was made on; None where a later round
            is not to ask whether it has lost.
    """

    subject: str
    parameters: Any
    content: bytes | None = None
    made_until: float | None = None


class InForce(Struct, frozen=True, kw_only=True):
    """What rounds put in force.

    Attributes:
        adoption: the last one of its cluster and subject.
        replaced: the one before it; None where that was what the settings say.
    """

    adoption: Adoption
    replaced: Adoption | None = None


class TuningState(StrEnum):
    """The states of a round."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class Tuning(Struct, frozen=True, kw_only=True):
    """One round of tuning.

    Attributes:
        tuning_id: names the round for good.
        cluster: whose history is tuned on.
        state: where it is.
        origin: why the round was asked for: ``history``, ``request`` or ``command``.
        plan: what it looks at, and what it wants.
        asked_at: Unix seconds, and so the other times.
        started_at: when a process took it, the last time.
        seen_at: when that was last heard of.
        finished_at: when it ended.
        attempts: how many processes took it.
        progress: how far it is, as the search says it.
        outcome: what it found.
        error: why it failed.
    """

    tuning_id: str
    cluster: str
    state: TuningState
    origin: str
    plan: TuningPlan
    asked_at: float
    started_at: float | None = None
    seen_at: float | None = None
    finished_at: float | None = None
    attempts: int = 0
    progress: dict[str, Any] | None = None
    outcome: dict[str, Any] | None = None
    error: str | None = None
