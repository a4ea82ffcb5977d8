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
        recorded_at: Unix seconds.
    """

    prediction_id: str
    submission: Submission
    method: str
    predicted_walltime: float
    estimates: dict[str, float]
    interval: Interval | None = None
    recorded_at: float


class Ingested(Struct, frozen=True, kw_only=True):
    """How many of the reported completions were new, and how many the store had already."""

    accepted: int
    duplicates: int

    def __add__(self, other: "Ingested") -> "Ingested":
        """Both together."""
        return Ingested(
            accepted=self.accepted + other.accepted, duplicates=self.duplicates + other.duplicates
        )


class MethodScore(Struct, frozen=True, kw_only=True):
    """How one method did on the jobs of one cluster that it was asked about and that ended.

    Attributes:
        jobs: how many were scored.
        mean_absolute_error: seconds.
        underestimation_rate: share of jobs that ran longer than predicted.
        accuracy: mean of min(p, r) / max(p, r) over predictions p and runtimes r (Tang et al.
            2013, Eq 3).
        coverage: share of its intervals that held the runtime; None if it gave none.
    """

    method: str
    jobs: int
    mean_absolute_error: float
    underestimation_rate: float
    accuracy: float
    coverage: float | None


class Token(Struct, frozen=True, kw_only=True):
    """An API token without its secret.

    Attributes:
        token_id: public part, safe to log.
        name: what it is for, in the administrator's words.
        scopes: what it allows; ``admin`` allows everything.
        secret_hash: SHA-256 of the secret part.
        created_at: Unix seconds.
        revoked_at: Unix seconds; None while it is valid.
    """

    token_id: str
    name: str
    scopes: frozenset[str]
    secret_hash: bytes
    created_at: float
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
    """Where a round is."""

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
