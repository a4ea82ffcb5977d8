"""``walltimed check-config``: whether ``serve`` would start with these settings."""

from service.cli.console import AsJson, out, print_json
from service.cli.options import ConfigFile, DatabaseUrl, check_parameters, load_settings
from service.cli.stores import is_embedded, opened, surplus_of


def check_config(
    *, database_url: DatabaseUrl = None, file: ConfigFile = None, as_json: AsJson = False
) -> None:
    """Check whether `walltimed serve` would start, and change nothing.

    Checks every setting, the methods and their parameters, and the history store. The exit code
    is 2 for a wrong setting, 4 for a store that cannot be reached, and 1 for a schema that must be
    upgraded.

    For example:

        walltimed check-config --config /etc/walltimed/walltimed.toml
    """
    settings = load_settings(database_url=database_url, config=file)
    check_parameters(settings)
    with opened(settings) as store:
        if not is_embedded(settings):
            store.check()
        warnings = surplus_of(store, settings)
    if as_json:
        print_json({"config": "good", "warnings": warnings})
        return
    out.print("walltimed would start with these settings.")
    for warning in warnings:
        out.print(f"But: {warning}", soft_wrap=True)
