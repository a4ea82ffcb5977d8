import io
import os
import signal
import socket
import sys

import pytest
from asgi_client import NOW, run_of
from running_service import Service, eventually

from service.auth import NotProtectedError
from service.http import server
from service.settings import Settings
from service.store import open_store


def test_settings_reach_other_processes_by_the_environment(monkeypatch, tmp_path):
    given = Settings(
        database_url="postgresql+psycopg://ada:secret@db/walltimed",
        host="::1",
        port=0,
        unix_socket=tmp_path / "socket",
        allow_unauthenticated=True,
        predictors={"percentile": {"percentile": 90, "key": "user"}},
        shadow_max_per_second=0.25,
    )
    for name in [name for name in os.environ if name.startswith("WALLTIMED_")]:
        monkeypatch.delenv(name)
    for name, value in given.environment().items():
        monkeypatch.setenv(name, value)
    assert Settings().model_dump() == given.model_dump()


def test_a_free_port_is_announced_and_accepts_at_once():
    with server.listening(Settings(port=0)) as (listener, address):
        host, port = listener.getsockname()
        assert address == f"http://127.0.0.1:{port}"
        assert port != 0
        socket.create_connection((host, port)).close()


def test_an_ipv6_address_is_written_in_brackets():
    with server.listening(Settings(host="::1", port=0)) as (_, address):
        assert address.startswith("http://[::1]:")


def test_a_port_in_use_is_an_error_that_says_what_to_do():
    with server.listening(Settings(port=0)) as (listener, _):
        port = listener.getsockname()[1]
        said = rf"Port {port} of 127\.0\.0\.1 is in use.* --port"
        with pytest.raises(OSError, match=said), server.listening(Settings(port=port)):
            pass


def test_a_unix_socket_takes_the_place_of_a_dead_one_and_goes_with_the_service(tmp_path):
    path = tmp_path / "socket"
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(path))
    dead.close()
    with server.listening(Settings(unix_socket=path)) as (_, address):
        assert address == f"unix:{path}"
        assert path.is_socket()
    assert not path.exists()


def test_the_unix_socket_of_a_running_service_is_left_to_it(tmp_path):
    settings = Settings(unix_socket=tmp_path / "socket")
    with server.listening(settings):
        with pytest.raises(OSError, match="in use"), server.listening(settings):
            pass
        assert settings.unix_socket.is_socket()


def test_a_socket_that_somebody_has_removed_is_not_missed(tmp_path):
    path = tmp_path / "socket"
    with server.listening(Settings(unix_socket=path)):
        path.unlink()
    assert not path.exists()


def test_nothing_but_a_socket_is_ever_replaced(tmp_path):
    path = tmp_path / "precious"
    path.write_text("data")
    with pytest.raises(OSError, match="in use"), server.listening(Settings(unix_socket=path)):
        pass
    assert path.read_text() == "data"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_beyond_loopback_a_token_must_have_been_issued(sqlite_url, host):
    settings = Settings(database_url=sqlite_url, host=host)
    with pytest.raises(NotProtectedError, match="walltimed token issue"):
        server.check_protected(settings)
    store = open_store(sqlite_url)
    token, _ = store.tokens.issue("filter", ["predict"], NOW)
    server.check_protected(settings)
    store.tokens.revoke(token.token_id, NOW)
    store.close()
    with pytest.raises(NotProtectedError):
        server.check_protected(settings)


@pytest.mark.parametrize(
    "options",
    [
        {"host": "127.0.0.1"},
        {"host": "::1"},
        {"host": "localhost"},
        {"allow_unauthenticated": True},
    ],
)
def test_loopback_and_the_insecure_need_no_token(options):
    server.check_protected(Settings(**{"host": "0.0.0.0"} | options))


@pytest.mark.acceptance
def test_several_processes_count_together_and_stop_together(sqlite_url):
    with Service(sqlite_url, "--workers", "2") as service:
        # Each connection is one worker's: enough of them reach both.
        for number in range(20):
            with service.connection():
                service.complete(run_of(number))
                service.predict(user="ada", job_id=f"p{number}")
        count = 'walltimed_requests_total{route="/v1/predictions",status="200"}'
        eventually(lambda: service.metric(count) == 20)
        assert service.metric('walltimed_completions_total{result="accepted"}') == 20
        assert service.metric("walltimed_ready") == 1
        directory = service.directory
        assert service.end(15) in {0, -15}
        assert not (directory / "socket").exists()


def test_one_of_several_workers_logs_as_it_is_set_and_stands_alone_in_its_process(monkeypatch):
    made = []
    monkeypatch.setenv("WALLTIMED_LOG_FORMAT", "json")
    monkeypatch.setattr(server.logs, "configure", made.append)
    monkeypatch.setattr(
        server,
        "create_app",
        lambda settings, *, owns_process: made.append((settings, owns_process)),
    )
    server.worker()
    configured, (settings, owns_process) = made
    assert configured is settings
    assert settings.log_format == "json"
    assert owns_process


@pytest.fixture
def served(monkeypatch):
    """How `run` serves, without a socket that accepts: each time what it finds set up."""
    found = []
    before = signal.getsignal(signal.SIGHUP)
    monkeypatch.setattr(server.logs, "configure", found.append)

    def note(how):
        def serve(_settings, listener):
            found.append((how, listener.getsockname(), signal.getsignal(signal.SIGHUP)))
            found.append(sys.stdout.buffer.getvalue().decode())

        return serve

    monkeypatch.setattr(server, "serve_alone", note("alone"))
    monkeypatch.setattr(server, "serve_together", note("together"))
    yield found
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(("workers", "how"), [(1, "alone"), (2, "together"), (3, "together")])
def test_a_service_tells_its_address_before_it_serves_in_one_process_or_several(
    served, tmp_path, workers, how, monkeypatch
):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO()))
    path = tmp_path / "socket"
    settings = Settings(unix_socket=path, workers=workers)
    server.run(settings)
    told = f"walltimed listens on unix:{path}\n"
    assert served == [settings, (how, str(path), signal.SIG_IGN), told]


def test_a_service_that_is_open_to_strangers_does_not_start(served, sqlite_url):
    with pytest.raises(NotProtectedError):
        server.run(Settings(database_url=sqlite_url, host="0.0.0.0", port=0))
    assert served == []


def test_the_store_in_which_tokens_are_looked_up_is_closed(sqlite_url, monkeypatch):
    store = open_store(sqlite_url)
    closed = []
    monkeypatch.setattr(store, "close", lambda: closed.append(store))
    monkeypatch.setattr(server, "open_store", lambda _url: store)
    with pytest.raises(NotProtectedError):
        server.check_protected(Settings(database_url=sqlite_url, host="0.0.0.0"))
    assert closed == [store]


def test_a_single_process_is_the_services_own(monkeypatch):
    made = []
    monkeypatch.setattr(
        server, "create_app", lambda _settings, *, owns_process: made.append(owns_process)
    )
    monkeypatch.setattr(
        server.uvicorn.Server, "run", lambda alone, sockets: made.append((alone.config, sockets))
    )
    server.serve_alone(Settings(), None)
    ((config, listeners),) = made
    assert listeners == [None]
    config.app()
    assert made[-1] is True
