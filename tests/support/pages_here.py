"""Pages made in the test's own process: starting another takes seconds each time."""

import asyncio
import pickle

from service.store import open_store
from service.web.frame import PageSources
from service.web.site import PageMaker, PageProcess


class PagesHere(PageProcess):
    """Makes pages as the process does, of what comes through a pipe, and one after the other."""

    def __init__(self, settings):
        super().__init__(settings)
        self._store = open_store(settings.database_url.get_secret_value())
        self._maker = PageMaker(PageSources(settings, self._store))

    async def run(self, _function, *arguments):
        async with self._turn:
            return await asyncio.to_thread(self._maker.make, *pickle.loads(pickle.dumps(arguments)))

    def close(self):
        self._store.close()
