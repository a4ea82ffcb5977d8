"""The history store: the only place that speaks SQL."""

from service.store.database import (
    ForeignDatabaseError,
    LogReader,
    NewerSchemaError,
    RefusedRecordError,
    SchemaOutdatedError,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
    without_passwords,
)
from service.store.diagnostics import ClusterDiagnostics, Shift
from service.store.forgetting import Erased, Erasure
from service.store.past_runs import ClusterHistory, EndedRun, ScoredPrediction
from service.store.queue_records import NEAR_MINUTES, Queues, StartScore, WaitScore
from service.store.rows import Ingested, RecordedPrediction, ReportedCompletion
from service.store.scores import MethodScore, MethodScores, ObservedShare, RecentScore, Side
from service.store.store import Store, open_store
from service.store.tokens import Token, parse_token
from service.store.tuning_records import (
    ActiveAdoption,
    AdoptingRound,
    Adoption,
    RoundOutcome,
    Tuning,
    TuningState,
)

__all__ = [
    "NEAR_MINUTES",
    "ActiveAdoption",
    "AdoptingRound",
    "Adoption",
    "ClusterDiagnostics",
    "ClusterHistory",
    "EndedRun",
    "Erased",
    "Erasure",
    "ForeignDatabaseError",
    "Ingested",
    "LogReader",
    "MethodScore",
    "MethodScores",
    "NewerSchemaError",
    "ObservedShare",
    "Queues",
    "RecentScore",
    "RecordedPrediction",
    "RefusedRecordError",
    "ReportedCompletion",
    "RoundOutcome",
    "SchemaOutdatedError",
    "ScoredPrediction",
    "Shift",
    "Side",
    "StartScore",
    "Store",
    "StoreDamagedError",
    "StoreError",
    "StoreFullError",
    "StoreUnavailableError",
    "Token",
    "Tuning",
    "TuningState",
    "WaitScore",
    "open_store",
    "parse_token",
    "without_passwords",
]
