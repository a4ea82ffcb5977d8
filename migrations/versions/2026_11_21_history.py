"""The log of completions, recorded predictions, their scores, and tokens.

Revision: 2026_11_21_history, the first
"""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import CreateSequence, DropSequence

revision = "2026_11_21_history"
down_revision = None
branch_labels = None
depends_on = None

_SEQ = sa.Sequence("completions_seq")


def upgrade() -> None:
    """Build everything."""
    _create_completions(on_postgresql=op.get_context().dialect.name == "postgresql")
    _create_predictions()
    _create_scores()
    _create_tokens()


def downgrade() -> None:
    """Remove everything, history included."""
    for table in ("tokens", "scores", "predictions", "completions"):
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
        sa.Column("coverage", sa.Double),
        sa.Column("outcome", sa.Text),
        sa.Column("runtime", sa.Double),
        sa.PrimaryKeyConstraint("prediction_id", name="pk_predictions"),
    )
    still_open = sa.text("outcome IS NULL")
    for name, columns in (
        ("job", ["cluster", "job_id"]),
        ("user", ["cluster", "user_name", "submit_time"]),
        ("submitted", ["submit_time"]),
        ("recorded", ["recorded_at"]),
    ):
        op.create_index(
            f"ix_predictions_open_{name}",
            "predictions",
            columns,
            sqlite_where=still_open,
            postgresql_where=still_open,
        )


def _create_scores() -> None:
    op.create_table(
        "scores",
        sa.Column("cluster", sa.Text),
        sa.Column("method", sa.Text),
        sa.Column("jobs", sa.BigInteger, nullable=False),
        sa.Column("absolute_error", sa.Double, nullable=False),
        sa.Column("underestimated", sa.BigInteger, nullable=False),
        sa.Column("accuracy", sa.Double, nullable=False),
        sa.Column("intervals", sa.BigInteger, nullable=False),
        sa.Column("covered", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("cluster", "method", name="pk_scores"),
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
        sa.PrimaryKeyConstraint("token_id", name="pk_tokens"),
    )
