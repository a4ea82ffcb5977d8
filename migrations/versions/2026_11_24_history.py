"""The log of completions, recorded predictions, scores, tokens, queues and rounds of tuning.

Revision: 2026_11_24_history, the first
"""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import CreateSequence, DropSequence

revision = "2026_11_24_history"
down_revision = None
branch_labels = None
depends_on = None

TABLES = (
    *("completions", "predictions", "scores", "daily_scores", "wait_scores", "tokens", "sessions"),
    *("queues", "tunings", "parameters", "releases", "erasures"),
)

_SEQ = sa.Sequence("completions_seq")


def upgrade() -> None:
    """Build everything."""
    _create_completions(on_postgresql=op.get_context().dialect.name == "postgresql")
    _create_predictions()
    _create_scores()
    _create_tokens()
    _create_queues()
    _create_tunings()
    _create_administration()


def downgrade() -> None:
    """Remove everything, history included."""
    for table in TABLES:
        op.drop_table(table)
    if op.get_context().dialect.name == "postgresql":
        op.execute(DropSequence(_SEQ))


def _submission_columns(*, job_id_known: bool) -> list[sa.Column[Any]]:
    return [
        sa.Column("cluster", sa.Text, nullable=False),
        sa.Column("job_id", sa.Text, nullable=not job_id_known),
        sa.Column("user_name", sa.Text),
        sa.Column("group_name", sa.Text),
        sa.Column("project", sa.Text),
        sa.Column("queue", sa.Text),
        sa.Column("application", sa.Text),
        sa.Column("requested_walltime", sa.Double, nullable=False),
        sa.Column("requested_processors", sa.BigInteger),
        sa.Column("requested_memory", sa.Double),
        sa.Column("submit_time", sa.Double, nullable=False),
    ]


def _xid(*, on_postgresql: bool) -> sa.Column[Any]:
    """The transaction that added a row; SQLite has one writer at a time and needs none."""
    if not on_postgresql:
        return sa.Column("xid", sa.BigInteger, nullable=False, server_default="0")
    default = sa.text("pg_current_xact_id()")
    return sa.Column("xid", _Xid8, nullable=False, server_default=default)


class _Xid8(sa.types.UserDefinedType[int]):
    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "XID8"


