"""The history store: the only place that speaks SQL."""

from service.store.daily_scores import Side
from service.store.database import without_passwords
from service.store.forgetting import Erased, Erasure
from service.store.log import LogReader
from service.store.past_runs import PastRun, PastRuns
from service.store.queue_records import Queues, WaitScore
from service.store.signs import ClusterSigns, Shift
from service.store.store import Store, open_store
from service.store.store_errors import (
    ForeignDatabaseError,
    NewerSchemaError,
    RefusedRecordError,
    SchemaOutdatedError,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
    TuningLostError,
)
from service.store.tokens import parse_token
from service.store.tuning_records import Tunings
from service.store.types import (
    Adoption,
    Characterisation,
    ClusterHistory,
    DailyScore,
    InForce,
    Ingested,
    MethodScore,
    Promise,
    RecentScore,
    RecordedPrediction,
    ReportedCompletion,
    Source,
    Token,
    Tuning,
    TuningState,
)

__all__ = [
    "Adoption",
    "Characterisation",
    "ClusterHistory",
    "ClusterSigns",
    "DailyScore",
    "Erased",
    "Erasure",
    "ForeignDatabaseError",
    "InForce",
    "Ingested",
    "LogReader",
    "MethodScore",
    "NewerSchemaError",
    "PastRun",
    "PastRuns",
    "Promise",
    "Queues",
    "RecentScore",
    "RecordedPrediction",
    "RefusedRecordError",
    "ReportedCompletion",
    "SchemaOutdatedError",
    "Shift",
    "Side",
    "Source",
    "Store",
    "StoreDamagedError",
    "StoreError",
    "StoreFullError",
    "StoreUnavailableError",
    "Token",
    "Tuning",
    "TuningLostError",
    "TuningState",
    "Tunings",
    "WaitScore",
    "open_store",
    "parse_token",
    "without_passwords",
]
