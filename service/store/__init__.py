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
from service.store.forgetting import Erased, Erasure, Erasures
from service.store.past_runs import ClusterHistory, PastRuns
from service.store.queue_records import Queues, WaitScore
from service.store.rows import Ingested, RecordedPrediction, ReportedCompletion
from service.store.scores import Calibration, MethodScore, RecentScore, Side
from service.store.signs import ClusterSigns, Shift
from service.store.store import Store, open_store
from service.store.tokens import Token, parse_token
from service.store.tuning_records import Adoption, InForce, Tuning, Tunings, TuningState

__all__ = [
    "Adoption",
    "Calibration",
    "ClusterHistory",
    "ClusterSigns",
    "Erased",
    "Erasure",
    "Erasures",
    "ForeignDatabaseError",
    "InForce",
    "Ingested",
    "LogReader",
    "MethodScore",
    "NewerSchemaError",
    "PastRuns",
    "Queues",
    "RecentScore",
    "RecordedPrediction",
    "RefusedRecordError",
    "ReportedCompletion",
    "SchemaOutdatedError",
    "Shift",
    "Side",
    "Store",
    "StoreDamagedError",
    "StoreError",
    "StoreFullError",
    "StoreUnavailableError",
    "Token",
    "Tuning",
    "TuningState",
    "Tunings",
    "WaitScore",
    "open_store",
    "parse_token",
    "without_passwords",
]
