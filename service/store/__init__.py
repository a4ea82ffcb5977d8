"""The history store: the only place that speaks SQL."""

from service.store.errors import (
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
from service.store.forgetting import Erased, Erasure
from service.store.log import LogReader
from service.store.store import Store, open_store
from service.store.tunings import Tunings
from service.store.types import (
    Adoption,
    InForce,
    Ingested,
    MethodScore,
    RecordedPrediction,
    ReportedCompletion,
    Token,
    Tuning,
    TuningState,
)

__all__ = [
    "Adoption",
    "Erased",
    "Erasure",
    "ForeignDatabaseError",
    "InForce",
    "Ingested",
    "LogReader",
    "MethodScore",
    "NewerSchemaError",
    "RecordedPrediction",
    "RefusedRecordError",
    "ReportedCompletion",
    "SchemaOutdatedError",
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
    "open_store",
]
