"""Alembic's part of the schema: loaded only when there is something to migrate."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

import migrations


def migrate(connection: Connection) -> None:
    """Apply the migrations that are missing."""
    command.upgrade(alembic_config(connection), "head")


def known_revisions() -> frozenset[str]:
    """All that this release can upgrade."""
    scripts = ScriptDirectory.from_config(alembic_config())
    return frozenset(each.revision for each in scripts.walk_revisions())


def alembic_config(connection: Connection | None = None) -> Config:
    """Alembic's view of the migrations, which run on ``connection``."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.attributes["connection"] = connection
    return config
