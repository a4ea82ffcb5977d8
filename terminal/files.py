"""Reads files compressed or not, according to their content; writes according to their suffix."""

import gzip
import io
import lzma
import os
import shutil
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, cast

from terminal.exit_codes import ExitCode

STANDARD_STREAM = "-"

_GZIP = b"\x1f\x8b"
_XZ = b"\xfd7zXZ\x00"


class DamagedFileError(ValueError):
    """A compressed file is cut short or corrupt."""

    exit_code = ExitCode.USAGE


def read_bytes(source: str | Path | BinaryIO) -> bytes:
    """Return the uncompressed content of a file, standard input (``-``) or an open binary file.

    Raises:
        DamagedFileError: the content begins as gzip or xz and does not go on as such.
        OSError: the file cannot be read.
    """
    raw = _raw_bytes(source)
    try:
        if raw.startswith(_GZIP):
            return gzip.decompress(raw)
        if raw.startswith(_XZ):
            return lzma.decompress(raw)
    except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise DamagedFileError(f"{name_of(source)} is cut short or damaged: {error}") from error
    return raw


def read_beginning(path: str | Path, size: int) -> bytes:
    """Return the first ``size`` uncompressed bytes of a file.

    Raises:
        DamagedFileError: the content begins as gzip or xz and does not go on as such.
        OSError: the file cannot be read.
    """
    with Path(path).open("rb") as file:
        magic = file.read(len(_XZ))
        file.seek(0)
        try:
            if magic.startswith(_GZIP):
                return gzip.GzipFile(fileobj=file).read(size)
            if magic.startswith(_XZ):
                return lzma.LZMAFile(file).read(size)
        except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
            raise DamagedFileError(f"{path} is cut short or damaged: {error}") from error
        return file.read(size)


def _raw_bytes(source: str | Path | BinaryIO) -> bytes:
    if not isinstance(source, str | Path):
        return source.read()
    if str(source) == STANDARD_STREAM:
        return sys.stdin.buffer.read()
    return Path(source).read_bytes()


def name_of(source: str | Path | BinaryIO) -> str:
    """Return the name of a source for messages."""
    if isinstance(source, str | Path):
        return "standard input" if str(source) == STANDARD_STREAM else str(source)
    return str(getattr(source, "name", "the file"))


@contextmanager
def text_writer(path: str | Path, *, encoding: str = "latin-1") -> Iterator[IO[str]]:
    """Open a text file to write, compressed if its name ends in .gz or .xz; ``-`` is stdout.

    The file is complete or absent, as with ``whole_file``. The same text gives the
    same bytes: no time and no name is stored in a gzip header.
    """
    if str(path) == STANDARD_STREAM:
        with _standard_output(encoding) as text:
            yield text
        return
    with (
        whole_file(Path(path)) as unfinished,
        unfinished.open("wb") as file,
        _compressor(Path(path).suffix, file) as packed,
    ):
        text = io.TextIOWrapper(packed, encoding=encoding, newline="\n")
        yield text
        text.flush()
        text.detach()


@contextmanager
def _standard_output(encoding: str) -> Iterator[IO[str]]:
    """Switch standard output to an encoding meanwhile, so that it gets the bytes of a file."""
    stream = cast("io.TextIOWrapper", sys.stdout)
    usual, errors = stream.encoding, stream.errors
    stream.reconfigure(encoding=encoding, errors=errors)
    try:
        yield stream
        stream.flush()
    finally:
        stream.reconfigure(encoding=usual, errors=errors)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Open a file beside ``path`` that takes its name when it is complete.

    Until then, and after an error, an existing file stays. A pipe, a device, or a file in a
    directory that cannot be written is written as it is.
    """
    target = path.resolve()
    is_special = target.exists() and not target.is_file()
    if is_special or not os.access(target.parent, os.W_OK):
        yield path
        return
    unfinished = target.with_name(f".unfinished.{target.name}")
    try:
        unfinished.touch()
        if target.exists():
            shutil.copymode(target, unfinished)
        yield unfinished
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file as ``whole_file`` does; text as UTF-8."""
    with whole_file(path) as file:
        file.write_bytes(content.encode() if isinstance(content, str) else content)


def _compressor(suffix: str, file: BinaryIO) -> BinaryIO | gzip.GzipFile | lzma.LZMAFile:
    if suffix == ".gz":
        # Level 9 and an empty name, as in the archive's files.
        return gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=file, mtime=0)
    if suffix == ".xz":
        return lzma.LZMAFile(file, "wb")
    return file
