"""A full disk is an error, not an acknowledgement, and passes."""

import resource
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from running_service import Service, completion

pytestmark = pytest.mark.acceptance

BATCH = 200


class FullFileSystem:
    """A file system of 4 MB that the service alone sees and that ends with it."""

    _SCRIPT = (
        'mount -t tmpfs -o size=4m tmpfs "$0" && head -c 1M /dev/zero > "$0/ballast" && exec "$@"'
    )

    error = "StoreFullError"

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.wrapper = ("unshare", "--mount", "--map-root-user", "--user", "sh", "-c",
                        self._SCRIPT, str(directory))  # fmt: skip
        if shutil.which("unshare") is None:
            pytest.skip("no unshare to make a file system with")
        tried = subprocess.run([*self.wrapper, "true"], capture_output=True, text=True, check=False)
        if tried.returncode:
            pytest.skip(f"no mount is allowed here: {tried.stderr.strip()}")

    def fill(self, service: Service) -> None:
        """The completions themselves fill it."""

    def make_room(self, service: Service) -> None:
        """Remove the ballast, through the eyes of the service."""
        Path(f"/proc/{service.process.pid}/root{self.directory}/ballast").unlink()


class FileSizeLimit:
    """A limit to the size of the files that the service writes; the log is below it."""

    error = "StoreUnavailableError"  # to SQLite it is an I/O error like any other
    wrapper = ()

    def __init__(self, directory: Path) -> None:
        pass

    def fill(self, service: Service) -> None:
        """No file may grow beyond 1 MB."""
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (1 << 20, -1))

    def make_room(self, service: Service) -> None:
        """Lift the limit."""
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (-1, -1))


@pytest.mark.parametrize("disk_kind", [FullFileSystem, FileSizeLimit])
def test_nothing_is_acknowledged_that_a_full_disk_did_not_take(tmp_path, disk_kind):
    disk = disk_kind(tmp_path)
    url = f"sqlite:///{tmp_path / 'walltimed.sqlite3'}"
    with Service(url, wrapper=disk.wrapper) as service:
        disk.fill(service)
        acknowledged, refused = post_until_refused(service)
        assert refused.status_code == httpx.codes.SERVICE_UNAVAILABLE
        assert refused.json()["error"] == disk.error
        assert int(refused.headers["Retry-After"]) >= 1
        assert service.predict("ada") == pytest.approx(900.0)

        disk.make_room(service)
        again = service.complete(*acknowledged[-BATCH:], completion("after"))
        assert again.json() == {"accepted": 1, "duplicates": BATCH}
        stored = stored_job_ids(service, tmp_path)
        assert stored == [run["job_id"] for run in acknowledged] + ["after"]


def post_until_refused(service: Service) -> tuple[list[dict], httpx.Response]:
    """Everything that was acknowledged until the first answer that is no acknowledgement."""
    acknowledged: list[dict] = []
    while len(acknowledged) < 100_000:
        first = len(acknowledged)
        batch = [completion(f"job-{first + number}") for number in range(BATCH)]
        answer = service.complete(*batch)
        if not answer.is_success:
            return acknowledged, answer
        assert answer.json() == {"accepted": BATCH, "duplicates": 0}
        acknowledged += batch
    raise AssertionError("the disk never got full")


def stored_job_ids(service: Service, directory: Path) -> list[str]:
    """What is in the database, from a copy of its files as the service sees them."""
    seen = Path(f"/proc/{service.process.pid}/root{directory}")
    copies = directory / "copies"
    copies.mkdir()
    for name in ("walltimed.sqlite3", "walltimed.sqlite3-wal"):
        shutil.copy(seen / name, copies / name)
    with closing(sqlite3.connect(copies / "walltimed.sqlite3")) as connection:
        rows = connection.execute("SELECT job_id FROM completions ORDER BY seq")
        return [row[0] for row in rows]
