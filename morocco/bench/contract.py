"""Whether a target prints predictions: one JSON object per line, with the `idx` of a record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import MsgspecError, Struct
from msgspec.json import Decoder

from morocco.tasks import Records
from morocco.util.json import MAX_LINE, strip_line
from morocco.util.units import Bytes, format_bytes

_QUOTED_WIDTH = 120
_OPENING, _CLOSING = b"{}"
_LONG: Bytes = 400
"""Bytes of a line."""


@dataclass(frozen=True)
class Answers:
    """What the predictions are worth, by the container contract."""

    objects: int = 0
    """Lines that are JSON objects."""
    distinct: int = 0
    """Number of different `idx` among them."""
    broken: str | None = None
    """The first line that is no prediction, and why: `line 1 is not a JSON object: 'label=0'`."""


class Contract:
    """Checks the stream of predictions as it comes; memory does not grow with it."""

    def __init__(self, records: Records) -> None:
        self._allowed = records.idxs
        self._decoder: Decoder[Any] = Decoder(_Indexed if records.idxs else _Object)
        self._rest = bytearray()
        self._lines = self._objects = 0
        self._seen: set[int | str] = set()
        """As printed, so at most twice as many as allowed: as numbers and as text."""
        self._broken: str | None = None

    @property
    def is_broken(self) -> bool:
        """Whether a line was no prediction; what follows is not looked at."""
        return self._broken is not None

    def add(self, data: bytes) -> int:
        """Take the next bytes of the stream; return how many lines end there that are not empty."""
        if self.is_broken:
            return 0
        end, found = data.rfind(b"\n") + 1, 0
        if end:
            found = self._check(b"".join((self._rest, memoryview(data)[:end])))
            self._rest.clear()
        self._rest += memoryview(data)[end:]
        if not self.is_broken and len(self._rest) > MAX_LINE:
            self._break(self._lines + 1, f"is longer than {format_bytes(MAX_LINE)}", self._rest)
            self._rest.clear()
        return found

    def finish(self) -> Answers:
        """Return what came of the whole stream, whose last line needs no newline."""
        if self._rest:
            self.add(b"\n")
        return Answers(self._objects, len(set(map(str, self._seen))), self._broken)

    def _check(self, block: bytes) -> int:
        """Check whole lines, and return how many hold something."""
        try:
            if not block.isascii():
                block.decode()  # msgspec does not where it skips a field
            objects, lines = self._decode(block)
            if self._allowed:
                self._take({found.idx for found in objects})
        except (MsgspecError, UnicodeDecodeError, RecursionError, _UnknownIdx):
            return self._check_each(block.split(b"\n")[:-1])
        self._objects += len(objects)
        self._lines += lines
        return len(objects)

    def _decode(self, block: bytes) -> tuple[Sequence[Any], int]:
        """Return the predictions, and the number of lines; raises what the first bad line causes.

        Long lines are decoded together, because to cut them apart takes as long.
        """
        if block.find(b"\n") >= _LONG:
            objects = self._decoder.decode_lines(block)
            if len(objects) == _count_separate(block):
                return objects, len(objects)
        lines = block.split(b"\n")[:-1]
        return [self._decoder.decode(line) for line in lines if line], len(lines)

    def _take(self, idxs: set[int | str]) -> None:
        new = idxs - self._seen
        if any(str(idx) not in self._allowed for idx in new):
            raise _UnknownIdx
        self._seen |= new

    def _check_each(self, lines: Sequence[bytes]) -> int:
        """Find the bad line, if any (to `json`, NaN is none); return how many hold something."""
        for line in lines:
            self._lines += 1
            text = strip_line(line)
            if text and (reason := self._judge(text)):
                self._break(self._lines, reason, text)
                break
        return sum(1 for line in lines if line)

    def _judge(self, text: bytes) -> str | None:
        """Return why a line is no prediction; None for one, which is counted."""
        value = _parse(text)
        if not isinstance(value, dict):
            return "is not a JSON object"
        if self._allowed:
            if "idx" not in value:
                return "has no `idx`"
            if str(value["idx"]) not in self._allowed:
                return "has an `idx` that no record has"
            self._seen.add(str(value["idx"]))
        self._objects += 1
        return None

    def _break(self, number: int, reason: str, text: bytes | bytearray) -> None:
        shown = bytes(text[:_QUOTED_WIDTH]).decode("utf-8", "replace")
        self._broken = f"line {number:,} {reason}: {shown!r}"


class _Object(Struct, gc=False):
    """Any JSON object; its fields are skipped."""


class _Indexed(Struct, gc=False):
    """A JSON object with an `idx`; other fields are skipped."""

    idx: int | str


def _count_separate(block: bytes) -> int | None:
    """Return the number of lines if each begins with `{` and ends with `}`, else None.

    No JSON object goes on across `}`, newline, `{`: as many objects as lines are one on each.
    """
    find, size = block.find, len(block)
    count = start = 0
    while start < size:
        end = find(b"\n", start)
        if block[start] != _OPENING or block[end - 1] != _CLOSING:
            return None
        count, start = count + 1, end + 1
    return count


class _UnknownIdx(Exception):
    """An `idx` that no record has is somewhere in the lines."""


def _parse(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
