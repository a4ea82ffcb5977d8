"""Scores of told starts, beside those of the scheduler and of past waits.

Revision: 2026_11_28_told, after 2026_11_28_facts
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_28_told"
down_revision = "2026_11_28_facts"
branch_labels = None
depends_on = None

SUMS = (
    *("jobs", "told", "absolute_error", "error"),
    *(f"within_{minutes}" for minutes in (10, 20, 40, 80, 160, 320, 640)),
    *("intervals", "covered"),
)


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "start_scores",
        sa.Column("cluster", sa.Text, nullable=False),
        sa.Column("week", sa.BigInteger, nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("queue", "horizon", "teller")),
        *(sa.Column(name, sa.Double, nullable=False) for name in SUMS),
        sa.PrimaryKeyConstraint(
            "cluster", "week", "queue", "horizon", "teller", name="pk_start_scores"
        ),
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("start_scores")
