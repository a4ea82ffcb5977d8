"""Taking over changed settings while the service runs, as SIGHUP asks."""

import tomllib
from typing import Any

import structlog

from service import logs
from service.settings import RELOADABLE, Settings

log = structlog.get_logger()


class Reloading:
    """Reads the settings file again, and takes over what may change while the service runs.

    The environment of a process does not change: what it says goes on winning over the file.

    Args:
        settings: those in force, which are changed in place: whoever uses them holds them.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._file = self._of_file()

    def reload(self) -> frozenset[str]:
        """Read the file, put its settings in force, and return the names of those that changed."""
        try:
            file, found = self._of_file(), Settings(config=self._settings.config)
        except (ValueError, OSError) as error:
            log.error("settings are refused, the old ones stay in force", reason=str(error))  # noqa: TRY400 - the sentence says it all
            return frozenset()
        names = file.keys() | self._file.keys()
        changed = frozenset(name for name in names if file.get(name) != self._file.get(name))
        self._file = file
        self._settings.take_over(found, RELOADABLE)
        logs.set_level(self._settings)
        log.info("settings were read again", changed=sorted(changed & RELOADABLE))
        if waiting := changed - RELOADABLE:
            log.warning("some settings wait for a restart", settings=sorted(waiting))
        return changed

    def _of_file(self) -> dict[str, Any]:
        """The settings in the file as written; none if there is no file."""
        file = self._settings.config
        return tomllib.loads(file.read_text("utf-8")) if file else {}
