import gzip
import sys

import pytest

from simulator.traces.swf import read_swf, write_swf
from terminal.files import text_writer

LINE = "1 0 -1 9 1 -1 -1 1 9 -1 1 1 1 1 1 1 -1 -1\n"


def write_half(path):
    with text_writer(path) as file:
        file.write("half")
        raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["out.txt", "out.txt.gz"])
def test_what_is_broken_off_leaves_the_file_of_before(tmp_path, name):
    with text_writer(tmp_path / name) as file:
        file.write("before")
    with pytest.raises(KeyboardInterrupt):
        write_half(tmp_path / name)
    [left] = tmp_path.iterdir()
    content = left.read_bytes()
    assert (gzip.decompress(content) if name.endswith(".gz") else content) == b"before"


def test_what_is_broken_off_leaves_no_file_where_none_was(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        write_half(tmp_path / "out.txt")
    assert not list(tmp_path.iterdir())


def test_standard_output_gets_the_bytes_of_a_file(tmp_path, capfdbinary):
    """The header of a log may be in UTF-8, in Latin 1, or in neither."""
    before = f"; Computer: Zürich\n{LINE}".encode() + b"; Note: caf\xe9\n"
    (tmp_path / "log.swf").write_bytes(before)
    trace = read_swf(tmp_path / "log.swf")
    write_swf(trace, "-")
    written = capfdbinary.readouterr().out
    write_swf(trace, tmp_path / "again.swf")
    assert written == (tmp_path / "again.swf").read_bytes()
    assert "Zürich".encode() in written
    sys.stdout.write("Zürich\n")
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == "Zürich\n".encode()
