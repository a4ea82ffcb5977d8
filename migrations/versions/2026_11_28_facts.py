"""Further facts of submissions: of runs, and of predictions until their jobs end.

Revision: 2026_11_28_facts, after 2026_11_28_interactive
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_28_facts"
down_revision = "2026_11_28_interactive"
branch_labels = None
depends_on = None

TABLES = ("completions", "predictions")


def upgrade() -> None:
    """Add the columns; nothing is known of jobs so far."""
    for table in TABLES:
        op.add_column(table, sa.Column("facts", sa.Text))


def downgrade() -> None:
    """Take them back."""
    for table in TABLES:
        op.drop_column(table, "facts")
