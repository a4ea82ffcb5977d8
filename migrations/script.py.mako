"""${message}.

Revision: ${up_revision}, after ${down_revision}
"""

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    """${message}."""
    ${upgrades if upgrades else "raise NotImplementedError"}


def downgrade() -> None:
    """Back to the schema before."""
    ${downgrades if downgrades else "raise NotImplementedError"}
