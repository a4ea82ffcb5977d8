"""Who connects to the socket for users is who asks."""

import asyncio
import json
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
from running_service import Service, completion

from service.auth import Scope
from service.errors import MissingTokenError
from service.http import peers
from service.http.peers import PEER, Vouching

NOBODY = pwd.getpwnam("nobody").pw_uid

ASK = r"""
import socket, sys
with socket.socket(socket.AF_UNIX) as there:
    there.connect(sys.argv[1])
    there.sendall(f"GET {sys.argv[2]} HTTP/1.0\r\nHost: walltimed\r\n\r\n".encode())
    answer = b"".join(iter(lambda: there.recv(65536), b"")).decode()
head, _, body = answer.partition("\r\n\r\n")
print(head.split()[1], body)
"""


def connection(path, uid):
    return {"server": (str(path), None), PEER: uid}


def vouching(path, names=None):
    return Vouching(path, lambda name: name, named=(names or {}).get)


def test_only_the_socket_for_users_vouches(tmp_path):
    here = vouching(tmp_path / "users.sock")
    assert here.covers(connection(tmp_path / "users.sock", 5))
    assert not here.covers(connection(tmp_path / "service.sock", 5))
    assert not here.covers({"server": ("127.0.0.1", 8580)})
    assert not here.covers({"server": None, PEER: 5})
    assert not here.covers({"server": (str(tmp_path / "users.sock"), None)})
    assert not vouching(None).covers(connection(tmp_path / "users.sock", 5))
    assert not vouching(None).covers({"server": ("None", None), PEER: 5})


def test_a_user_sees_their_own_and_the_services_user_everything(tmp_path):
    here = vouching(tmp_path, {NOBODY: "nobody"})
    user = asyncio.run(here.caller(NOBODY))
    assert (user.scopes, user.only) == ({Scope.SELF}, "nobody")
    root = asyncio.run(here.caller(os.geteuid()))
    assert (root.scopes, root.only) == ({Scope.READ}, None)


def test_root_sees_everything_whoever_the_service_runs_as(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    here = vouching(tmp_path, {1: "daemon"})
    assert asyncio.run(here.caller(0)).scopes == {Scope.READ}
    assert asyncio.run(here.caller(NOBODY)).scopes == {Scope.READ}
    assert asyncio.run(here.caller(1)).only == "daemon"


def test_a_name_is_looked_up_once_until_too_many_are_kept(tmp_path, monkeypatch):
    """A directory server may have to be asked for it."""
    monkeypatch.setattr(peers, "REMEMBERED_USERS", 2)
    looked_up = []

    def named(uid):
        looked_up.append(uid)
        return f"user-{uid}"

    here = Vouching(tmp_path, lambda name: name, named=named)
    for uid in (11, 12, 11, 12, 13, 13, 11):
        assert asyncio.run(here.caller(uid)).only == f"user-{uid}"
    assert looked_up == [11, 12, 13, 11]


def test_the_kernel_names_the_user_at_the_other_end_of_a_unix_socket_only():
    class Transport:
        def __init__(self, connection):
            self.connection = connection

        def get_extra_info(self, name):
            assert name == "socket"
            return self.connection

    here, there = socket.socketpair(socket.AF_UNIX)
    with here, there:
        assert peers.uid_of(Transport(here)) == os.getuid()
    with socket.socket(socket.AF_INET) as network:
        assert peers.uid_of(Transport(network)) is None
    assert peers.uid_of(Transport(None)) is None


def test_a_user_without_a_name_is_not_let_in(tmp_path):
    with pytest.raises(MissingTokenError, match="4711"):
        asyncio.run(vouching(tmp_path).caller(4711))


@pytest.fixture
def open_directory():
    """A directory that every user may enter, with a short name as sockets need it."""
    directory = Path(tempfile.mkdtemp(prefix="users-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


def asked(path, call, user):
    """The status and the body of the answer that a user of this machine gets."""
    done = subprocess.run(
        ["/usr/bin/python3", "-I", "-c", ASK, path, call],
        user=user, capture_output=True, text=True, check=True, cwd="/", timeout=60,
    )  # fmt: skip
    status, _, body = done.stdout.partition(" ")
    return int(status), json.loads(body)


@pytest.mark.acceptance
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_the_kernel_says_who_asks(sqlite_url, open_directory, monkeypatch):
    path = open_directory / "users.sock"
    monkeypatch.setenv("WALLTIMED_USERS_SOCKET", str(path))
    with Service(sqlite_url) as service:
        service.complete(completion("1", user="nobody"), completion("2", user="ada"))
        # No token was ever issued: over the service's own socket everything is open.
        assert service.client.get("/v1/users/ada/accuracy").is_success
        assert asked(path, "/v1/users/nobody/accuracy", NOBODY)[0] == 200
        assert asked(path, "/v1/users/ada/accuracy", NOBODY)[0] == 403
        status, report = asked(path, "/v1/reports/users?since=0", NOBODY)
        assert status == 200
        assert [each["user"] for each in report["users"]] == ["nobody"]
        assert report["everybody"]["runs"] == 2
        assert asked(path, "/v1/users/ada/accuracy", 0)[0] == 200
