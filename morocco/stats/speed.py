"""The speed of a model from run times, and its interval: pure arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from morocco.stats.intervals import measure, subtract
from morocco.util.units import Seconds

RESOLUTION: Seconds = 0.001
"""Timestamps are exact to milliseconds; smaller differences mean nothing."""


def compute_rps(input_size: int, init_time: Seconds, run_times: list[Seconds]) -> float:
    """Return the median speed over sorted run times, as the first MOROCCO tool computes it."""
    slow, fast = run_times[len(run_times) // 2], run_times[(len(run_times) - 1) // 2]
    if not is_longer(fast, init_time):
        return inf
    return (input_size / (slow - init_time) + input_size / (fast - init_time)) / 2


def is_longer(run_time: Seconds, init_time: Seconds) -> bool:
    """Tell whether a run outlasts the start-up; one that does not is too short for a speed."""
    return run_time - init_time >= RESOLUTION


def bound_speed(
    input_size: int, init_times: Sequence[Seconds], run_times: Sequence[Seconds], rps: float
) -> tuple[float, float] | None:
    """Return the 95 % interval of a speed in records a second; inf where it has no upper bound.

    It is the interval of the difference of run time and start-up time, turned into a speed, and
    widened to hold `rps`. None where there is a single run of either kind.
    """
    if min(len(init_times), len(run_times)) < 2:
        return None
    work = subtract(measure(run_times), measure(init_times))
    shortest, longest = work.mean - work.half_width(), work.mean + work.half_width()
    low = input_size / longest if longest >= RESOLUTION else rps
    high = input_size / shortest if shortest >= RESOLUTION else inf
    return min(low, rps), max(high, rps)
