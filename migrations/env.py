"""Runs the migrations on the connection that the store hands over."""

from alembic import context

from service.store.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, transactional_ddl=True)
context.run_migrations()
