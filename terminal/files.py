"""Reads files compressed or not, according to their content; writes according to their suffix."""

import bz2
import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from terminal.exit_codes import ExitCode
from terminal.new_files import create_anew, refuse_foreign

STANDARD_STREAM = "-"

LONGEST_LINE = 1 << 16
"""Most bytes of a line of text that is read; a line of a log of jobs has some hundred."""

FREE_EXPANSION, MOST_EXPANSION = 16 << 20, 100
"""Bytes to which every compressed file may expand, and beyond that, bytes for each of its own.
Logs expand to ten or twenty times their size, a bomb to a thousand times and more."""

_GZIP = b"\x1f\x8b"
_BZIP2 = b"BZh"
_XZ = b"\xfd7zXZ\x00"
_PACKERS = {
    b"\x28\xb5\x2f\xfd": ("zstd", "zstd -dc"),
    b"\x04\x22\x4d\x18": ("lz4", "lz4 -dc"),
    b"\x1f\x9d": ("compress", "uncompress -c"),
    b"PK\x03\x04": ("zip", "unzip -p"),
    b"7z\xbc\xaf": ("7z", "7z x -so"),
    b"\xff\xfe": ("UTF-16", "iconv -f UTF-16 -t UTF-8"),
    b"\xfe\xff": ("UTF-16", "iconv -f UTF-16 -t UTF-8"),
}
"""Beginnings of files that are not read: their form, and the command that changes it."""

_TAR, _TAR_PLACE = b"ustar", 257
_BUFFER = 1 << 16


class DamagedFileError(ValueError):
    """A compressed file is cut short, corrupt, or expands to more than a log does."""

    exit_code = ExitCode.USAGE


class PackedFileError(ValueError):
    """A file is compressed, packed or encoded in a way that is not read."""

    exit_code = ExitCode.USAGE


class LongLineError(ValueError):
    """A line of a text file is longer than any that is read."""

    exit_code = ExitCode.USAGE


class Packed(io.RawIOBase):
    """Content of an open file as it is stored, counted.

    Attributes:
        name: of the file, for messages.
        beginning: its first bytes, which are read ahead and come again: a pipe is read once.
        count: number of bytes that were read.
    """

    def __init__(self, file: BinaryIO, name: str, ahead: int = len(_XZ)) -> None:
        self._file = file
        self.name = name
        self.beginning = self._unread = file.read(ahead)
        self.count = 0

    def readable(self) -> bool:
        """Return whether the file can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read up to the buffer's size, the first bytes first."""
        piece, self._unread = self._unread[: len(buffer)], self._unread[len(buffer) :]
        if len(piece) < len(buffer):
            piece += self._file.read(len(buffer) - len(piece))
        buffer[: len(piece)] = piece
        self.count += len(piece)
        return len(piece)

    def expanded_beginning(self) -> bytes:
        """Return what the first bytes expand to, as far as they do.

        Raises:
            PackedFileError: the content is packed in a way that is not read.
        """
        content = b""
        beginning = cast("BinaryIO", Packed(io.BytesIO(self.beginning), self.name))
        with suppress(DamagedFileError), expanded(beginning) as file:
            while len(content) < _BUFFER and (piece := file.read1()):
                content += piece
        return content


