"""One clock for all timestamps of a run."""

from __future__ import annotations

import time
from dataclasses import dataclass

from morocco.units import Seconds


@dataclass(frozen=True)
class Clock:
    """The monotonic clock, anchored once to the wall clock: never steps, never runs backward."""

    offset: Seconds
    """From the monotonic clock to seconds since the epoch."""

    @classmethod
    def anchor(cls) -> Clock:
        """Return a clock that agrees with the wall clock at this moment."""
        return cls(time.time() - time.monotonic())

    def timestamp(self, moment: Seconds) -> Seconds:
        """Return a moment of the monotonic clock as seconds since the epoch, to microseconds."""
        return round(moment + self.offset, 6)
