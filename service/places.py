"""Default places of the history and the settings file."""

import os
from pathlib import Path

SYSTEM_SETTINGS = Path("/etc/walltimed/walltimed.toml")
SYSTEM_DIRECTORY = Path("/var/lib/walltimed")
HISTORY = "walltimed.sqlite3"


class NotYoursError(PermissionError):
    """Raised when a user may not use the files of this machine's service."""


def data_directory() -> Path:
    """Return the directory of the history.

    It is systemd's state directory if set, the system's directory for root and the service's own
    user, else the user's data directory (XDG Base Directory Specification).
    """
    if given := os.environ.get("STATE_DIRECTORY"):
        return Path(given.split(":", maxsplit=1)[0])
    if os.geteuid() == 0 or owns(SYSTEM_DIRECTORY):
        return SYSTEM_DIRECTORY
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "walltimed"


def history_url() -> str:
    """Return the URL of the history in the default directory."""
    return f"sqlite:///{data_directory() / HISTORY}"


def check_own_history() -> None:
    """Refuse a second history beside that of the machine's service.

    Raises:
        NotYoursError: this machine has a service, which runs as another user.
    """
    if data_directory() != SYSTEM_DIRECTORY and SYSTEM_DIRECTORY.is_dir():
        raise NotYoursError(
            f"The service of this machine keeps its history in {SYSTEM_DIRECTORY}, which is not "
            "yours: run this by `sudo -u walltimed`, or name a history of your own by "
            "--database-url."
        )


def settings_file() -> Path | None:
    """Return the system's settings file; None if there is none.

    Raises:
        NotYoursError: the file exists and this user may not read it.
    """
    try:
        if not SYSTEM_SETTINGS.is_file():
            return None
    except PermissionError:
        pass
    else:
        if os.access(SYSTEM_SETTINGS, os.R_OK):
            return SYSTEM_SETTINGS
    raise NotYoursError(
        f"{SYSTEM_SETTINGS} has the settings of this machine's service, and you may not read it: "
        "run this by `sudo -u walltimed`, or name a file of your own by --config."
    )


def owns(directory: Path) -> bool:
    """Return whether a directory exists and belongs to this user."""
    try:
        return directory.stat().st_uid == os.geteuid()
    except OSError:
        return False
