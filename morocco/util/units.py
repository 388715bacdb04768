"""The units that stand in names and signatures."""

from __future__ import annotations

import time
from dataclasses import dataclass

Seconds = float
Bytes = int

GIB = 2**30
"""What every table and axis calls a GB, as the leaderboard does."""


def format_bytes(count: Bytes) -> str:
    """Return `count` as people read it: `512 MB`, `2.39 GB` (powers of 1024)."""
    value = float(count)
    for unit in ("B", "KB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}"
        value /= 1024
    return f"{value:.2f} GB"


def plural(count: int, noun: str) -> str:
    """Return `1 record`, `2 records`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


@dataclass(frozen=True)
class AnchoredClock:
    """The monotonic clock, anchored once to the wall clock: never steps, never runs backward."""

    offset: Seconds
    """From the monotonic clock to seconds since the epoch."""

    @classmethod
    def anchor(cls) -> AnchoredClock:
        """Return a clock that agrees with the wall clock at this moment."""
        return cls(time.time() - time.monotonic())

    def timestamp(self, moment: Seconds) -> Seconds:
        """Return a moment of the monotonic clock as seconds since the epoch, to microseconds."""
        return round(moment + self.offset, 6)