class _Expanded(io.RawIOBase):
    """Uncompressed content of a file, as far as it may expand."""

    def __init__(self, packed: Packed, name: str) -> None:
        self._packed = packed
        self._name = name
        self._count = 0
        file = cast("BinaryIO", io.BufferedReader(packed, _BUFFER))
        self._file: Any = file
        if packed.beginning.startswith(_GZIP):
            self._file = gzip.GzipFile(fileobj=file)
        elif packed.beginning.startswith(_XZ):
            self._file = lzma.LZMAFile(file)  # noqa: SIM115 - closed with the file below
        elif packed.beginning.startswith(_BZIP2):
            self._file = bz2.BZ2File(file)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read up to the buffer's size.

        Raises:
            DamagedFileError: the content is damaged, or expands too far.
        """
        try:
            piece = self._file.read1(len(buffer))  # what comes before damage is not lost
        except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
            raise DamagedFileError(f"{self._name} is cut short or damaged: {error}") from error
        except OSError as error:
            if not isinstance(self._file, bz2.BZ2File) or error.errno is not None:
                raise
            raise DamagedFileError(f"{self._name} is cut short or damaged: {error}") from error
        buffer[: len(piece)] = piece
        self._count += len(piece)
        if self._count > max(FREE_EXPANSION, MOST_EXPANSION * self._packed.count):
            raise DamagedFileError(
                f"{self._name} expands to more than {MOST_EXPANSION} times its size: no log does."
            )
        return len(piece)


@contextmanager
def expanded(source: str | Path | BinaryIO) -> Iterator[io.BufferedReader]:
    """Open the uncompressed content of a file, standard input (``-``) or an open binary file.

    Reading raises ``DamagedFileError`` where the content is damaged or expands too far.

    Raises:
        PackedFileError: the content is packed in a way that is not read.
        OSError: the file cannot be read.
    """
    name = name_of(source)
    with _opened(source) as file:
        content: io.BufferedReader = io.BufferedReader(_Expanded(Packed(file, name), name), _BUFFER)
        refuse_packed(content.peek(_TAR_PLACE + len(_TAR)), name)
        yield content


def refuse_packed(beginning: bytes, name: str) -> None:
    """Refuse content that has to be unpacked first.

    Raises:
        PackedFileError: the message names the command that unpacks it.
    """
    packers = (each for magic, each in _PACKERS.items() if beginning.startswith(magic))
    is_tar = beginning[_TAR_PLACE:].startswith(_TAR)
    packer, command = ("tar", "tar -xOf") if is_tar else next(packers, (None, ""))
    if packer:
        raise PackedFileError(
            f"{name} is in the form of {packer}, which is not read; plain text, gzip, xz and bzip2 "
            f"are. Change it first: {command} {name} > log"
        )


def read_bytes(source: str | Path | BinaryIO) -> bytes:
    """Return the uncompressed content of a file, standard input (``-``) or an open binary file.

    Raises:
        DamagedFileError: the content begins as gzip, xz or bzip2 and does not go on as such.
        OSError: the file cannot be read.
    """
    with expanded(source) as file:
        return file.read()


def read_lines(source: str | Path | BinaryIO, *, longest: int = LONGEST_LINE) -> Iterator[bytes]:
    """Yield the lines of a file one by one, as they are, each with its end.

    Args:
        longest: most bytes of a line.

    Raises:
        LongLineError: a line is longer; the message says which.
        DamagedFileError: the content begins as gzip, xz or bzip2 and does not go on as such.
        OSError: the file cannot be read.
    """
    with expanded(source) as file:
        yield from lines_of(file, name_of(source), longest=longest)


def lines_of(file: io.BufferedReader, name: str, *, longest: int) -> Iterator[bytes]:
    """Yield the lines of an open file; ``name`` is for messages.

    Raises:
        LongLineError: a line is longer than ``longest`` bytes.
    """
    for number in count(1):
        line = file.readline(longest + 1)
        if len(line) > longest:
            raise LongLineError(f"{name}, line {number} is longer than {longest >> 10} KiB.")
        if not line:
            return
        yield line


@contextmanager
def _opened(source: str | Path | BinaryIO) -> Iterator[BinaryIO]:
    """Open a source; one that was open, or standard input, stays open."""
    if not isinstance(source, str | Path):
        yield source
    elif str(source) == STANDARD_STREAM:
        yield sys.stdin.buffer
    else:
        with Path(source).open("rb") as file:
            yield file


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

    Raises:
        PermissionError: another user's link leads there, see ``refuse_foreign``.
    """
    refuse_foreign(path)
    target = path.resolve()
    is_special = target.exists() and not target.is_file()
    if is_special or not os.access(target.parent, os.W_OK):
        yield path
        return
    unfinished = target.with_name(f".unfinished.{target.name}")
    try:
        os.close(create_anew(unfinished, 0o666))
        if target.exists():
            unfinished.chmod(target.stat().st_mode & 0o777)
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
