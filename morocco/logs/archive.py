"""Zips of submissions: read in place, never unpacked to disk, and refused if they are hostile."""

from __future__ import annotations

import re
import stat
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import BufferedReader
from itertools import pairwise
from pathlib import Path, PurePath
from typing import BinaryIO, NoReturn, cast

from morocco.errors import DataError
from morocco.logs.log import MAX_LINE, LogPath, read_lines
from morocco.util.units import Bytes, format_bytes

MAX_ENTRIES = 10_000
MAX_CELLS = 10_000
"""Models x tasks: what is reported of a zip grows with them, not with its logs."""
MAX_UNPACKED: Bytes = 256 * 2**20
MAX_RATIO = 200
"""Logs unpack to 3 to 45 times their size, a zip bomb to 1032 times."""
MAX_HELD: Bytes = 144 * 10**6
"""Memory for entries, lines and records: 1.5 million lines, 140 hours of samples."""
_ENTRY_COST: Bytes = 2000
_LINE_COST: Bytes = 96
"""Twice what it takes: two million lines would take too long."""
_VALUE_COST: Bytes = 100
_MAX_DIRECTORY: Bytes = 4 * 2**20
"""zipfile reads all names before they can be counted: 400 bytes an entry."""

_MAX_PATH: Bytes = 4096
_MAX_NAME: Bytes = 255
"""Of Linux: of a path, and of each of its parts."""
_NAMES_SHOWN = 3
_HEADER_SIZE: Bytes = 30
_ENCRYPTED = 0x1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Other methods may take gigabytes of memory to unpack."""
_ABSOLUTE = re.compile(r"/|[A-Za-z]:")
_END = struct.Struct("<4s4H2LH")
"""The last record of a zip, with the number of entries and the start of their directory."""
_ZIP64_LOCATOR_SIZE: Bytes = 20
"""Stands before the last record in archives of more than 4 GB or 65,535 entries."""
_ZIP_ERRORS = (
    OSError,
    EOFError,
    RuntimeError,
    ValueError,
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
)
"""What zipfile raises for an archive that it cannot read."""


class ArchiveRefused(DataError):
    """A zip exceeds a limit, or holds something that does not belong in a submission."""

    def __init__(self, name: Path, *faults: str) -> None:
        self.faults = "".join(f"\n  {fault}" for fault in faults)
        super().__init__(
            f"{name} is not a submission:{self.faults}\n"
            "`morocco pack LOGS -o logs.zip` packs the logs and their records, and nothing else."
        )


class Archive:
    """An open zip that keeps the limits, with its logs and records."""

    def __init__(self, path: Path, file: zipfile.ZipFile) -> None:
        self._path = path
        self._file = file
        self.names = {entry.filename for entry in file.infolist() if not entry.is_dir()}
        self._left = MAX_HELD - _ENTRY_COST * len(self.names)

    def read_lines(self, name: str) -> Iterator[bytes]:
        """Yield the lines of a log; OSError if they cannot be unpacked."""
        with self._open(name) as file:
            for line in read_lines(file):
                self._left -= _LINE_COST
                if self._left < 0:
                    self._refuse()
                yield line

    def read(self, name: str, limit: Bytes) -> bytes:
        """Return the first `limit` bytes of a record; OSError if they cannot be unpacked."""
        with self._open(name) as file:
            content = file.read(limit)
        values = sum(map(content.count, (b"[", b"{", b",", b":")))
        self._left -= len(content) + _VALUE_COST * values
        if self._left < 0:
            self._refuse()
        return content

    @contextmanager
    def _open(self, name: str) -> Iterator[BinaryIO]:
        try:
            with self._file.open(name) as entry:
                # zipfile's own reader is slow when the length of a line is limited.
                yield cast(BinaryIO, BufferedReader(entry, 2**16))
        except _ZIP_ERRORS as error:
            raise OSError(str(error)) from None

    def _refuse(self) -> NoReturn:
        """Refuse lines and records that take more memory than they do in the archive."""
        limit = format_bytes(MAX_HELD)
        fault = f"has more lines and records than fit in {limit} of memory"
        raise ArchiveRefused(self._path, fault)


def is_archive(path: Path) -> bool:
    """Tell whether a file is a zip, or the beginning of one."""
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PK\x03\x04" or zipfile.is_zipfile(file)
    except OSError:
        return False


@contextmanager
def open_archive(path: Path, name: Path | None = None) -> Iterator[Archive]:
    """Open a zip that keeps the limits; DataError says what is wrong with any other.

    Messages call it `name` if that is not its path.
    """
    name = name or path
    with ExitStack() as stack:
        try:
            file = stack.enter_context(path.open("rb"))
            count, directory = _read_end(file, name)
            archive = stack.enter_context(zipfile.ZipFile(file))
        except _ZIP_ERRORS as error:
            raise DataError(f"Cannot read {name}: {error}.") from None
        entries = archive.infolist()
        if len(entries) != count:
            fault = f"has {len(entries):,} entries, not the {count:,} that it claims"
            raise ArchiveRefused(name, fault)
        if faults := list(_check_entries(entries, directory)):
            raise ArchiveRefused(name, *faults)
        yield Archive(name, archive)


def _read_end(file: BinaryIO, name: Path) -> tuple[int, Bytes]:
    """Return how many entries a zip claims to have and where their directory begins.

    zipfile reads the directory whole, whatever its length, so it is checked first.
    """
    size = file.seek(0, 2)
    file.seek(max(0, size - _ZIP64_LOCATOR_SIZE - _END.size))
    before, end = (tail := file.read())[: -_END.size], tail[-_END.size :]
    if not (end.startswith(b"PK\x05\x06") and end.endswith(b"\0\0") and len(end) == _END.size):
        raise ValueError("it is cut short, or something was appended to it")
    _, _, _, _, count, length, start, _ = _END.unpack(end)
    if before.startswith(b"PK\x06\x07") or count > MAX_ENTRIES:
        count = max(count, MAX_ENTRIES + 1)
        raise ArchiveRefused(name, f"has {count:,} entries, more than {MAX_ENTRIES:,}")
    if length > _MAX_DIRECTORY:
        limit = f"more than {MAX_ENTRIES:,} entries need"
        raise ArchiveRefused(name, f"has names of {format_bytes(length)}, {limit}")
    if start + length != size - _END.size:
        raise ArchiveRefused(name, "has other data before its first entry, or around its directory")
    return count, start


def _is_endless(entry: zipfile.ZipInfo) -> bool:
    path = entry.filename.encode(errors="surrogatepass")
    return len(path) > _MAX_PATH or max(map(len, path.split(b"/"))) > _MAX_NAME


def _is_roundabout(entry: zipfile.ZipInfo) -> bool:
    return not {"", ".", ".."}.isdisjoint(entry.filename.removesuffix("/").split("/"))


def _is_special(entry: zipfile.ZipInfo) -> bool:
    usual = stat.S_IFDIR if entry.is_dir() else stat.S_IFREG
    return stat.S_IFMT(entry.external_attr >> 16) not in (0, usual)


def _is_bomb(entry: zipfile.ZipInfo) -> bool:
    # An entry no longer than a line is harmless, and may well compress this far.
    return entry.file_size > max(MAX_LINE, MAX_RATIO * entry.compress_size)


_ENTRY_RULES: tuple[tuple[str, Callable[[zipfile.ZipInfo], bool]], ...] = (
    ("has two names", lambda entry: entry.filename != entry.orig_filename),
    ("has a name that cannot be printed", lambda entry: not entry.filename.isprintable()),
    ("has a longer path than a disk can hold", _is_endless),
    ("is an absolute path", lambda entry: bool(_ABSOLUTE.match(entry.filename))),
    ("has a backslash in its path", lambda entry: "\\" in entry.filename),
    ("has `..` or an empty part in its path", _is_roundabout),
    ("is a link or another special file", _is_special),
    ("is encrypted", lambda entry: bool(entry.flag_bits & _ENCRYPTED)),
    ("is not compressed with deflate", lambda entry: entry.compress_type not in _METHODS),
    (f"unpacks to more than {MAX_RATIO} times its size", _is_bomb),
)


def _check_entries(entries: Sequence[zipfile.ZipInfo], directory: Bytes) -> Iterator[str]:
    """Yield what is wrong with the entries without reading them; they must end at `directory`."""
    for fault, breaks in _ENTRY_RULES:
        yield from _format_fault(fault, [entry.filename for entry in entries if breaks(entry)])
    counts = Counter(entry.filename for entry in entries)
    yield from _format_fault("occurs twice", [name for name in counts if counts[name] > 1])
    logs = {name for name in counts if LogPath.parse(name)}
    yield from _count_cells(logs)
    known = {*logs, *(name.removesuffix("l") for name in logs)}
    foreign = [name for name in counts if name not in known and not name.endswith("/")]
    yield from _format_fault("is neither a log nor the record of one", foreign)
    if (size := sum(entry.file_size for entry in entries)) > MAX_UNPACKED:
        yield f"unpacks to {format_bytes(size)}, more than {format_bytes(MAX_UNPACKED)}"
    overlaps = list(_find_overlaps(entries, directory))
    yield from _format_fault("shares its bytes with another entry", overlaps)
    if min((entry.header_offset for entry in entries), default=0) > 0:
        yield "has other data before its first entry"


def _count_cells(logs: Iterable[str]) -> Iterator[str]:
    folders = {PurePath(name).parent for name in logs}
    models, tasks = ({getattr(folder, of) for folder in folders} for of in ("parent", "name"))
    if len(models) * len(tasks) > MAX_CELLS:
        yield f"has {len(models):,} models x {len(tasks):,} tasks, more than {MAX_CELLS:,}"


def _find_overlaps(entries: Sequence[zipfile.ZipInfo], directory: Bytes) -> Iterator[str]:
    ordered = sorted(entries, key=lambda entry: entry.header_offset)
    starts = [*(entry.header_offset for entry in ordered), directory]
    for entry, (start, following) in zip(ordered, pairwise(starts), strict=True):
        if start + _HEADER_SIZE + entry.compress_size > following:
            yield entry.filename


def _format_fault(fault: str, names: Sequence[str]) -> Iterator[str]:
    """Yield one line that names the first few entries with a fault; none without such entries."""
    if names:
        shown = [name if name.isprintable() else ascii(name) for name in names[:_NAMES_SHOWN]]
        more = f" and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
        yield f"{', '.join(shown)}{more}: {fault}"
