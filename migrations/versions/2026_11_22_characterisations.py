"""What applications are when they run alone, for forecasts on shared nodes.

Revision: 2026_11_22_characterisations, after 2026_11_22_queues
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_22_characterisations"
down_revision = "2026_11_22_queues"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "characterisations",
        sa.Column("cluster", sa.Text),
        sa.Column("application", sa.Text),
        sa.Column("tasks", sa.BigInteger),
        sa.Column("execution_time", sa.Double, nullable=False),
        sa.Column("cpu_share", sa.Double, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("recorded_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("cluster", "application", "tasks", name="pk_characterisations"),
    )


def downgrade() -> None:
    """Remove it."""
    op.drop_table("characterisations")
