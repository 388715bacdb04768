"""The speed of a model from run times, and its interval: pure arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import inf
from random import Random
from typing import Any

from morocco.util.units import Seconds

RESAMPLES = 1000
TAIL = RESAMPLES * 25 // 1000
"""The interval runs from the 25th smallest to the 25th largest resample: 95 %, no interpolation."""
SEED = 1
RESOLUTION: Seconds = 0.001
"""Timestamps are exact to milliseconds; smaller differences mean nothing."""


def bootstrap_rps(
    input_size: int, init_times: Sequence[Seconds], run_times: Sequence[Seconds]
) -> tuple[float, float]:
    """Return the 95 % interval of the speed in records a second; inf where it has no bound.

    Percentile bootstrap (Efron 1979): start-up runs and long runs are resampled with replacement,
    independently. Freshly seeded, so the same times always give the same interval.
    """
    inits, state = _resample_inits(tuple(init_times))
    random = Random()
    random.setstate(state)
    return compute_interval(_compute_speeds(input_size, inits, _resample(run_times, random)))


@lru_cache(maxsize=1)
def _resample_inits(times: tuple[Seconds, ...]) -> tuple[list[Seconds], Any]:
    """Return the medians of resamples of start-up times, and the state of the generator after them.

    All sizes of a task share its start-up runs.
    """
    random = Random(SEED)
    return resample_median(times, random), random.getstate()


def compute_interval(resamples: Iterable[float]) -> tuple[float, float]:
    """Return the 95 % interval of `RESAMPLES` numbers."""
    ordered = sorted(resamples)
    return ordered[TAIL - 1], ordered[-TAIL]


def resample_rps(
    input_size: int, init_times: Sequence[Seconds], run_times: Sequence[Seconds], random: Random
) -> list[float]:
    """Return the speed in records a second of each resample; inf where it has no bound."""
    inits = resample_median(init_times, random)
    return _compute_speeds(input_size, inits, _resample(run_times, random))


def _compute_speeds(
    input_size: int, inits: Iterable[Seconds], samples: Iterable[list[Seconds]]
) -> list[float]:
    """Return what `compute_rps` returns for each pair, in half the time."""
    return [
        inf
        if (fast := sample[(len(sample) - 1) // 2] - init) < RESOLUTION
        else (input_size / (sample[len(sample) // 2] - init) + input_size / fast) / 2
        for init, sample in zip(inits, samples, strict=True)
    ]


def resample_median(values: Sequence[float], random: Random) -> list[float]:
    """Return the median of each resample."""
    return [_compute_median(sample) for sample in _resample(values, random)]


def compute_rps(input_size: int, init_time: Seconds, run_times: list[Seconds]) -> float:
    """Return the median speed over sorted run times, as the first MOROCCO tool computes it."""
    slow, fast = run_times[len(run_times) // 2], run_times[(len(run_times) - 1) // 2]
    if not is_longer(fast, init_time):
        return inf
    return (input_size / (slow - init_time) + input_size / (fast - init_time)) / 2


def is_longer(run_time: Seconds, init_time: Seconds) -> bool:
    """Tell whether a run outlasts the start-up; one that does not is too short for a speed."""
    return run_time - init_time >= RESOLUTION


def _compute_median(times: list[Seconds]) -> Seconds:
    """Return the median of sorted times; `statistics.median` costs twice as much here."""
    return (times[len(times) // 2] + times[(len(times) - 1) // 2]) / 2


def _resample(times: Sequence[Seconds], random: Random) -> Iterator[list[Seconds]]:
    """Yield `RESAMPLES` sorted resamples; drawing all at once is several times faster."""
    size = len(times)
    drawn = random.choices(sorted(times), k=size * RESAMPLES)
    return (sorted(drawn[start : start + size]) for start in range(0, len(drawn), size))
