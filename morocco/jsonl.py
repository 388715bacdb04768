"""Files of JSON objects, one a line, that strangers wrote, and the fields of such objects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from reprlib import repr as shorten
from typing import Any

from morocco.errors import DataError
from morocco.units import Bytes

_BOM = b"\xef\xbb\xbf"
_MAX_LINE: Bytes = 16 * 1024 * 1024
"""No record is as long; a longer line comes in pieces, which are no JSON."""

Object = dict[str, Any]


def read_objects(path: Path) -> Iterator[tuple[int, Object]]:
    """Yield the objects of a file and the numbers of their lines, from 1; blank lines are none.

    DataError names the file, and the line that is no JSON object.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(_MAX_LINE), b""), start=1):
                text = strip_line(line)
                if text:
                    yield number, parse_line(text, path, number)
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror}.") from None


def strip_line(line: bytes) -> bytes:
    """Return a line without the space around it and without the mark that editors put first."""
    return line.removeprefix(_BOM).strip()


def parse_line(text: bytes, path: Path, number: int) -> Object:
    """Return the JSON object of a line; DataError names the line if it holds none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        shown = text.decode("utf-8", "replace")[:60]
        raise DataError(f"{path}, line {number}: not a JSON object: {shown!r}.")
    return value


def take(record: Object, field: str, kind: type, needed: str) -> Any:
    """Return a field of an object; ValueError where it is missing or of another type."""
    if field not in record:
        raise ValueError(f"`{field}` is missing")
    if type(record[field]) is not kind:  # bool is an int to isinstance
        raise ValueError(f"`{field}` must be {needed}, not {shorten(record[field])}")
    return record[field]


def take_list(record: Object, field: str) -> list[Object]:
    """Return a field that is a list of objects; ValueError for any other."""
    objects: list[Object] = take(record, field, list, "a list")
    if not all(isinstance(entry, dict) for entry in objects):
        raise ValueError(f"`{field}` must be a list of objects")
    return objects


def take_idx(record: Object) -> str:
    """Return the `idx` as a text: the data has numbers, and texts that hold them."""
    kind = str if isinstance(record.get("idx"), str) else int
    return str(take(record, "idx", kind, "a whole number or a text"))
