"""Files of JSON objects, one a line, that strangers wrote, and the fields of such objects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any

from morocco.errors import DataError
from morocco.util.units import Bytes, format_bytes

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


_MAX_DIGITS = 19
"""Of a whole number; enough for bytes, and for nanoseconds since the epoch."""
_MAX_FILE: Bytes = 16 * 2**20


def parse_object(content: bytes) -> dict[str, Any]:
    """Return a JSON object; ValueError says what else it is, or which number cannot be one."""
    try:
        value = json.loads(
            content.decode(), parse_int=_parse_int, parse_float=_parse_float, parse_constant=_refuse
        )
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise ValueError("no JSON") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("no JSON object")
    return value


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object that a file holds; DataError names the file."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE + 1)
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror}.") from None
    if len(content) > _MAX_FILE:
        raise DataError(f"{path} is longer than {format_bytes(_MAX_FILE)}; give another file.")
    try:
        return parse_object(content)
    except ValueError as error:
        raise DataError(f"{path} cannot be used: {error}.") from None


def _parse_int(digits: str) -> int:
    return int(digits) if len(digits) <= _MAX_DIGITS else int(_refuse(digits))


def _parse_float(digits: str) -> float:
    return number if isfinite(number := float(digits)) else float(_refuse(digits))


def _refuse(text: str) -> str:
    raise ValueError(f"{text[:20]} is no usable number")
