"""A round of tuning has one process, which holds a lock; nobody has to say that it is alive.

Revision: 2026_11_24_dropped, after 2026_11_23_subjects
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_24_dropped"
down_revision = "2026_11_23_subjects"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Drop how often, and when last, a round's process was heard of."""
    for column in ("attempts", "seen_at"):
        op.drop_column("tunings", column)


def downgrade() -> None:
    """Say of each round that one process has taken it."""
    op.add_column("tunings", sa.Column("seen_at", sa.Double))
    op.add_column("tunings", sa.Column("attempts", sa.Integer, nullable=False, server_default="1"))
