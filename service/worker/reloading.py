"""Taking over changed settings while the service runs, as SIGHUP asks."""

import structlog

from service import logs
from service.settings import RELOADABLE, Settings

log = structlog.get_logger()


class Reloading:
    """Reads the settings again, and takes over those that may change while the service runs.

    Options of the command line and what the other settings were at the start stay in force.

    Args:
        settings: those in force, which are changed in place: whoever uses them holds them.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._read = self._read_again() or settings

    def reload(self) -> frozenset[str]:
        """Read and take over; the names of the settings that have changed."""
        found = self._read_again()
        if found is None:
            return frozenset()
        changed = frozenset(name for name, value in found if value != getattr(self._read, name))
        self._read = found
        self._settings.take_over(found, changed & RELOADABLE)
        logs.set_level(self._settings)
        log.info("settings were read again", changed=sorted(changed & RELOADABLE))
        if waiting := changed - RELOADABLE:
            log.warning("some settings wait for a restart", settings=sorted(waiting))
        return changed

    def _read_again(self) -> Settings | None:
        """What the environment and the file say now; None, and a record, if it is refused."""
        try:
            return Settings(config=self._settings.config)
        except (ValueError, OSError) as error:
            log.error("settings are refused, the old ones stay in force", reason=str(error))  # noqa: TRY400 - the sentence says it all
            return None
