"""Pages are made in a process of their own, which predictions never wait for."""

import asyncio
import os

import pytest

from service.auth import EVERYBODY
from service.errors import PagesBusyError, PageTooLongError
from service.settings import Settings
from service.web.frame import Frame, PageQuery, Visitor
from service.web.site import MOST_WAITING, PageProcess
from service.worker.processes import LOWEST_PRIORITY

FRAME = Frame(Visitor(EVERYBODY), "/tuning", "default", ("default",), "http://localhost")
ROUNDS = ("tuning", FRAME, PageQuery())


@pytest.fixture(scope="module")
def settings(lasting_url):
    """Of a service with an empty history."""
    return Settings(database_url=lasting_url())


@pytest.fixture(scope="module")
def process(settings):
    """A process that makes pages."""
    process = PageProcess(settings)
    yield process
    process.close()


def test_pages_are_made_in_another_process_that_lets_others_go_first(process):
    async def asked() -> tuple[bytes, int, int]:
        page = await process.make(*ROUNDS)
        return page, await process.run(os.getpid), await process.run(os.nice, 0)

    page, child, niceness = asyncio.run(asked())
    assert page.startswith(b"<!doctype html>")
    assert child != os.getpid()
    assert niceness == LOWEST_PRIORITY


def test_an_error_of_the_process_is_told_as_it_is(process):
    with pytest.raises(ValueError, match="nine"):
        asyncio.run(process.run(int, "nine"))


def test_more_pages_than_can_wait_are_refused(process, monkeypatch):
    monkeypatch.setattr(process, "waiting", MOST_WAITING)
    with pytest.raises(PagesBusyError, match="100 pages are being made already"):
        asyncio.run(process.make(*ROUNDS))


def test_a_process_that_dies_of_each_page_is_told_in_a_sentence(settings):
    process = PageProcess(settings, limit=0.5)
    with pytest.raises(PageTooLongError, match=r"could not be made within 0\.5 s"):
        asyncio.run(process.run(os._exit, 1))
    process.close()
