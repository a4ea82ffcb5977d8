"""Bringing the database's schema up to this release's, by Alembic."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

import migrations
from service.store.database import Database
from service.store.errors import SchemaOutdatedError


def upgrade(database: Database) -> None:
    """Apply the migrations that are missing; several processes may try at once."""
    database.create()
    with database.writing() as connection:
        database.keep_schema(connection)
        command.upgrade(alembic_config(connection), "head")
        database.forget_old_server(connection)


def check(database: Database) -> None:
    """Compare the database's revision with the newest.

    Raises:
        SchemaOutdatedError: they differ.
    """
    newest = ScriptDirectory.from_config(alembic_config()).get_current_head()
    with database.reading() as connection:
        present = MigrationContext.configure(connection).get_current_revision()
    if present != newest:
        raise SchemaOutdatedError(
            f"The database's schema is {present or 'missing'}, this release needs {newest}; "
            "run `walltimed db upgrade`."
        )


def alembic_config(connection: Connection | None = None) -> Config:
    """Alembic's view of the migrations, which run on ``connection``."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.attributes["connection"] = connection
    return config
