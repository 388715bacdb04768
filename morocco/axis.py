"""An axis that keeps what stands on it away from its ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

_WIDE = 10
"""Values that differ by more than this factor are hard to tell apart on a linear axis."""


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`."""

    low: float
    high: float
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Return where a value stands: 0 at the low end, 1 at the high one."""
        low, high, value = (self._bend(number) for number in (self.low, self.high, value))
        return (value - low) / (high - low)

    def _bend(self, value: float) -> float:
        return log(value) if self.logarithmic else value


def fit_axis(values: Sequence[float], padding: float, *, may_bend: bool = False) -> Axis:
    """Return an axis on which all `values` are at least `padding` (below 0.5) from both ends.

    It is logarithmic where it may be, and where the values differ by more than a factor of ten.
    """
    least, most = min(values), max(values)
    if may_bend and least > 0 and most / least > _WIDE:
        low, high = _pad(log(least), log(most), padding)
        return Axis(exp(low), exp(high), logarithmic=True)
    if least == most:
        room = abs(least) * 0.2 or 0.1
        least, most = least - room, most + room
    return Axis(*_pad(least, most, padding))


def _pad(low: float, high: float, padding: float) -> tuple[float, float]:
    more = (high - low) * padding / (1 - 2 * padding)
    return low - more, high + more
