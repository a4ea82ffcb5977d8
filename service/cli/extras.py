"""Parts of walltimed that are installed only when asked for: the extras of its distribution."""

import sys
from importlib.util import find_spec

from service.cli.console import CommandError

EXTRAS = {
    "matplotlib": "reports",
    "pymoo": "tuning",
    "sklearn": "learning",
    "torch": "learning",
    "pyarrow": "parquet",
}
"""The extra that brings each package."""

DISTRIBUTIONS = {"sklearn": "scikit-learn"}
"""What is installed where it is not called like the package that is imported."""


def need(package: str, *, for_: object = True) -> None:
    """Refuse at once what would fail after its work for want of a package.

    Args:
        package: what is imported later.
        for_: what was asked for and needs it; nothing is needed for nothing.

    Raises:
        CommandError: it is not installed; the message names the extra that brings it.
    """
    if for_ and find_spec(package) is None:
        raise CommandError(missing(package))


def missing(package: str) -> str:
    """What to install where a package of an extra is missing.

    The package itself and not the extra: no index has a release of walltimed, so a name like
    ``walltimed[reports]`` would fetch nothing, or something of others.
    """
    return (
        f"This needs {package}, which is not installed (extra {EXTRAS[package]}): "
        f"{sys.executable} -m pip install {DISTRIBUTIONS.get(package, package)}"
    )
