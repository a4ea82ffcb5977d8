"""Compressed files that expand without end, and lines without end, in what commands read."""

import gzip
import lzma
import os
import resource
import subprocess

import pytest
from running_service import WALLTIMED

from service.adapters.history_files import LARGEST_JSON

pytestmark = [pytest.mark.acceptance, pytest.mark.lengthy(60), pytest.mark.timeout(600)]

SIZE = 300 << 20
"""Bytes to which each expands."""

MOST_MEMORY = 200 << 20
"""Bytes of memory that reading one takes, beside those of reading an empty file."""

LINES = {
    "one line of fields": b"1 " * (1 << 15),
    "lines that are no jobs": b"x\n" * (1 << 15),
    "comments": b";\n" * (1 << 15),
    "one line of a letter": b"a" * (1 << 16),
    "records of PBS": b"x;E;1;u=1\n" * (1 << 12),
}


def written(path, pack, content):
    """A file of SIZE bytes before its compression, made without them in memory."""
    with pack.open(path, "wb", **({"preset": 0} if pack is lzma else {})) as file:
        for _ in range(SIZE // len(content)):
            file.write(content)
    return path


def outcome(*command):
    """Exit code, output and largest memory in bytes of a command."""
    program = (
        "import resource, subprocess, sys\n"
        "done = subprocess.run(sys.argv[1:], capture_output=True, text=True)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
        "print(done.stderr)\nsys.exit(done.returncode)"
    )
    found = subprocess.run(
        [WALLTIMED.with_name("python"), "-c", program, WALLTIMED, *map(str, command)],
        capture_output=True, text=True, check=False, timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30)),
    )  # fmt: skip
    kibibytes, _, errors = found.stdout.partition("\n")
    return found.returncode, errors, int(kibibytes) << 10


@pytest.fixture(scope="module")
def usual_memory(tmp_path_factory):
    """What the command takes to read a file without jobs."""
    file = tmp_path_factory.mktemp("empty") / "empty.swf"
    file.write_bytes(b"; Version: 2.2\n")
    return outcome("import", "--dry-run", file)[2]


@pytest.fixture
def bomb(request, tmp_path):
    """A file of one of the kinds, compressed."""
    kind, pack = request.param
    return written(tmp_path / "bomb", pack, LINES[kind])


@pytest.mark.parametrize(
    ("bomb", "command"),
    [
        (("one line of fields", gzip), ("import", "--dry-run", "--format", "swf")),
        (("one line of fields", gzip), ("replay", "--in-process")),
        (("lines that are no jobs", gzip), ("import", "--dry-run", "--format", "swf")),
        (("comments", lzma), ("import", "--dry-run")),
        (("one line of a letter", lzma), ("import", "--dry-run", "--format", "sacct")),
        (("records of PBS", gzip), ("import", "--dry-run", "--format", "pbs")),
        (("one line of fields", gzip), ("backtest", "--format", "pbs")),
    ],
    indirect=["bomb"],
)
def test_a_bomb_is_refused_before_it_takes_memory(bomb, command, usual_memory, tell):
    code, errors, memory = outcome(*command, bomb)
    tell(f"{bomb.stat().st_size >> 10} kB took {(memory - usual_memory) >> 20} MB beside the usual")
    assert code == 2, errors
    assert any(word in errors for word in ("KiB", "times its size", "malformed", "comment")), errors
    assert memory - usual_memory < MOST_MEMORY


def test_json_that_is_too_long_is_refused_before_it_is_decoded(tmp_path, usual_memory, tell):
    """What is read of it is bounded; the rest of the file is a hole."""
    file = tmp_path / "sacct.json"
    file.write_bytes(b'{"jobs": [\n')
    os.truncate(file, LARGEST_JSON + (64 << 20))
    code, errors, memory = outcome("import", "--dry-run", file)
    tell(f"{file.stat().st_size >> 20} MB took {(memory - usual_memory) >> 20} MB beside the usual")
    assert code == 2, errors
    assert f"{file} is more than {LARGEST_JSON >> 20} MiB of JSON" in " ".join(errors.split())
    assert memory - usual_memory < LARGEST_JSON + MOST_MEMORY / 4
