"""``walltimed check-config``: whether ``serve`` would start with these settings."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from service.cli.options import DatabaseUrl, check_parameters, load_settings
from service.cli.stores import is_embedded, opened, surplus_of
from simulator.cli.console import CommandError, ExitCode, check_file, out, print_json
from simulator.cli.options import AsJson, ConfigFile

if TYPE_CHECKING:
    from service.settings import Settings
    from service.store import Store


def check_config(
    *, database_url: DatabaseUrl = None, file: ConfigFile = None, as_json: AsJson = False
) -> None:
    """Check whether `walltimed serve` would start, and change nothing.

    Checks every setting, the methods and their parameters, and the history store. The exit code
    is 2 for a wrong setting or a missing token, 4 for a store that cannot be reached, and 1 for a
    schema that must be upgraded or is newer.

    For example:

        walltimed check-config --config /etc/walltimed/walltimed.toml
    """
    settings = load_settings(database_url=database_url, config=file)
    check_parameters(settings)
    check_file(settings.unix_socket)
    with opened(settings) as store:
        check_store(store, settings)
        warnings = surplus_of(store, settings)
    if as_json:
        print_json({"config": "good", "warnings": warnings})
        return
    out.print("walltimed would start with these settings.")
    for warning in warnings:
        out.print(f"But: {warning}", soft_wrap=True)


def check_store(store: "Store", settings: "Settings") -> None:
    """Refuse a store that `serve` would refuse; a file that is missing or old, it makes current.

    Raises:
        StoreError: the store cannot be reached or used.
        CommandError: no file can be made where it is to be.
        NotProtectedError: calls from elsewhere would need no token.
    """
    from service.auth import check_protected
    from service.store import SchemaOutdatedError

    if not is_embedded(settings):
        store.check()
    elif not Path(store.name).exists():
        check_place(Path(store.name).parent, can_be_made=settings.is_default_history)
        check_protected(settings, list)
        return
    else:
        try:
            store.check()
        except SchemaOutdatedError:
            return
    check_protected(settings, store.tokens.read_all)


def check_place(directory: Path, *, can_be_made: bool) -> None:
    """Refuse a directory in which no history can be made; one that is missing may be made, or not.

    Raises:
        CommandError: the message names it.
    """
    place = directory
    while can_be_made and not place.exists():
        place = place.parent
    if not os.access(place, os.W_OK):
        raise CommandError(f"No history can be made in {directory}.", ExitCode.UNAVAILABLE)
