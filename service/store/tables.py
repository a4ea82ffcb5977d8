"""The tables of the history store; the migrations build exactly these."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Sequence,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction
from sqlalchemy.types import UserDefinedType

metadata = MetaData(
    naming_convention={"pk": "pk_%(table_name)s", "uq": "uq_%(table_name)s_%(column_0_N_name)s"}
)

SEQ = Sequence("completions_seq", metadata=metadata)
"""Source of PostgreSQL's places in the log; SQLite numbers rows by itself."""

OPEN = text("outcome IS NULL")
"""Condition on predictions: no end of the job was reported."""


SCORED = text("outcome = 'scored'")
"""Condition on predictions: the prediction was compared with the end of its job."""


class TransactionId(UserDefinedType[int]):
    """PostgreSQL's ``xid8``: 64-bit transaction ids, which never wrap around."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """Return the name of the type in SQL."""
        return "XID8"


ischema_names["xid8"] = TransactionId  # lets Alembic recognise it


class this_transaction(GenericFunction[int]):  # noqa: N801 - it is the name of a SQL function
    """The id of the transaction that inserts a row; 0 on SQLite, which has one writer at a time."""

    inherit_cache = True


@compiles(this_transaction)
def _no_transaction_id(*_: Any, **__: Any) -> str:
    return "0"


@compiles(this_transaction, "postgresql")
def _current_transaction_id(*_: Any, **__: Any) -> str:
    return "pg_current_xact_id()"


def _submission_columns(*, job_id_known: bool) -> list[Column[Any]]:
    """Return the columns of a submission, in the units of the domain types."""
    return [
        Column("cluster", Text, nullable=False),
        Column("job_id", Text, nullable=not job_id_known),
        Column("user_name", Text),
        Column("group_name", Text),
        Column("project", Text),
        Column("queue", Text),
        Column("application", Text),
        Column("requested_walltime", Double, nullable=False),
        Column("requested_processors", BigInteger),
        Column("requested_memory", Double),
        Column("submit_time", Double, nullable=False),
    ]


# The log: rows are only ever added, and its order is (xid, seq).
completions = Table(
    "completions",
    metadata,
    # Only a column of type INTEGER becomes SQLite's row id.
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), SEQ),
    Column(
        "xid",
        BigInteger().with_variant(TransactionId, "postgresql"),
        nullable=False,
        server_default=this_transaction(),
    ),
    *_submission_columns(job_id_known=True),
    Column("start_time", Double, nullable=False),
    Column("end_time", Double, nullable=False),
    Column("runtime", Double, nullable=False),
    Column("status", Text, nullable=False),
    Column("interactive", BigInteger),  # 1, or nothing
    Column("extended_to", Double),  # limit at the end, if longer than requested
    Column("facts", LargeBinary),  # as in packed_facts, or nothing
    PrimaryKeyConstraint("seq"),
    UniqueConstraint("cluster", "job_id", "start_time"),
    Index("ix_completions_user_end", "cluster", "user_name", "end_time"),
    Index("ix_completions_end", "cluster", "end_time"),
    Index("ix_completions_log", "xid", "seq").ddl_if(dialect="postgresql"),
    # No place is used again after the newest runs were deleted: readers are past it.
    sqlite_autoincrement=True,
)

# Jobs that have started: rows are only ever added, and deleted when they are old.
starts = Table(
    "starts",
    metadata,
    Column("place", BigInteger().with_variant(Integer, "sqlite"), Identity()),
    Column("cluster", Text, nullable=False),
    Column("job_id", Text, nullable=False),
    Column("user_name", Text),
    Column("application", Text),
    Column("requested_walltime", Double, nullable=False),
    Column("requested_processors", BigInteger),
    Column("submit_time", Double, nullable=False),
    Column("start_time", Double, nullable=False),
    Column("known_from", Double, nullable=False),  # when every process knows of it
    PrimaryKeyConstraint("place"),
    UniqueConstraint("cluster", "job_id", "start_time"),
    Index("ix_starts_cluster", "cluster", "place"),
)

# Predictions, from the answer to the comparison with the runtime and after it.
predictions = Table(
    "predictions",
    metadata,
    Column("prediction_id", Text),
    *_submission_columns(job_id_known=False),
    Column("recorded_at", Double, nullable=False),
    Column("method", Text, nullable=False),
    Column("predicted_walltime", Double, nullable=False),
    Column("estimates", Text, nullable=False),  # JSON: seconds by method
    Column("median", Double),
    Column("lower_bound", Double),
    Column("upper_bound", Double),
    Column("bounds", Text),  # JSON: lower and upper end by method, where it gives an interval
    Column("coverage", Double),  # nominal coverage of the intervals
    Column("underestimation_rate", Double),  # nominal rate of the answer
    Column("outcome", Text),  # NULL while open, then 'scored' or 'superseded'
    Column("runtime", Double),
    Column("ended_at", Double),  # end of the run that it was scored by
    Column("basis_jobs", BigInteger),
    Column("basis_reason", Text),
    Column("facts", LargeBinary),  # as in packed_facts, or nothing
    PrimaryKeyConstraint("prediction_id"),
    # Few predictions are open at any time: the indexes hold those alone.
    *(
        Index(f"ix_predictions_open_{name}", *columns, sqlite_where=OPEN, postgresql_where=OPEN)
        for name, columns in {
            "job": ("cluster", "job_id"),
            "user": ("cluster", "user_name", "submit_time"),
            "submitted": ("submit_time",),
            "recorded": ("recorded_at",),
        }.items()
    ),
    Index(
        "ix_predictions_scored",
        "cluster",
        "ended_at",
        sqlite_where=SCORED,
        postgresql_where=SCORED,
    ),
)


def _score_columns() -> list[Column[Any]]:
    """Return the sums over the scored jobs of a method."""
    return [
        Column("jobs", BigInteger, nullable=False),
        Column("absolute_error", Double, nullable=False),  # sum, seconds
        Column("underestimated", BigInteger, nullable=False),
        Column("accuracy", Double, nullable=False),  # sum over jobs
        Column("intervals", BigInteger, nullable=False),
        Column("covered", BigInteger, nullable=False),
        Column("asked_coverage", Double, nullable=False),  # sum over intervals
    ]


# Sums of the errors of each method, so that reading a score does not read its jobs.
scores = Table(
    "scores",
    metadata,
    Column("cluster", Text),
    Column("method", Text),
    *_score_columns(),
    PrimaryKeyConstraint("cluster", "method"),
)

# These sums by the day on which jobs ended and by kind of job; unknown is the empty text.
daily_scores = Table(
    "daily_scores",
    metadata,
    Column("cluster", Text),
    Column("day", BigInteger),  # since 1970-01-01, in UTC
    Column("method", Text),
    Column("queue", Text),
    Column("group_name", Text),
    Column("size", Text),  # a class of processors
    *_score_columns(),
    PrimaryKeyConstraint("cluster", "day", "method", "queue", "group_name", "size"),
)

tokens = Table(
    "tokens",
    metadata,
    Column("token_id", Text),
    Column("name", Text, nullable=False),
    Column("scopes", Text, nullable=False),  # separated by blanks
    Column("secret_hash", LargeBinary, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("revoked_at", Double),
    Column("user_name", Text),  # user whose jobs a token of scope self may see
    PrimaryKeyConstraint("token_id"),
)

# Sessions of browsers; of the text that a browser presents only the hash is stored.
sessions = Table(
    "sessions",
    metadata,
    Column("session_hash", LargeBinary),
    Column("token_id", Text, nullable=False),
    Column("expires_at", Double, nullable=False),
    PrimaryKeyConstraint("session_hash"),
)

# The latest queue of each cluster, with the forecasts made for its jobs: replaced as a whole.
queues = Table(
    "queues",
    metadata,
    Column("cluster", Text),
    Column("version", BigInteger, nullable=False),  # grows with every replacement
    Column("received_at", Double, nullable=False),
    Column("content", LargeBinary, nullable=False),  # JSON, compressed
    PrimaryKeyConstraint("cluster"),
)

# Sums of the errors of forecast waits, of jobs that have started.
wait_scores = Table(
    "wait_scores",
    metadata,
    Column("cluster", Text),
    Column("queue", Text),  # empty for jobs that name none
    Column("made", Text),  # at arrival, or since
    Column("jobs", Double, nullable=False),
    Column("wait", Double, nullable=False),  # sums, seconds
    Column("absolute_error", Double, nullable=False),
    Column("error", Double, nullable=False),
    Column("intervals", Double, nullable=False),
    Column("covered", Double, nullable=False),
    PrimaryKeyConstraint("cluster", "queue", "made"),
)

# Sums of the errors of told starts: ours, the scheduler's own, and those by past waits.
start_scores = Table(
    "start_scores",
    metadata,
    Column("cluster", Text),
    Column("week", BigInteger),  # of the start, since 1970
    Column("queue", Text),  # empty for jobs that name none
    Column("horizon", Text),
    Column("teller", Text),
    *(
        Column(name, Double, nullable=False)
        for name in (
            *("jobs", "told", "absolute_error", "error"),
            *(f"within_{minutes}" for minutes in (10, 20, 40, 80, 160, 320, 640)),
            *("intervals", "covered"),
        )
    ),
    PrimaryKeyConstraint("cluster", "week", "queue", "horizon", "teller"),
)

RUNNING_ROUND = text("state = 'running'")
"""Condition on tuning rounds: the round has not ended."""

tunings = Table(
    "tunings",
    metadata,
    Column("tuning_id", Text),
    Column("cluster", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("plan", Text, nullable=False),  # JSON, and so the outcome
    Column("horizon", BigInteger, nullable=False),  # last place in the log at the start
    Column("started_at", Double, nullable=False),
    Column("finished_at", Double),
    Column("outcome", Text),
    Column("error", Text),
    PrimaryKeyConstraint("tuning_id"),
    Index("ix_tunings_cluster", "cluster", "started_at"),
    # At most one round of a cluster runs.
    Index(
        "ix_tunings_open",
        "cluster",
        unique=True,
        sqlite_where=RUNNING_ROUND,
        postgresql_where=RUNNING_ROUND,
    ),
)

# The release that upgraded the schema to a revision, for older releases that cannot read it.
releases = Table(
    "releases",
    metadata,
    Column("revision", Text),
    Column("release", Text, nullable=False),
    Column("upgraded_at", Double, nullable=False),
    PrimaryKeyConstraint("revision"),
)

# Times of deletions from the history; the deleted data are noted nowhere.
erasures = Table(
    "erasures",
    metadata,
    Column("erasure", BigInteger().with_variant(Integer, "sqlite"), Identity()),
    Column("erased_at", Double, nullable=False),
    PrimaryKeyConstraint("erasure"),
)

# Adoptions of rounds: of each cluster and subject the latest version is active.
parameters = Table(
    "parameters",
    metadata,
    Column("version", BigInteger().with_variant(Integer, "sqlite"), Identity()),
    Column("cluster", Text, nullable=False),
    Column("tuning_id", Text, nullable=False),
    Column("parameters", Text, nullable=False),  # JSON; null: the default of the settings
    Column("since", Double, nullable=False),
    Column("subject", Text, nullable=False),
    Column("replaced", BigInteger),  # the version before; NULL where that was the default
    Column("made_until", Double),  # end of the last run used; NULL: not to be reviewed
    PrimaryKeyConstraint("version"),
    Index("ix_parameters_cluster", "cluster", "version"),
)
