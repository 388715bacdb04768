"""JSON written by others: files of one object, files of one object per line, fields of objects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from reprlib import repr as shorten
from typing import Any

from morocco.errors import DataError
from morocco.util.files import read_bounded
from morocco.util.units import Bytes

Object = dict[str, Any]

_BOM = b"\xef\xbb\xbf"
MAX_LINE: Bytes = 16 * 2**20
"""A longer line is read in pieces, which are not JSON."""
_MAX_FILE: Bytes = 16 * 2**20
_MAX_DIGITS = 19
"""Of a whole number; enough for bytes, and for nanoseconds since the epoch."""


def read_object(path: Path) -> Object:
    """Return the JSON object in a file; raises DataError, which names the file."""
    try:
        return parse_object(read_bounded(path, _MAX_FILE))
    except ValueError as error:
        raise DataError(f"{path} cannot be used: {error}.") from None


def parse_object(content: bytes) -> Object:
    """Return a JSON object whose numbers are finite and not absurdly long.

    Raises ValueError, which says what is wrong.
    """
    try:
        value = json.loads(
            content.decode(), parse_int=_parse_int, parse_float=_parse_float, parse_constant=_refuse
        )
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise ValueError("not JSON") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def _parse_int(digits: str) -> int:
    return int(digits) if len(digits) <= _MAX_DIGITS else _refuse(digits)


def _parse_float(digits: str) -> float:
    return number if isfinite(number := float(digits)) else _refuse(digits)


def _refuse(text: str) -> Any:
    raise ValueError(f"{text[:20]} is not a usable number")


def read_objects(path: Path) -> Iterator[tuple[int, Object]]:
    """Yield line number (from 1) and object of each line of a file that is not blank.

    Raises DataError, which names the file and the line that is not a JSON object.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(MAX_LINE), b""), start=1):
                text = strip_line(line)
                if text:
                    yield number, parse_line(text, path, number)
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror}.") from None


def strip_line(line: bytes) -> bytes:
    """Return a line without surrounding space and without a byte order mark."""
    return line.removeprefix(_BOM).strip()


def parse_line(text: bytes, path: Path, number: int) -> Object:
    """Return the JSON object on a line; raises DataError, which names the line."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        shown = text.decode("utf-8", "replace")[:60]
        raise DataError(f"{path}, line {number}: not a JSON object: {shown!r}.")
    return value


def take(record: Object, field: str, kind: type, needed: str) -> Any:
    """Return a field of an object; raises ValueError if it is missing or of another type."""
    if field not in record:
        raise ValueError(f"`{field}` is missing")
    if type(record[field]) is not kind:  # isinstance would take a bool for an int
        raise ValueError(f"`{field}` must be {needed}, not {shorten(record[field])}")
    return record[field]


def take_list(record: Object, field: str) -> list[Object]:
    """Return a field that is a list of objects; raises ValueError if it is not."""
    objects: list[Object] = take(record, field, list, "a list")
    if not all(isinstance(entry, dict) for entry in objects):
        raise ValueError(f"`{field}` must be a list of objects")
    return objects


def take_idx(record: Object) -> str:
    """Return `idx` as text: in the data it is a number, or text that holds one."""
    kind = str if isinstance(record.get("idx"), str) else int
    return str(take(record, "idx", kind, "a whole number or a string"))
