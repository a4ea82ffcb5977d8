"""Rounds of tuning, and the parameters that they put in force.

Revision: 2026_11_21_tunings, after 2026_11_21_history
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_21_tunings"
down_revision = "2026_11_21_history"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the two tables."""
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
        sa.Column("seen_at", sa.Double),
        sa.Column("finished_at", sa.Double),
        sa.Column("attempts", sa.Integer, nullable=False),
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
        sa.PrimaryKeyConstraint("version", name="pk_parameters"),
    )
    op.create_index("ix_parameters_cluster", "parameters", ["cluster", "version"])


def downgrade() -> None:
    """Remove them; knn goes back to the parameters of its settings."""
    op.drop_table("parameters")
    op.drop_table("tunings")
