"""A full disk is an error, not an acknowledgement, and passes."""

import resource
import shutil
import sqlite3
import subprocess

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

    def __init__(self, directory) -> None:
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
        root = f"/proc/{service.process.pid}/root"
        (type(self.directory)(root + str(self.directory)) / "ballast").unlink()


class FileSizeLimit:
    """A limit to the size of the files that the service writes; the log is below it."""

    wrapper = ()

    def __init__(self, directory) -> None:
        self.directory = directory

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
        assert refused.json()["error"] == "StoreFullError"
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


def stored_job_ids(service: Service, directory) -> list[str]:
    """What is in the database, read beside the running service."""
    file = f"/proc/{service.process.pid}/root{directory}/walltimed.sqlite3"
    with sqlite3.connect(file) as connection:
        rows = connection.execute("SELECT job_id FROM completions ORDER BY seq").fetchall()
    connection.close()
    return [row[0] for row in rows]
