"""Units of time and memory, and the clock of a run."""

from __future__ import annotations

import time
from dataclasses import dataclass

Seconds = float
Bytes = int

GIB = 2**30
"""Called GB in all tables and axes, as on the leaderboard."""


def format_bytes(count: Bytes) -> str:
    """Return `512 MB` or `2.39 GB` (powers of 1024)."""
    value = float(count)
    for unit in ("B", "KB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}"
        value /= 1024
    return f"{value:.2f} GB"


def plural(count: int, noun: str) -> str:
    """Return `1 record`, `2,000 records` or `2 processes`."""
    ending = "" if count == 1 else "es" if noun.endswith("s") else "s"
    return f"{count:,} {noun}{ending}"


@dataclass(frozen=True)
class AnchoredClock:
    """The monotonic clock, anchored once to the wall clock: never jumps or runs backwards."""

    offset: Seconds
    """From the monotonic clock to seconds since the epoch."""

    @classmethod
    def anchor(cls) -> AnchoredClock:
        """Return a clock that agrees with the wall clock now."""
        return cls(time.time() - time.monotonic())

    def timestamp(self, moment: Seconds) -> Seconds:
        """Return a moment of the monotonic clock as seconds since the epoch, to microseconds."""
        return round(moment + self.offset, 6)
