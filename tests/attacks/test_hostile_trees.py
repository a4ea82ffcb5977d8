"""Commands that root runs where somebody else has put links and pipes touch nothing of others.

What `connect` writes is tried in tests/service/cli/test_connect.py.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

import pytest
from command_line import walltimed  # noqa: F401 - a fixture
from runs import a_run, reported
from site_scripts import FOLLOWER, loaded

from service.cli import Commands
from service.http.server import unix_listener
from service.store import open_store

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be led to what others may not do"),
    pytest.mark.timeout(120),
]

SOMEBODY = 65534
CONTENT = b"root's own, and no database"

WRITING = {
    "db upgrade": ("db", "upgrade", "-d", "{url}"),
    "db check": ("db", "check", "-d", "{url}"),
    "token": ("token", "issue", "filter", "--scope", "predict", "-d", "{url}"),
    "import": ("import", "{log}", "-d", "{url}"),
    "forget": ("forget", "--user", "ada", "--yes", "-d", "{url}"),
    "tune": ("tune", "-d", "{url}"),
    "backup": ("db", "backup", "{place}/copy", "-d", "{own_url}"),
    "restore": ("db", "restore", "{backup}", "-d", "{url}"),
    "export": ("export", "--output", "{place}/runs.csv", "-d", "{own_url}"),
    "replay": ("replay", "{log}", "--in-process", "-m", "requested", "--report", "{place}/page"),
    "replay rows": (
        "replay", "{log}", "--in-process", "-m", "requested", "--output", "{place}/rows.csv",
    ),
}  # fmt: skip
"""Command lines; {place} is a directory of somebody else's, with {url} a history in it."""

FILES = {
    "backup": ("copy", ".copy.unfinished"),
    "export": ("runs.csv", ".unfinished.runs.csv"),
    "replay": ("page", "page/table.txt", "page/.unfinished.index.html"),
    "replay rows": ("rows.csv", ".unfinished.rows.csv"),
    "restore": ("history.sqlite3", ".history.sqlite3.unfinished"),
    "tune": ("history.sqlite3", "history.sqlite3-tuning"),
}
"""Files that a command opens in that directory; without an entry the history."""

ELSEWHERE = {
    "serve": "the socket: below, and tests/attacks/test_starts.py",
    "demo": "writes into a directory of its own below TMPDIR",
    "connect": "tests/service/cli/test_connect.py",
    "warm-up": "machine code: below",
    "reconcile": "opens the history as import does",
    **dict.fromkeys(("backtest", "simulate"), "write as replay does, by terminal.files"),
    **dict.fromkeys(("config", "check-config", "doctor", "ask", "queue", "report"), "only reads"),
    **dict.fromkeys(("slurm-updater", "verify"), "only reads"),
}


def test_every_command_is_tried_here_or_elsewhere():
    assert {line[0] for line in WRITING.values()} | {*ELSEWHERE} == {*Commands.lazy}


class Tree:
    """A directory of somebody else's, and files of root's outside it."""

    def __init__(self, directory: Path) -> None:
        self.victim, self.absent = directory / "victim", directory / "absent"
        self.victim.write_bytes(CONTENT)
        self.victim.chmod(0o600)
        self.place = directory / "place"
        self.place.mkdir()
        log = directory / "log.swf"
        jobs = [f"{n} {60 * n} 0 30 1 -1 -1 1 600 -1 1 1 1 1 1 -1 -1 -1\n" for n in range(1, 9)]
        log.write_text("; MaxProcs: 8\n" + "".join(jobs))
        self.words = {
            "place": self.place,
            "url": f"sqlite:///{self.place}/history.sqlite3",
            "own_url": f"sqlite:///{directory}/own.sqlite3",
            "log": log,
            "backup": directory / "backup.sqlite3",
        }
        store = open_store(self.words["own_url"])
        store.upgrade()
        store.write([reported(*(a_run(str(each)) for each in range(9)))], [])
        store.back_up(self.words["backup"])
        store.close()

    def set_trap(self, name: str, trap: str) -> None:
        """Put a link or a pipe at a name in the directory, and give all there to somebody."""
        path = self.place / name
        path.parent.mkdir(exist_ok=True)
        if trap == "link":
            path.symlink_to(self.victim)
        elif trap == "dangling link":
            path.symlink_to(self.absent)
        elif trap == "hard link":
            path.hardlink_to(self.victim)
        else:
            os.mkfifo(path, 0o666)
        for each in (self.place, *self.place.rglob("*")):
            if trap != "hard link" or each != path:
                os.lchown(each, SOMEBODY, SOMEBODY)

    def check(self) -> None:
        """Check that nothing of root's has changed or come to be."""
        status = self.victim.stat()
        assert self.victim.read_bytes() == CONTENT
        assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (0, 0o600)
        assert not self.absent.exists()


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


@pytest.mark.parametrize("trap", ["link", "dangling link", "hard link", "pipe"])
@pytest.mark.parametrize(
    ("command", "name"),
    [(each, name) for each in WRITING for name in FILES.get(each, ("history.sqlite3",))],
)
def test_root_is_led_nowhere(walltimed, tree, command, name, trap):  # noqa: F811 - the fixture
    tree.set_trap(name, trap)
    line = [word.format(**tree.words) for word in WRITING[command]]
    code, _, complaint = walltimed(*line)
    tree.check()
    assert "Traceback" not in complaint
    is_the_file_itself = name in {FILES.get(command, ("history.sqlite3",))[0], "page/table.txt"}
    if trap in {"link", "dangling link"} and is_the_file_itself:
        assert code != 0, "root follows no link of somebody else"
        assert name.partition("/")[0] in complaint


def test_the_service_s_socket_takes_the_place_of_no_link(tree):
    tree.set_trap("socket", "link")
    with pytest.raises(OSError, match="in use"), unix_listener(tree.place / "socket"):
        pass
    tree.check()


@pytest.mark.parametrize("trap", ["link", "dangling link", "hard link", "pipe"])
def test_the_follower_of_pbs_stores_its_place_through_no_link(tree, trap):
    tree.set_trap("position.new", trap)
    with suppress(OSError):
        loaded(FOLLOWER).walltimed_accounting.store({"day": "1"}, str(tree.place / "position"))
    tree.check()


@pytest.mark.parametrize("rights", [(SOMEBODY, 0o755), (0, 0o775), (0, 0o757), (0, 0o755)])
def test_root_runs_no_machine_code_of_others(walltimed, tmp_path, monkeypatch, rights):  # noqa: F811 - the fixture
    owner, mode = rights
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    os.chown(tmp_path, owner, owner)
    tmp_path.chmod(mode)
    code, _, said = walltimed("--version")
    assert code == 0
    is_safe = rights == (0, 0o755)
    assert ("NUMBA_CACHE_DIR" in os.environ) is is_safe
    assert (f"{tmp_path} may be written by others" in said) is not is_safe
