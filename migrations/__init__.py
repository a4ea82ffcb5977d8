"""Alembic migrations of the history store."""
