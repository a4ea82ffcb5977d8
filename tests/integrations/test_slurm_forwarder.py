"""The forwarder: the token stays in a file, and documents go to the service and nowhere else."""

import getpass
import os
import pwd
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest
import site_scripts
from fake_service import MOST_TAKEN, fake_service, http
from private_slurm import free_ports
from running_service import eventually

PATH = "/v1/adapters/slurm/jobcomp?cluster=hill"
DOCUMENT = {"jobid": 7, "script": "#!/bin/sh\n" * 200_000}  # curl asks before it sends so much
JSON = "Content-Type: application/json"
OK = http(200, b"{}", JSON)


@pytest.fixture(scope="module")
def module():
    return site_scripts.loaded(site_scripts.FORWARDER)


@pytest.fixture
def token(tmp_path):
    file = tmp_path / "token"
    file.write_text("wt_1_secret\n")
    return file


@contextmanager
def forwarding(module, url, token, user=None):
    """A forwarder in a thread, by default for our own documents; gives a client of it."""
    users = {os.getuid() if user is None else user}
    with module.Server(("127.0.0.1", 0), module.Service(url, str(token)), users) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{server.server_port}") as client:
                yield client
        finally:
            server.shutdown()
            thread.join()


def test_documents_arrive_unchanged_and_with_the_token(module, token):
    with fake_service(OK) as service, forwarding(module, service.url, token) as client:
        assert client.post(PATH, json=DOCUMENT).status_code == 200
        token.write_text("wt_2_new\n")
        assert client.post(PATH, json=DOCUMENT).status_code == 200
    assert service.requests == [DOCUMENT] * 2
    assert service.headers[0].startswith(f"POST {PATH} HTTP/1.1\r\n")
    assert "Authorization: Bearer wt_1_secret\r\n" in service.headers[0]
    assert "Authorization: Bearer wt_2_new\r\n" in service.headers[1]


def test_a_service_on_a_unix_socket_is_reached(module, token):
    with TemporaryDirectory() as directory:
        path = Path(directory) / "socket"
        with fake_service(OK, path=path) as service:
            with forwarding(module, f"unix:{path}", token) as client:
                assert client.post(PATH, json=DOCUMENT).status_code == 200
            assert service.requests == [DOCUMENT]


@pytest.mark.parametrize("status", [201, 400, 500, 503])
def test_the_services_answer_goes_back(module, token, status):
    answer = http(status, b"{}")
    with fake_service(answer) as service, forwarding(module, service.url, token) as client:
        assert client.post(PATH, json={}).status_code == status


@pytest.mark.parametrize("refused", [401, 403])
def test_a_refused_token_is_told_once(module, token, capsys, refused):
    refusal = http(refused, b"{}")
    with fake_service(refusal) as service, forwarding(module, service.url, token) as client:
        for answer, status in (
            (refusal, refused),
            (refusal, refused),
            (OK, 200),
            (refusal, refused),
        ):
            service.answer = answer
            assert client.post(PATH, json={}).status_code == status
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2
    assert str(token) in told[0]


def test_a_page_of_something_else_is_no_acknowledgement(module, token, capsys):
    page = http(200, b"<html>It works!</html>", "Content-Type: text/html")
    with fake_service(page) as service, forwarding(module, service.url, token) as client:
        assert client.post(PATH, json={}).status_code == 503
    assert "something else" in capsys.readouterr().err


def test_without_a_service_or_a_token_slurm_keeps_its_documents(module, token, capsys):
    with fake_service() as service:
        pass
    with forwarding(module, service.url, token) as client:
        assert [client.post(PATH, json={}).status_code for _ in range(3)] == [503] * 3
        token.unlink()
        assert client.post(PATH, json={}).status_code == 503
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2
    assert "ConnectionRefusedError" in told[0]
    assert "FileNotFoundError" in told[1]


def test_a_service_on_a_unix_socket_that_hangs_is_given_up(module, token, monkeypatch, capsys):
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    with TemporaryDirectory() as directory:
        path = Path(directory) / "socket"
        with fake_service(None, path=path), forwarding(module, f"unix:{path}", token) as client:
            assert client.post(PATH, json={}).status_code == 503
    assert "timed out" in capsys.readouterr().err


def test_an_answer_that_never_ends_is_not_read(module, token):
    endless = http(200, b"", JSON, length=10**12)
    with (
        fake_service(endless, forever=b"x" * 1000) as service,
        forwarding(module, service.url, token) as client,
    ):
        assert client.post(PATH, json={}).status_code == 200
    assert service.sent < MOST_TAKEN


def test_nobody_but_slurms_user_is_listened_to(module, token):
    stranger = os.getuid() + 1
    with (
        fake_service(OK) as service,
        forwarding(module, service.url, token, stranger) as client,
        pytest.raises(httpx.TransportError),
    ):
        client.post(PATH, json={})
    assert service.requests == []


