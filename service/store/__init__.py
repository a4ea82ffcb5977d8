"""The history store: the only place that speaks SQL."""

from service.store.errors import (
    RefusedRecordError,
    SchemaOutdatedError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)
from service.store.log import LogReader
from service.store.records import (
    Ingested,
    MethodScore,
    RecordedPrediction,
    ReportedCompletion,
    Token,
)
from service.store.store import Store, open_store

__all__ = [
    "Ingested",
    "LogReader",
    "MethodScore",
    "RecordedPrediction",
    "RefusedRecordError",
    "ReportedCompletion",
    "SchemaOutdatedError",
    "Store",
    "StoreError",
    "StoreFullError",
    "StoreUnavailableError",
    "Token",
    "open_store",
]