def _create_completions(*, on_postgresql: bool) -> None:
    op.create_table(
        "completions",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), _SEQ),
        _xid(on_postgresql=on_postgresql),
        *_submission_columns(job_id_known=True),
        sa.Column("start_time", sa.Double, nullable=False),
        sa.Column("end_time", sa.Double, nullable=False),
        sa.Column("runtime", sa.Double, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_completions"),
        sa.UniqueConstraint(
            "cluster", "job_id", "start_time", name="uq_completions_cluster_job_id_start_time"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_completions_user_end", "completions", ["cluster", "user_name", "end_time"])
    op.create_index("ix_completions_end", "completions", ["cluster", "end_time"])
    if on_postgresql:
        op.execute(CreateSequence(_SEQ))
        op.create_index("ix_completions_log", "completions", ["xid", "seq"])


def _create_predictions() -> None:
    op.create_table(
        "predictions",
        sa.Column("prediction_id", sa.Text),
        *_submission_columns(job_id_known=False),
        sa.Column("recorded_at", sa.Double, nullable=False),
        sa.Column("method", sa.Text, nullable=False),
        sa.Column("predicted_walltime", sa.Double, nullable=False),
        sa.Column("estimates", sa.Text, nullable=False),
        sa.Column("lower_bound", sa.Double),
        sa.Column("upper_bound", sa.Double),
        sa.Column("bounds", sa.Text),
        sa.Column("coverage", sa.Double),
        sa.Column("underestimation_rate", sa.Double),
        sa.Column("outcome", sa.Text),
        sa.Column("runtime", sa.Double),
        sa.Column("ended_at", sa.Double),
        sa.PrimaryKeyConstraint("prediction_id", name="pk_predictions"),
    )
    still_open, scored = sa.text("outcome IS NULL"), sa.text("outcome = 'scored'")
    for name, columns, condition in (
        ("open_job", ["cluster", "job_id"], still_open),
        ("open_user", ["cluster", "user_name", "submit_time"], still_open),
        ("open_submitted", ["submit_time"], still_open),
        ("open_recorded", ["recorded_at"], still_open),
        ("scored", ["cluster", "ended_at"], scored),
    ):
        op.create_index(
            f"ix_predictions_{name}",
            "predictions",
            columns,
            sqlite_where=condition,
            postgresql_where=condition,
        )


def _sums() -> list[sa.Column[Any]]:
    return [
        sa.Column("jobs", sa.BigInteger, nullable=False),
        sa.Column("absolute_error", sa.Double, nullable=False),
        sa.Column("underestimated", sa.BigInteger, nullable=False),
        sa.Column("accuracy", sa.Double, nullable=False),
        sa.Column("intervals", sa.BigInteger, nullable=False),
        sa.Column("covered", sa.BigInteger, nullable=False),
        sa.Column("asked_coverage", sa.Double, nullable=False),
    ]


def _create_scores() -> None:
    op.create_table(
        "scores",
        sa.Column("cluster", sa.Text),
        sa.Column("method", sa.Text),
        *_sums(),
        sa.PrimaryKeyConstraint("cluster", "method", name="pk_scores"),
    )
    op.create_table(
        "daily_scores",
        sa.Column("cluster", sa.Text),
        sa.Column("day", sa.BigInteger),
        sa.Column("method", sa.Text),
        sa.Column("queue", sa.Text),
        sa.Column("group_name", sa.Text),
        sa.Column("size", sa.Text),
        *_sums(),
        sa.PrimaryKeyConstraint(
            "cluster", "day", "method", "queue", "group_name", "size", name="pk_daily_scores"
        ),
    )
    op.create_table(
        "wait_scores",
        sa.Column("cluster", sa.Text),
        sa.Column("queue", sa.Text),
        sa.Column("made", sa.Text),
        *(
            sa.Column(name, sa.Double, nullable=False)
            for name in ("jobs", "wait", "absolute_error", "error", "intervals", "covered")
        ),
        sa.PrimaryKeyConstraint("cluster", "queue", "made", name="pk_wait_scores"),
    )


def _create_tokens() -> None:
    op.create_table(
        "tokens",
        sa.Column("token_id", sa.Text),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("secret_hash", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("revoked_at", sa.Double),
        sa.Column("user_name", sa.Text),
        sa.PrimaryKeyConstraint("token_id", name="pk_tokens"),
    )
    op.create_table(
        "sessions",
        sa.Column("session_hash", sa.LargeBinary),
        sa.Column("token_id", sa.Text, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("session_hash", name="pk_sessions"),
    )


def _create_queues() -> None:
    op.create_table(
        "queues",
        sa.Column("cluster", sa.Text),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("received_at", sa.Double, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("cluster", name="pk_queues"),
    )


def _create_tunings() -> None:
    op.create_table(
        "tunings",
        sa.Column("tuning_id", sa.Text),
        sa.Column("cluster", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("plan", sa.Text, nullable=False),
        sa.Column("horizon", sa.BigInteger, nullable=False),
        sa.Column("asked_at", sa.Double, nullable=False),
        sa.Column("started_at", sa.Double),
        sa.Column("finished_at", sa.Double),
        sa.Column("progress", sa.Text),
        sa.Column("outcome", sa.Text),
        sa.Column("error", sa.Text),
        sa.PrimaryKeyConstraint("tuning_id", name="pk_tunings"),
    )
    op.create_index("ix_tunings_cluster", "tunings", ["cluster", "asked_at"])
    still_open = sa.text("state IN ('waiting', 'running')")
    op.create_index(
        "ix_tunings_open",
        "tunings",
        ["cluster"],
        unique=True,
        sqlite_where=still_open,
        postgresql_where=still_open,
    )
    op.create_table(
        "parameters",
        sa.Column("version", sa.BigInteger().with_variant(sa.Integer, "sqlite"), sa.Identity()),
        sa.Column("cluster", sa.Text, nullable=False),
        sa.Column("tuning_id", sa.Text, nullable=False),
        sa.Column("parameters", sa.Text, nullable=False),
        sa.Column("since", sa.Double, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("replaced", sa.BigInteger),
        sa.Column("made_until", sa.Double),
        sa.PrimaryKeyConstraint("version", name="pk_parameters"),
    )
    op.create_index("ix_parameters_cluster", "parameters", ["cluster", "version"])


def _create_administration() -> None:
    op.create_table(
        "releases",
        sa.Column("revision", sa.Text),
        sa.Column("release", sa.Text, nullable=False),
        sa.Column("upgraded_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("revision", name="pk_releases"),
    )
    op.create_table(
        "erasures",
        sa.Column("erasure", sa.BigInteger().with_variant(sa.Integer, "sqlite"), sa.Identity()),
        sa.Column("erased_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("erasure", name="pk_erasures"),
    )
