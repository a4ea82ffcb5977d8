"""What the page needs: scores by day, and who is logged in.

Revision: 2026_11_22_page, after 2026_11_22_characterisations
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_22_page"
down_revision = "2026_11_22_characterisations"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the two tables; scores by day begin with the jobs that end from now on."""
    op.create_table(
        "daily_scores",
        sa.Column("cluster", sa.Text),
        sa.Column("day", sa.BigInteger),
        sa.Column("method", sa.Text),
        sa.Column("queue", sa.Text),
        sa.Column("group_name", sa.Text),
        sa.Column("size", sa.Text),
        sa.Column("jobs", sa.BigInteger, nullable=False),
        sa.Column("absolute_error", sa.Double, nullable=False),
        sa.Column("underestimated", sa.BigInteger, nullable=False),
        sa.Column("accuracy", sa.Double, nullable=False),
        sa.Column("intervals", sa.BigInteger, nullable=False),
        sa.Column("covered", sa.BigInteger, nullable=False),
        sa.Column("asked_coverage", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint(
            "cluster", "day", "method", "queue", "group_name", "size", name="pk_daily_scores"
        ),
    )
    op.create_table(
        "sessions",
        sa.Column("session_hash", sa.LargeBinary),
        sa.Column("token_id", sa.Text, nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("session_hash", name="pk_sessions"),
    )


def downgrade() -> None:
    """Remove them; everybody is logged out."""
    op.drop_table("sessions")
    op.drop_table("daily_scores")
