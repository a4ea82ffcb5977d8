"""Pages made in the test's own process: starting another takes seconds each time."""

import asyncio
import pickle

from service.store import open_store
from service.web.frame import PageSources
from service.web.site import PageMaker, PageProcess, makers


class PagesHere(PageProcess):
    """Makes pages as the process does, of what comes through a pipe, and one after the other."""

    def __init__(self, settings):
        super().__init__(settings)
        self._store = open_store(settings.database_url.get_secret_value())
        self._maker = PageMaker(PageSources(settings, self._store))

    @property
    def is_running(self):
        return True

    @property
    def maker(self):
        """What the process holds."""
        return self._maker

    async def run(self, function, *arguments):
        async with self._turn:
            makers[:] = [self._maker]
            return await asyncio.to_thread(function, *pickle.loads(pickle.dumps(arguments)))

    def close(self):
        self._store.close()
