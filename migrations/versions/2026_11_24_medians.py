"""Medians of recorded predictions.

Revision: 2026_11_24_medians, after 2026_11_24_history
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_24_medians"
down_revision = "2026_11_24_history"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("predictions", sa.Column("median", sa.Double))


def downgrade() -> None:
    """Remove it."""
    op.drop_column("predictions", "median")
