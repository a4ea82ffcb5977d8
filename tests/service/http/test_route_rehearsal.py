"""Bytes routes rest on insides of FastAPI; here it is seen if these change."""

import pytest
from asgi_client import run_of
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from structlog.testing import capture_logs

from service.http import app
from service.http.bytes_route import BytesRoute, MsgspecRoute
from service.http.rehearsal import NotAsSupposedError
from service.http.route_rehearsal import fitting, rehearse_route


@pytest.mark.parametrize("kind", [BytesRoute, MsgspecRoute])
def test_the_installed_fastapi_does_what_the_routes_suppose(kind):
    rehearse_route(kind)
    assert fitting(kind) is kind


READ = ("body_params", "path_params", "query_params", "header_params", "cookie_params",
        "dependencies", "request_param_name", "response_param_name",
        "background_tasks_param_name")  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_where_fastapi_has_changed_plain_fastapi_serves_and_the_log_says_so(monkeypatch, name):
    """As if FastAPI kept the parameters of this kind elsewhere, and left the old place empty."""
    monkeypatch.setattr(Dependant, name, property(lambda _: [], lambda *_: None), raising=False)
    fitting.cache_clear()
    with capture_logs() as logged:
        assert fitting(BytesRoute) is APIRoute
    fitting.cache_clear()
    (record,) = logged
    assert record["event"].startswith("plain FastAPI serves")
    assert record["log_level"] == "error"


def test_a_route_that_ignores_its_body_is_noticed():
    class Deaf(BytesRoute):
        def validator(self):
            return lambda _: self.body_type(words="")

    with pytest.raises(NotAsSupposedError):
        rehearse_route(Deaf)


def test_plain_fastapi_serves_as_well(serve, sqlite_url, monkeypatch):
    monkeypatch.setattr(app, "fitting", lambda _: APIRoute)
    service = serve(sqlite_url)
    assert service.complete(*(run_of(str(n), runtime=60.0) for n in range(5)))["accepted"] == 5
    assert service.predict(user="ada")["basis"]["reason"] == "history"
    assert service.post("/v1/predictions", {"requested_walltime": -1}).status_code == 422
    assert service.post("/v1/predictions", {"requested_walltime": 1}).status_code == 200
