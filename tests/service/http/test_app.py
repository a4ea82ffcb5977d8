"""What the application is made of, and what ends with it."""

from asgi_client import InProcess
from fastapi import FastAPI
from fastapi.telemetry import _asgi
from pages_here import PagesHere

from service.http.app import create_app
from service.settings import Settings


def test_what_makes_pages_ends_with_the_service(sqlite_url, monkeypatch):
    ended = []
    close = PagesHere.close
    monkeypatch.setattr(PagesHere, "close", lambda pages: ended.append(pages) or close(pages))
    with InProcess(sqlite_url):
        assert ended == []
    assert len(ended) == 1


def test_an_opentelemetry_sdk_that_is_installed_watches_no_request(monkeypatch):
    monkeypatch.setattr(_asgi, "_unconfigured", lambda _provider: False)
    assert FastAPI()._native_telemetry.enabled()
    app = create_app(Settings(database_url="sqlite:///never-opened"))
    assert not app._native_telemetry.enabled()
