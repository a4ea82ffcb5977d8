"""Columns and a table that nothing reads: of leased rounds, of weights, of applications run alone.

Revision: 2026_11_24_dropped, after 2026_11_23_subjects
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_24_dropped"
down_revision = "2026_11_23_subjects"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Drop the lease of a round, weights that rounds adopted, and characterised applications."""
    for column in ("attempts", "seen_at"):
        op.drop_column("tunings", column)
    op.drop_column("parameters", "content")
    op.drop_table("characterisations")


def downgrade() -> None:
    """Add them again, empty; each round was taken once."""
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
    op.add_column("parameters", sa.Column("content", sa.LargeBinary))
    op.add_column("tunings", sa.Column("seen_at", sa.Double))
    op.add_column("tunings", sa.Column("attempts", sa.Integer, nullable=False, server_default="1"))
