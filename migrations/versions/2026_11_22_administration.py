"""Which release brought the schema to which revision, and when parts of the history were erased.

Revision: 2026_11_22_administration, after 2026_11_21_tunings
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_22_administration"
down_revision = "2026_11_21_tunings"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the two tables."""
    op.create_table(
        "releases",
        sa.Column("revision", sa.Text),
        sa.Column("release", sa.Text, nullable=False),
        sa.Column("upgraded_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("revision", name="pk_releases"),
    )
    op.create_table(
        "erasures",
        sa.Column("erasure", sa.BigInteger().with_variant(sa.Integer, "sqlite"), sa.Identity()),
        sa.Column("erased_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("erasure", name="pk_erasures"),
    )


def downgrade() -> None:
    """Remove them; what was erased stays erased."""
    op.drop_table("erasures")
    op.drop_table("releases")
