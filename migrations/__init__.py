"""Alembic migrations of the history store."""

NEWEST = "2026_11_28_packed"
"""The revision that this release needs; a start need not load Alembic to learn it."""
