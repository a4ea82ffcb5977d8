"""What every method's interval was, what was asked of it, and which jobs ended last.

Revision: 2026_11_22_intervals, after 2026_11_22_administration
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_22_intervals"
down_revision = "2026_11_22_administration"
branch_labels = None
depends_on = None

SCORED = sa.text("outcome = 'scored'")


def upgrade() -> None:
    """Add the columns; of intervals that were counted before nobody knows what was asked."""
    op.add_column("predictions", sa.Column("bounds", sa.Text))
    op.add_column("predictions", sa.Column("underestimation_rate", sa.Double))
    op.add_column("predictions", sa.Column("ended_at", sa.Double))
    op.create_index(
        "ix_predictions_scored",
        "predictions",
        ["cluster", "ended_at"],
        sqlite_where=SCORED,
        postgresql_where=SCORED,
    )
    op.add_column(
        "scores", sa.Column("asked_coverage", sa.Double, nullable=False, server_default="0")
    )
    op.execute("UPDATE scores SET intervals = 0, covered = 0")


def downgrade() -> None:
    """Remove them."""
    op.drop_index("ix_predictions_scored", "predictions")
    op.drop_column("scores", "asked_coverage")
    for column in ("ended_at", "underestimation_rate", "bounds"):
        op.drop_column("predictions", column)
