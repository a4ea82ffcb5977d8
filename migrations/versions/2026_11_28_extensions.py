"""Limits that were extended while a job ran.

Revision: 2026_11_28_extensions, after 2026_11_28_basis
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_28_extensions"
down_revision = "2026_11_28_basis"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; of the runs so far it is not known."""
    op.add_column("completions", sa.Column("extended_to", sa.Double))


def downgrade() -> None:
    """Take it back."""
    op.drop_column("completions", "extended_to")
