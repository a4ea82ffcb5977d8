"""Deleting what the history holds of a person, or of long ago."""

from sqlalchemy import Connection, delete

from service.store.tables import completions, predictions


def forget_user(connection: Connection, user: str) -> int:
    """Delete a user's runs and predictions, on all clusters; returns how many runs."""
    connection.execute(delete(predictions).where(predictions.c.user_name == user))
    return connection.execute(delete(completions).where(completions.c.user_name == user)).rowcount


def forget_before(connection: Connection, time: float) -> int:
    """Delete runs that ended, and predictions that were recorded, before; returns how many runs."""
    connection.execute(delete(predictions).where(predictions.c.recorded_at < time))
    return connection.execute(delete(completions).where(completions.c.end_time < time)).rowcount
