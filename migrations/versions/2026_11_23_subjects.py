"""Rounds put more in force than parameters of knn, and may drop it again.

Revision: 2026_11_23_subjects, after 2026_11_22_page
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_23_subjects"
down_revision = "2026_11_22_page"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Say of each version what it is about; those that are there are parameters of knn."""
    op.add_column("parameters", sa.Column("subject", sa.Text, nullable=False, server_default="knn"))
    op.add_column("parameters", sa.Column("content", sa.LargeBinary))
    op.add_column("parameters", sa.Column("replaced", sa.BigInteger))
    op.add_column("parameters", sa.Column("made_until", sa.Double))


def downgrade() -> None:
    """Forget everything but parameters of knn, and those that were dropped."""
    op.execute("DELETE FROM parameters WHERE subject <> 'knn' OR parameters = 'null'")
    with op.batch_alter_table("parameters") as table:
        for column in ("made_until", "replaced", "content", "subject"):
            table.drop_column(column)
