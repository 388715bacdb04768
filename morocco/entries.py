"""What a zip of a submission may hold: its entries as the archive declares them, none read yet."""

from __future__ import annotations

import re
import stat
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from morocco.logs import LogPath
from morocco.parse import MAX_LINE
from morocco.units import Bytes, format_bytes

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
