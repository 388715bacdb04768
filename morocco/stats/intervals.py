"""Intervals of what runs measure, from the means and variances of a few repeats.

Point estimates are medians, as on the leaderboard. A percentile bootstrap of medians covers the
truth far too seldom with the three to seven runs of a suite; Welch's interval of means covers it as
often as it says (`make benchmark` shows how often), and is widened where it misses the median.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import atan, cos, exp, fsum, inf, isinf, lgamma, log, pi, sqrt, tan
from typing import NamedTuple

CONFIDENCE = 0.95
POWER = 0.8
"""The chance with which a difference that is told to be visible would have been seen."""
_STEPS = 64
"""Of Simpson's rule; enough for eight digits of a quantile."""


class Moments(NamedTuple):
    """A mean over runs, and how well it is known."""

    mean: float
    parts: tuple[tuple[float, int], ...]
    """For each independent series of runs its share of the variance, and its number of runs."""

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return sqrt(sum(share for share, _ in self.parts))

    @property
    def freedom(self) -> float:
        """The degrees of freedom of the variance (Welch 1947); inf where there is none.

        The later and simpler form of Satterthwaite is too careful with three or four runs.
        """
        total = sum(share for share, _ in self.parts)
        if not total:
            return inf
        counts = [count for share, count in self.parts if share]
        freedom = total**2 / sum(share**2 / (count + 1) for share, count in self.parts) - 2
        return max(min(counts) - 1, freedom)

    def half_width(self, confidence: float = CONFIDENCE) -> float:
        """Return half the width of the interval."""
        if not self.error:
            return 0.0
        return quantile((1 + confidence) / 2, round(self.freedom, 2)) * self.error


def measure(values: Sequence[float]) -> Moments:
    """Return the mean of two values or more."""
    count = len(values)
    mean = fsum(values) / count
    squares = fsum((value - mean) ** 2 for value in values)  # `variance` takes 20 times as long
    return Moments(mean, ((squares / (count - 1) / count, count),))


def subtract(above: Moments, below: Moments) -> Moments:
    """Return the difference of two independent means."""
    return Moments(above.mean - below.mean, above.parts + below.parts)


def scale(moments: Moments, factor: float) -> Moments:
    """Return a mean times a constant."""
    parts = tuple((share * factor**2, count) for share, count in moments.parts)
    return Moments(moments.mean * factor, parts)


def average(several: Sequence[Moments]) -> Moments:
    """Return the mean of independent means."""
    parts = tuple(part for moments in several for part in moments.parts)
    total = Moments(sum(moments.mean for moments in several), parts)
    return scale(total, 1 / len(several))


def to_log(moments: Moments) -> Moments:
    """Return the logarithm of a mean above 0, its error to first order (delta method)."""
    return Moments(log(moments.mean), scale(moments, 1 / moments.mean).parts)


def invert(moments: Moments, above: float = 1) -> Moments:
    """Return a constant divided by a mean above 0, its error to first order."""
    return Moments(above / moments.mean, scale(moments, above / moments.mean**2).parts)


def bound(moments: Moments, estimate: float) -> tuple[float, float]:
    """Return the interval of a mean, widened to hold the estimate that is reported."""
    half = moments.half_width()
    return min(moments.mean - half, estimate), max(moments.mean + half, estimate)


def bound_values(values: Sequence[float], estimate: float) -> tuple[float, float] | None:
    """Return the interval of what single runs measure, such as start-up time; None for one run."""
    if len(values) < 2:
        return None
    low, high = bound(measure(values), estimate)
    return max(0.0, low), high


def differs(moments: Moments, confidence: float = CONFIDENCE) -> bool:
    """Tell whether a mean is not 0, as the logarithm of a ratio of equals would be."""
    return abs(moments.mean) > moments.half_width(confidence)


def find_different(several: Sequence[Moments]) -> list[bool]:
    """Tell which of several means are not 0, wrong about any of them in at most 5 % of cases.

    Holm (1979): the clearest of k must be clear at 5 % / k, the next at 5 % / (k - 1), and so on.
    """
    found = [False] * len(several)
    left = set(range(len(several)))
    while left:
        confidence = 1 - (1 - CONFIDENCE) / len(left)
        clear = {at for at in left if differs(several[at], confidence)}
        if not clear:
            break
        for at in clear:
            found[at] = True
        left -= clear
    return found


def find_visible(moments: Moments) -> float:
    """Return the smallest mean that such runs tell from 0 in four of five cases."""
    freedom = moments.freedom
    if isinf(freedom):
        return 0.0
    return (quantile((1 + CONFIDENCE) / 2, freedom) + quantile(POWER, freedom)) * moments.error


@lru_cache(maxsize=10_000)
def quantile(probability: float, freedom: float) -> float:
    """Return the value that Student's t stays below with this probability, at least 0.5.

    With t = sqrt(freedom) tan(x), the density of x is proportional to cos(x) ** (freedom - 1).
    """
    freedom = min(freedom, 1e4)  # the normal distribution, to four digits
    scale = exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)) / sqrt(pi)
    wanted, at = probability - 0.5, 0.0
    for _ in range(100):  # Newton's method comes nearer from below, for the density falls
        missing = wanted - scale * _integrate(freedom - 1, at)
        at = min(at + missing / (scale * cos(at) ** (freedom - 1)), atan(1e6))
        if missing < 1e-10:
            break
    return sqrt(freedom) * tan(at)


def _integrate(power: float, end: float) -> float:
    """Return the integral of cos(x) ** power from 0 to `end`, by Simpson's rule."""
    step = end / _STEPS
    heights = [float(cos(step * at) ** power) for at in range(_STEPS + 1)]
    inner = 4 * sum(heights[1::2]) + 2 * sum(heights[2:-1:2])
    return step / 3 * (heights[0] + inner + heights[-1])


def count_more(moments: Moments, runs: int, most: int) -> int | None:
    """Return how many more runs would show such a difference; None if over `most`."""
    if not moments.mean:
        return None
    needed = runs * (find_visible(moments) / moments.mean) ** 2
    return None if needed - runs > most else max(1, round(needed - runs + 0.5))
