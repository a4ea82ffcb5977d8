"""Medians of recorded predictions, and the clusters whose waiting jobs are ranked.

Revision: 2026_11_24_medians, after 2026_11_24_history
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_24_medians"
down_revision = "2026_11_24_history"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column and the table; stores made on 2026-11-24 may have the table already."""
    op.add_column("predictions", sa.Column("median", sa.Double))
    if not sa.inspect(op.get_bind()).has_table("ranked_clusters"):
        op.create_table(
            "ranked_clusters",
            sa.Column("cluster", sa.Text),
            sa.Column("since", sa.Double, nullable=False),
            sa.PrimaryKeyConstraint("cluster", name="pk_ranked_clusters"),
        )


def downgrade() -> None:
    """Remove them."""
    op.drop_table("ranked_clusters")
    op.drop_column("predictions", "median")
