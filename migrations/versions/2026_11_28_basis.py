"""Bases of recorded predictions: number of past runs, and reason in one word.

Revision: 2026_11_28_basis, after 2026_11_28_told
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_28_basis"
down_revision = "2026_11_28_told"
branch_labels = None
depends_on = None

COLUMNS = {"basis_jobs": sa.BigInteger, "basis_reason": sa.Text}


def upgrade() -> None:
    """Add the columns."""
    for name, kind in COLUMNS.items():
        op.add_column("predictions", sa.Column(name, kind))


def downgrade() -> None:
    """Remove them."""
    for name in COLUMNS:
        op.drop_column("predictions", name)
