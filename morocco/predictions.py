"""What a target prints: predictions counted, hashed and kept where asked; the end of its log."""

from __future__ import annotations

import hashlib
import time
from typing import BinaryIO

from morocco.units import Seconds

_TAIL = 64 * 1024


class Predictions:
    """The stream of predictions; memory does not grow with it."""

    def __init__(self, file: BinaryIO | None = None) -> None:
        """`file`, where given, gets a copy of every byte."""
        self._file = file
        self._digest = hashlib.sha256()
        self._at_line_start = True
        self._complete = 0
        self.first: Seconds | None = None
        """When the first bytes came (monotonic clock)."""
        self.last: Seconds | None = None
        """When the last bytes came."""

    def add(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        if not data:
            return
        self.last = time.monotonic()
        if self.first is None:
            self.first = self.last
        self._digest.update(data)
        self._complete += count_lines(data, self._at_line_start)
        self._at_line_start = data.endswith(b"\n")
        if self._file is not None:
            self._file.write(data)
            self._file.flush()  # so that a full disk shows at once

    @property
    def count(self) -> int:
        """How many lines hold something; a last one without its newline counts as well."""
        return self._complete + (not self._at_line_start)

    @property
    def sha256(self) -> str:
        """Of all bytes so far."""
        return self._digest.hexdigest()


def count_lines(data: bytes, at_line_start: bool) -> int:
    """Return how many non-empty lines end in `data`, which goes on from a line's start or not."""
    if b"\n\n" not in data and not (at_line_start and data.startswith(b"\n")):
        return data.count(b"\n")
    *lines, _ = data.split(b"\n")
    carried = 0 if at_line_start or lines[0] else 1  # the end of a line that began before
    return sum(1 for line in lines if line) + carried


class Tail:
    """The last 64 KB of a stream."""

    def __init__(self) -> None:
        self._data = b""

    def add(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self._data = (self._data + data)[-_TAIL:]

    @property
    def text(self) -> str:
        """All that is kept."""
        return self._data.decode("utf-8", "replace")
