"""What a zip of a submission may hold: its entries as the archive declares them, none read yet."""

from __future__ import annotations

import re
import stat
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import BufferedReader
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, cast

from morocco.errors import DataError
from morocco.logs.log import MAX_LINE, LogPath, read_lines
from morocco.util.units import Bytes, format_bytes

MAX_ENTRIES = 10_000
MAX_UNPACKED: Bytes = 256 * 2**20
MAX_RATIO = 200
"""Logs unpack to 3 to 45 times their size, a bomb to 1032 times."""

_SHOWN = 3
"""Entries that a message names; the others are counted."""
_HEADER: Bytes = 30
_ENCRYPTED = 0x1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Others unpack in gigabytes of memory, if the archive says so."""
_DRIVE = re.compile(r"[A-Za-z]:")


def _is_absolute(entry: zipfile.ZipInfo) -> bool:
    return entry.filename.startswith("/") or _DRIVE.match(entry.filename) is not None


def _is_roundabout(entry: zipfile.ZipInfo) -> bool:
    return not {"", ".", ".."}.isdisjoint(entry.filename.removesuffix("/").split("/"))


def _is_special(entry: zipfile.ZipInfo) -> bool:
    usual = stat.S_IFDIR if entry.is_dir() else stat.S_IFREG
    return stat.S_IFMT(entry.external_attr >> 16) not in (0, usual)


def _is_bomb(entry: zipfile.ZipInfo) -> bool:
    # What is no longer than a line does no harm, and repeats itself in good faith.
    return entry.file_size > max(MAX_LINE, MAX_RATIO * entry.compress_size)


_RULES: tuple[tuple[str, Callable[[zipfile.ZipInfo], bool]], ...] = (
    ("has two names", lambda entry: entry.filename != entry.orig_filename),
    ("cannot be printed", lambda entry: not entry.filename.isprintable()),
    ("is an absolute path", _is_absolute),
    ("has a backslash in its path", lambda entry: "\\" in entry.filename),
    ("has `..` or an empty part in its path", _is_roundabout),
    ("is a link or another special file", _is_special),
    ("is encrypted", lambda entry: bool(entry.flag_bits & _ENCRYPTED)),
    ("is packed in another way than deflate", lambda entry: entry.compress_type not in _METHODS),
    (f"unpacks to more than {MAX_RATIO} times its size", _is_bomb),
)


def find_faults(entries: Sequence[zipfile.ZipInfo], directory: Bytes) -> Iterator[str]:
    """Yield why these are no entries of a submission; `directory` is where they have to end."""
    if len(entries) > MAX_ENTRIES:
        yield say_too_many(len(entries))
        return
    for what, breaks in _RULES:
        yield from _name(what, [entry.filename for entry in entries if breaks(entry)])
    counts = Counter(entry.filename for entry in entries)
    yield from _name("is there twice", [name for name, count in counts.items() if count > 1])
    yield from _name("is no log and no record of one", list(_find_foreign(counts)))
    if (size := sum(entry.file_size for entry in entries)) > MAX_UNPACKED:
        yield f"unpacks to {format_bytes(size)}, more than {format_bytes(MAX_UNPACKED)}"
    yield from _name(
        "shares its bytes with another entry", list(_find_overlaps(entries, directory))
    )
    if min((entry.header_offset for entry in entries), default=0) > 0:
        yield "has other data before its first entry"


def say_too_many(count: int) -> str:
    """Return why so many entries are refused."""
    return f"has {count:,} entries, more than {MAX_ENTRIES:,}"


def _find_foreign(names: Counter[str]) -> Iterator[str]:
    for name in names:
        is_record = name.endswith(".json") and f"{name}l" in names
        log_name = f"{name}l" if is_record else name
        if not name.endswith("/") and LogPath.parse(log_name) is None:
            yield name


def _find_overlaps(entries: Sequence[zipfile.ZipInfo], directory: Bytes) -> Iterator[str]:
    ordered = sorted(entries, key=lambda entry: entry.header_offset)
    starts = [*(entry.header_offset for entry in ordered), directory]
    for entry, (start, following) in zip(ordered, pairwise(starts), strict=True):
        if start + _HEADER + entry.compress_size > following:
            yield entry.filename


def _name(what: str, names: Sequence[str]) -> Iterator[str]:
    """Say what is wrong with the first few of these, in the words of their number."""
    if names:
        shown = ", ".join(name if name.isprintable() else ascii(name) for name in names[:_SHOWN])
        more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
        yield f"{shown}{more}: {what}"


MAX_HELD: Bytes = 144 * 10**6
"""What entries, lines and records may take in memory: 3.4 million lines, 300 hours of samples."""

_ENTRY_COST: Bytes = 2000
_LINE_COST: Bytes = 42
_VALUE_COST: Bytes = 100
_END = struct.Struct("<4s4H2LH")
"""The record at the end of a zip: what says how many entries there are, and where."""
_END64: Bytes = 20
"""Stands before the other in archives of more than 4 GB or 65,535 entries."""
_MAX_DIRECTORY: Bytes = 4 * 2**20
"""All names together, which zipfile reads before they can be counted: 400 bytes an entry."""
_BROKEN = (
    OSError,
    EOFError,
    RuntimeError,
    ValueError,
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
)
"""What zipfile raises over what it cannot read."""


class Refused(DataError):
    """A zip that breaks a limit, or holds what has no place in a submission."""

    def __init__(self, name: Path, *faults: str) -> None:
        self.faults = "".join(f"\n  {fault}" for fault in faults)
        super().__init__(
            f"{name} is no submission:{self.faults}\n"
            "`morocco pack LOGS -o logs.zip` packs the logs and their records, and nothing else."
        )


class Archive:
    """A zip that keeps the limits: the names of its logs and records, and what they hold."""

    def __init__(self, path: Path, file: zipfile.ZipFile) -> None:
        self._path = path
        self._file = file
        self.names = {info.filename for info in file.infolist() if not info.is_dir()}
        self._left = MAX_HELD - _ENTRY_COST * len(self.names)

    def read_lines(self, name: str) -> Iterator[bytes]:
        """Yield the lines of a log; OSError where they cannot be unpacked."""
        try:
            with self._open(name) as file:
                for line in read_lines(file):
                    self._hold(_LINE_COST)
                    yield line
        except _BROKEN as error:
            raise OSError(str(error)) from None

    def read(self, name: str, limit: Bytes) -> bytes:
        """Return the first `limit` bytes of a record; OSError where they cannot be unpacked."""
        try:
            with self._open(name) as file:
                content = file.read(limit)
        except _BROKEN as error:
            raise OSError(str(error)) from None
        values = sum(map(content.count, (b"[", b"{", b",", b":")))
        self._hold(len(content) + _VALUE_COST * values)
        return content

    def _open(self, name: str) -> BinaryIO:
        # The reader of zipfile is slow at lines of a limited length.
        return cast(BinaryIO, BufferedReader(self._file.open(name), 2**16))

    def _hold(self, size: Bytes) -> None:
        """Count what is kept: short lines take more memory than they do in the archive."""
        self._left -= size
        if self._left < 0:
            most = format_bytes(MAX_HELD)
            raise Refused(self._path, f"has more lines and records than fit in {most} of memory")


def is_archive(path: Path) -> bool:
    """Tell whether a file is a zip, or was one before it was cut short."""
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PK\x03\x04" or zipfile.is_zipfile(file)
    except OSError:
        return False


@contextmanager
def open_archive(path: Path, name: Path | None = None) -> Iterator[Archive]:
    """Open a zip that keeps the limits; DataError says what is wrong with any other.

    Messages call it `name`, where that is not its path.
    """
    with ExitStack() as stack:
        yield Archive(name or path, _open_zip(path, name or path, stack))


def _open_zip(path: Path, name: Path, stack: ExitStack) -> zipfile.ZipFile:
    try:
        file = stack.enter_context(path.open("rb"))
        count, directory = _find_directory(file, name)
        archive = stack.enter_context(zipfile.ZipFile(file))
    except _BROKEN as error:
        raise DataError(f"Cannot read {name}: {error}.") from None
    entries = archive.infolist()
    faults = list(find_faults(entries, directory))
    if len(entries) != count:
        faults.append(f"has {len(entries)} entries, not the {count} that it claims")
    if faults:
        raise Refused(name, *faults)
    return archive


def _find_directory(file: BinaryIO, name: Path) -> tuple[int, Bytes]:
    """Return how many entries a zip claims to have and where the list of them begins.

    zipfile reads that list whole, whatever its length, so it is looked at first.
    """
    size = file.seek(0, 2)
    file.seek(max(0, size - _END64 - _END.size))
    before, end = (tail := file.read())[: -_END.size], tail[-_END.size :]
    if not (end.startswith(b"PK\x05\x06") and end.endswith(b"\0\0") and len(end) == _END.size):
        raise ValueError("it is cut short, or something was added at its end")
    _, _, _, _, count, length, start, _ = _END.unpack(end)
    if before.startswith(b"PK\x06\x07") or count > MAX_ENTRIES:
        raise Refused(name, say_too_many(max(count, MAX_ENTRIES + 1)))
    if length > _MAX_DIRECTORY:
        raise Refused(name, f"has names of {format_bytes(length)}, more than {MAX_ENTRIES:,} take")
    if start + length != size - _END.size:
        raise Refused(name, "has other data before its first entry, or around the list of them")
    return count, start
