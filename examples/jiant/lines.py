"""Records from lines of JSON, each error with its line."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from errors import ExampleError
from records import Record

T = TypeVar("T")

_BOM = b"\xef\xbb\xbf"
_SURROGATE = re.compile(rb"\\u[dD]")


def read_lines(lines: Iterable[bytes], name: str, take: Callable[[Record], T]) -> Iterator[T]:
    """Yield what `take` makes of each record; ExampleError names the line where it fails."""
    for number, line in enumerate(lines, start=1):
        text = line.removeprefix(_BOM).strip()
        if not text:
            continue
        try:
            yield take(_parse(text))
        except KeyError as error:
            raise ExampleError(f"{name}, line {number}: there is no field {error}") from error
        except (IndexError, TypeError, ValueError) as error:
            raise ExampleError(f"{name}, line {number}: {error}") from error


def _parse(text: bytes) -> Record:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error})") from error
    if _SURROGATE.search(text):  # half of a pair is no text: neither tokenised nor printed
        json.dumps(record, ensure_ascii=False).encode()
    if not isinstance(record, dict):
        raise ValueError("not a JSON object")
    return record
