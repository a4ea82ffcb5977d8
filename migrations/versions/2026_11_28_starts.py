"""Starts of jobs, as facts beside the log of completions.

Revision: 2026_11_28_starts, after 2026_11_28_rounds
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_28_starts"
down_revision = "2026_11_28_rounds"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "starts",
        sa.Column("place", sa.BigInteger().with_variant(sa.Integer, "sqlite"), sa.Identity()),
        sa.Column("cluster", sa.Text, nullable=False),
        sa.Column("job_id", sa.Text, nullable=False),
        sa.Column("user_name", sa.Text),
        sa.Column("application", sa.Text),
        sa.Column("requested_walltime", sa.Double, nullable=False),
        sa.Column("requested_processors", sa.BigInteger),
        sa.Column("submit_time", sa.Double, nullable=False),
        sa.Column("start_time", sa.Double, nullable=False),
        sa.Column("known_from", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("place", name="pk_starts"),
        sa.UniqueConstraint(
            "cluster", "job_id", "start_time", name="uq_starts_cluster_job_id_start_time"
        ),
    )
    op.create_index("ix_starts_cluster", "starts", ["cluster", "place"])


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("starts")
