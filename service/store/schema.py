"""Checks and upgrades the schema of a database."""

import time
from collections.abc import Collection
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Text, column, func, inspect, select, table

import migrations
from migrations import NEWEST
from service.store.database import (
    Database,
    ForeignDatabaseError,
    NewerSchemaError,
    SchemaOutdatedError,
)
from service.store.tables import completions, metadata, releases

if TYPE_CHECKING:
    from alembic.config import Config

_ALEMBIC = "alembic_version"
_REVISION = select(column("version_num", Text())).select_from(table(_ALEMBIC))


def upgrade(database: Database) -> bool:
    """Apply the migrations that are missing; several processes may try at once.

    Returns:
        Whether the history is new.

    Raises:
        NewerSchemaError: a newer release upgraded the database.
        ForeignDatabaseError: the database belongs to another program.
    """
    database.create()
    with database.writing() as connection:
        database.keep_schema(connection)
        before = _usable_revision(database, connection)
        if before != NEWEST:
            migrate(connection)
            _note_release(connection)
        database.forget_old_server(connection)
    return before is None


def check(database: Database) -> None:
    """Compare the database's revision with the newest.

    Raises:
        SchemaOutdatedError: it is older, or there is none.
        NewerSchemaError: a newer release upgraded the database.
        ForeignDatabaseError: the database belongs to another program.
    """
    with database.reading() as connection:
        present = _usable_revision(database, connection)
    if present != NEWEST:
        raise SchemaOutdatedError(
            f"The schema of {database.name} is {present or 'missing'}, this release needs "
            f"{NEWEST}; run `walltimed db upgrade`."
        )


def fingerprint(connection: Connection) -> str:
    """Return a hash of the time at which the history was created."""
    made_at = connection.execute(select(func.min(releases.c.upgraded_at))).scalar()
    return sha256(repr(made_at).encode()).hexdigest()[:16]


def _usable_revision(database: Database, connection: Connection) -> str | None:
    """Return the revision of a usable history; None if there is no history."""
    tables = inspect(connection).get_table_names()
    if _ALEMBIC not in tables or completions.name not in tables:
        _refuse_foreign(database, tables)
        return None
    present = connection.execute(_REVISION).scalar()
    if present not in {None, NEWEST} and present not in known_revisions():
        raise NewerSchemaError(_newer(database, connection, present, tables))
    return present


def _refuse_foreign(database: Database, tables: Collection[str]) -> None:
    """Refuse a database with tables of another program.

    After a downgrade of all migrations, Alembic's own table is left, empty.
    """
    in_the_way = set(tables) - {_ALEMBIC}
    if database.is_shared:
        in_the_way &= set(metadata.tables)
    if in_the_way:
        raise ForeignDatabaseError(
            f"{database.name} is the database of another program (its tables are "
            f"{', '.join(sorted(in_the_way)[:5])}): name another one in database_url."
        )


def _newer(
    database: Database, connection: Connection, present: str, tables: Collection[str]
) -> str:
    """Return a sentence that names the release of a newer schema, and a remedy."""
    writer = None
    if releases.name in tables:
        wanted = select(releases.c.release).where(releases.c.revision == present)
        writer = connection.execute(wanted).scalar()
    wrote = f"walltimed {writer}" if writer else "a newer walltimed"
    return (
        f"{database.name} was brought to schema {present} by {wrote}, and this is walltimed "
        f"{version('walltimed')}, which does not know it: run {wrote}, or restore a backup from "
        "before that upgrade."
    )


def _note_release(connection: Connection) -> None:
    """Store, for older releases, which release upgraded the schema."""
    connection.execute(releases.delete().where(releases.c.revision == NEWEST))
    connection.execute(
        releases.insert().values(
            revision=NEWEST, release=version("walltimed"), upgraded_at=time.time()
        )
    )


def migrate(connection: Connection) -> None:
    """Apply the migrations that are missing."""
    from alembic import command  # noqa: PLC0415 - takes long to load

    command.upgrade(alembic_config(connection), "head")


def known_revisions() -> frozenset[str]:
    """Return the revisions that this release can upgrade."""
    from alembic.script import ScriptDirectory  # noqa: PLC0415 - takes long to load

    scripts = ScriptDirectory.from_config(alembic_config())
    return frozenset(each.revision for each in scripts.walk_revisions())


def alembic_config(connection: Connection | None = None) -> "Config":
    """Return Alembic's view of the migrations, which run on ``connection``."""
    from alembic.config import Config  # noqa: PLC0415 - takes long to load

    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.attributes["connection"] = connection
    return config
