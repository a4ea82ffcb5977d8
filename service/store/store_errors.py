"""What can go wrong with the history store."""


class StoreError(Exception):
    """The history store could not do what it was asked."""


class StoreUnavailableError(StoreError):
    """The database cannot be reached or is too busy; the same call may succeed later."""


class StoreFullError(StoreError):
    """The database has no room left, so nothing was stored."""


class SchemaOutdatedError(StoreError):
    """The database's schema is not this release's; `walltimed db upgrade` brings it up."""


class NewerSchemaError(StoreError):
    """The schema is newer than this release."""


class ForeignDatabaseError(StoreError):
    """The database holds the tables of another program."""


class StoreDamagedError(StoreError):
    """The database's file is damaged, or no database at all."""


class EncodingError(StoreError):
    """The database cannot hold every name, because its encoding is not UTF8."""


class NotOursError(StoreError):
    """The operation belongs to the database's own tools."""


class RefusedRecordError(StoreError):
    """The database refuses a value, for example a text with a NUL character in it."""
