"""Live queues, how far off their forecasts were, and whose jobs a token is about.

Revision: 2026_11_22_queues, after 2026_11_22_intervals
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_22_queues"
down_revision = "2026_11_22_intervals"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add two tables and a column."""
    op.add_column("tokens", sa.Column("user_name", sa.Text))
    op.create_table(
        "queues",
        sa.Column("cluster", sa.Text),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("received_at", sa.Double, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("cluster", name="pk_queues"),
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


def downgrade() -> None:
    """Remove them; what tokens of scope self were about is forgotten, so they go too."""
    op.execute("DELETE FROM tokens WHERE user_name IS NOT NULL")
    op.drop_table("wait_scores")
    op.drop_table("queues")
    op.drop_column("tokens", "user_name")
