"""The process in which pages are made: whoever looks at one takes no time from predictions."""

from functools import partial
from typing import Any

from service import logs
from service.errors import PagesBusyError, PageTooLongError
from service.settings import Settings
from service.store import open_store
from service.web.page_maker import PageMaker
from service.worker.processes import ChildProcess, come_second

LIMIT_SECONDS = 30.0
"""How long a page may take; the first one waits for the process to start."""

MOST_WAITING = 100
"""Pages that are being made or wait for that; more are refused."""


class PageProcess(ChildProcess):
    """Makes pages. It starts with the first page that is asked for.

    Args:
        settings: of the service.
        limit: seconds from asking for a page to its bytes.
    """

    def __init__(self, settings: Settings, *, limit: float = LIMIT_SECONDS) -> None:
        super().__init__(limit, prepare=partial(prepare, settings), most_waiting=MOST_WAITING)

    async def make(self, page: str, **told: Any) -> bytes:
        """The bytes of a page.

        Args:
            page: the method of ``PageMaker`` that makes it.
            told: what that method takes.

        Raises:
            PagesBusyError: too many pages wait already.
            PageTooLongError: it took too long.
        """
        return await self.run(made, page, told)

    def busy(self) -> PagesBusyError:
        """Told to whoever asks while too many wait."""
        return PagesBusyError(f"{self.most_waiting} pages are being made already.")

    def too_long(self) -> PageTooLongError:
        """Told to whoever has waited for the whole limit."""
        return PageTooLongError(f"The page could not be made within {self.limit:g} s.")


makers: list[PageMaker] = []
"""In the process: the one that makes its pages."""


def prepare(settings: Settings) -> None:
    """In the process: leave the processor to predictions, and be ready to make pages."""
    come_second()
    logs.configure(settings)
    store = open_store(
        settings.database_url.get_secret_value(), sqlite_synchronous=settings.sqlite_synchronous
    )
    makers.append(PageMaker(settings, store))


def made(page: str, told: dict[str, Any]) -> bytes:
    """In the process: a page."""
    return makers[-1].make(page, told)
