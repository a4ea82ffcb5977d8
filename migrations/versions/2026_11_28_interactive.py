"""Whether a run was interactive, so that its early end says nothing about its user's requests.

Revision: 2026_11_28_interactive, after 2026_11_28_starts
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_28_interactive"
down_revision = "2026_11_28_starts"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; of the runs so far it is not known."""
    op.add_column("completions", sa.Column("interactive", sa.BigInteger))


def downgrade() -> None:
    """Take it back."""
    op.drop_column("completions", "interactive")
