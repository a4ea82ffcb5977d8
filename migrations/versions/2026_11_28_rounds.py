"""Rounds of tuning without a queue of requests: a row is written when a round begins.

Revision: 2026_11_28_rounds, after 2026_11_24_medians
"""

import json
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "2026_11_28_rounds"
down_revision = "2026_11_24_medians"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Drop requests that wait and reports of progress; part what a round found by subject."""
    op.drop_index("ix_tunings_open", "tunings")
    op.execute("DELETE FROM tunings WHERE state = 'waiting'")
    op.execute("UPDATE tunings SET asked_at = coalesce(started_at, asked_at)")
    op.drop_column("tunings", "started_at")
    op.drop_column("tunings", "progress")
    op.execute("ALTER TABLE tunings RENAME COLUMN asked_at TO started_at")
    _create_open_index("state = 'running'")
    _rewrite_outcomes(_parted)


def downgrade() -> None:
    """Take it back."""
    op.drop_index("ix_tunings_open", "tunings")
    op.execute("ALTER TABLE tunings RENAME COLUMN started_at TO asked_at")
    op.add_column("tunings", sa.Column("progress", sa.Text))
    op.add_column("tunings", sa.Column("started_at", sa.Double))
    op.execute("UPDATE tunings SET started_at = asked_at")
    _create_open_index("state IN ('waiting', 'running')")
    _rewrite_outcomes(lambda outcome: {**(outcome["knn"] or {}), "changes": outcome["changes"]})


def _create_open_index(condition: str) -> None:
    op.create_index(
        "ix_tunings_open",
        "tunings",
        ["cluster"],
        unique=True,
        sqlite_where=sa.text(condition),
        postgresql_where=sa.text(condition),
    )


def _parted(outcome: dict[str, Any]) -> dict[str, Any]:
    changes = outcome.pop("changes", [])
    return {"knn": outcome or None, "changes": changes}


def _rewrite_outcomes(convert: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    connection = op.get_bind()
    tunings = sa.table("tunings", sa.column("tuning_id"), sa.column("outcome"))
    stored = sa.select(tunings).where(tunings.c.outcome.is_not(None))
    for tuning_id, outcome in connection.execute(stored).all():
        converted = json.dumps(convert(json.loads(outcome)))
        is_this = tunings.c.tuning_id == tuning_id
        connection.execute(tunings.update().where(is_this).values(outcome=converted))
