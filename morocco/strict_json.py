"""JSON that was written by strangers: read as an object, or refused with a reason."""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path
from typing import Any

from morocco.errors import DataError
from morocco.units import Bytes, format_bytes

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