def test_a_socket_that_its_owner_has_closed_is_nobodys(module, token):
    """The kernel lists it as root's: a burst of 200 once forged a run for everybody."""
    request = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{{}}".encode()
    with (
        fake_service(OK) as service,
        module.Server(("127.0.0.1", 0), module.Service(service.url, str(token)), {0}) as server,
    ):
        server.timeout = 5
        for _ in range(200):
            with socket.create_connection(server.server_address, 10) as connection:
                connection.sendall(request)
            server.handle_request()
    assert service.requests == []


@pytest.mark.parametrize("path", ["/", "/v1/completions", "/v1/adapters/slurm/jobcomp/../x", "*"])
def test_nothing_but_documents_is_passed_on(module, token, path):
    request = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{{}}"
    with fake_service(OK) as service, forwarding(module, service.url, token) as client:
        status, *headers = said(client, request).decode().splitlines()
    assert status.startswith("HTTP/1.1 404 ")
    assert {"Content-Length: 0", "Connection: close"} <= set(headers)
    assert service.requests == []


@pytest.mark.parametrize("length", ["-1", "many", ""])
def test_a_document_of_no_length_is_not_passed_on(module, token, length):
    request = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{{}}"
    with fake_service(OK) as service, forwarding(module, service.url, token) as client:
        assert said(client, request).startswith(b"HTTP/1.1 411 ")
    assert service.requests == []


def test_a_document_larger_than_any_is_dropped_and_not_sent_again(
    module, token, monkeypatch, capsys
):
    monkeypatch.setattr(module, "LARGEST", 10**6)
    with fake_service(OK) as service, forwarding(module, service.url, token) as client:
        length = 2**24
        head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n"
        assert said(client, head + " " * length).startswith(b"HTTP/1.1 200 "), "it took all of it"
    assert service.requests == []
    assert f"{length} bytes" in capsys.readouterr().err


def test_a_document_of_the_largest_size_is_passed_on(module, token, monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 2)
    with fake_service(OK) as service, forwarding(module, service.url, token) as client:
        assert client.post(PATH, content=b"{}").status_code == 200
        assert client.post(PATH, content=b"{ }").status_code == 200
    assert service.requests == [{}]


def test_whoever_leaves_in_the_middle_of_a_large_document_holds_nobody_up(
    module, token, monkeypatch
):
    monkeypatch.setattr(module, "LARGEST", 2)
    request = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 999\r\n\r\n{{}}"
    with fake_service(OK) as service, forwarding(module, service.url, token) as client:
        there = (client.base_url.host, client.base_url.port)
        with socket.create_connection(there, 10) as connection:
            connection.sendall(request.encode())
        assert client.post(PATH, json={}, timeout=30).status_code == 200
    assert service.requests == [{}]


def test_a_sender_that_stalls_is_given_up(module):
    """Documents come one by one: one that never ends would hold up all others."""
    assert 0 < module.Forwarder.timeout <= 60


def said(client, request):
    with socket.create_connection((client.base_url.host, client.base_url.port), 10) as connection:
        connection.sendall(request.encode())
        return connection.recv(1000)


def test_it_does_not_start_without_a_token_file(module, capsys):
    with pytest.raises(SystemExit, match="2"):
        module.parsed([])
    assert "--token-file" in capsys.readouterr().err


def test_slurms_user_is_listened_to_on_loopback_and_nobody_else(module, monkeypatch):
    class Noted(module.Server):
        def __init__(self, address, service, users):
            super().__init__((address[0], 0), service, users)
            noted.append((*address, users))

        def serve_forever(self):
            raise KeyboardInterrupt

    noted = []
    monkeypatch.setattr(module, "Server", Noted)
    monkeypatch.setattr(module.signal, "signal", lambda *_: None)
    assert module.main(["--token-file", "x", "--user", "nobody"]) == 0
    assert noted == [("127.0.0.1", 8581, {pwd.getpwnam("nobody").pw_uid})]


def test_a_user_that_does_not_exist_is_told_in_a_sentence(module, capsys):
    assert module.main(["--token-file", "x", "--user", "no-such-user"]) == 1
    told = capsys.readouterr().err
    assert "'no-such-user'" in told


def test_a_port_that_is_taken_or_is_none_is_told_in_a_sentence(module, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for port in (taken.getsockname()[1], 70_000):
            asked = ["--token-file", "x", "--user", "root", "--port", str(port)]
            assert module.main(asked) == 1
            told = capsys.readouterr().err
            assert told.startswith(f"port {port} of 127.0.0.1 cannot be listened on: ")


def test_it_runs_as_the_unit_starts_it_and_ends_at_sigterm(token):
    (port,) = free_ports(1)
    with fake_service(OK) as service:
        command = [
            sys.executable,
            site_scripts.FORWARDER,
            "--token-file",
            token,
            "--url",
            service.url,
        ]
        command += ["--port", str(port), "--user", getpass.getuser()]
        process = subprocess.Popen(command)
        try:
            eventually(lambda: is_answered(f"http://127.0.0.1:{port}{PATH}"))
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()
            process.wait()
    assert service.requests == [{"jobid": 7}]


def is_answered(url):
    try:
        return httpx.post(url, json={"jobid": 7}).is_success
    except httpx.TransportError:
        return False
