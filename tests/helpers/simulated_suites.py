"""Suites of a known speed as random run times, to see what intervals and comparisons are worth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from statistics import median

from morocco.report.model import Readings
from morocco.stats.speed import bound_speed, compute_rps

WORK, START_UP = 40.0, 20.0
"""Seconds that a run takes without noise, the start-up apart."""
NOISE = 0.4
"""Seconds; a run time differs by such an amount: 1 % of the work."""
RECORDS = 1000
_RESAMPLES = 400

Draw = Callable[[Random], float]


@dataclass(frozen=True)
class Noise:
    """How run times differ, in units of `NOISE`."""

    draw: Draw
    median: float
    """Of twenty million draws, where no formula gives it."""


def _draw_outlier(random: Random, share: float) -> float:
    late = random.expovariate(1 / 5) if random.random() < share else 0.0
    return random.gauss(0, 1) + late


def make_noises() -> Mapping[str, Noise]:
    """Return the kinds of noise; a third of outliers is more than intervals can be exact about."""
    return {
        "normal": Noise(lambda random: random.gauss(0, 1), 0.0),
        "skewed": Noise(lambda random: random.lognormvariate(0, 0.7), 1.0),
        "10 % outliers": Noise(lambda random: _draw_outlier(random, 0.1), 0.1168),
        "a third outliers": Noise(lambda random: _draw_outlier(random, 1 / 3), 0.4955),
    }


@dataclass(frozen=True)
class Condition:
    """Where run times differ, and how."""

    name: str
    noise: Noise
    in_init: bool
    in_long: bool

    @property
    def true_rps(self) -> float:
        """The speed that medians of ever more runs come to."""
        shift = NOISE * self.noise.median * (self.in_long - self.in_init)
        return RECORDS / (WORK + shift)

    def draw(self, random: Random, runs: int, speed: float = 1.0) -> Readings:
        """Return a suite of a model that is `speed` times as fast."""
        init = self._draw_times(random, runs, START_UP, self.in_init)
        long = self._draw_times(random, runs, START_UP + WORK / speed, self.in_long)
        return Readings(RECORDS, 32, init, long, (), (), (), (), (), ())

    def _draw_times(
        self, random: Random, runs: int, usual: float, noisy: bool
    ) -> tuple[float, ...]:
        return tuple(
            usual + (NOISE * self.noise.draw(random) if noisy else 0.0) for _ in range(runs)
        )


def list_conditions() -> Iterator[Condition]:
    """Yield every kind of noise in the start-ups, in the long runs, and in both."""
    for name, noise in make_noises().items():
        yield Condition(f"{name}, start-ups", noise, in_init=True, in_long=False)
        yield Condition(f"{name}, long runs", noise, in_init=False, in_long=True)
        yield Condition(f"{name}, both", noise, in_init=True, in_long=True)


Interval = Callable[[Readings], tuple[float, float]]
"""Computes the interval of a speed."""


def bound(readings: Readings) -> tuple[float, float]:
    """Compute the interval that `stats` does."""
    init, long = sorted(readings.init_times), sorted(readings.run_times)
    rps = compute_rps(readings.input_size, median(init), long)
    found = bound_speed(readings.input_size, init, long, rps)
    assert found is not None
    return found


def bootstrap(readings: Readings) -> tuple[float, float]:
    """Compute that of earlier versions, known to be wrong: percentiles of resampled medians."""
    random = Random(1)
    speeds = sorted(
        readings.input_size
        / (
            median(random.choices(readings.run_times, k=len(readings.run_times)))
            - median(random.choices(readings.init_times, k=len(readings.init_times)))
        )
        for _ in range(_RESAMPLES)
    )
    tail = _RESAMPLES * 25 // 1000
    return speeds[tail - 1], speeds[-tail]


def measure_coverage(
    condition: Condition, runs: int, trials: int, interval: Interval, seed: int = 1
) -> tuple[float, float]:
    """Return how often an interval holds the true speed, and its mean relative width."""
    random = Random(f"{seed} {condition.name} {runs}")
    held, width = 0, 0.0
    for _ in range(trials):
        low, high = interval(condition.draw(random, runs))
        held += low <= condition.true_rps <= high
        width += (high - low) / condition.true_rps
    return held / trials, width / trials


def measure_alarms(
    condition: Condition,
    runs: int,
    trials: int,
    find: Callable[[list[tuple[Readings, Readings]]], bool],
    tasks: int = 1,
    speed: float = 1.0,
) -> float:
    """Return how often `find` sees a difference between two models; of equals, false alarms."""
    random = Random(f"{condition.name} {runs} {tasks} {speed}")
    found = 0
    for _ in range(trials):
        pairs = [
            (condition.draw(random, runs, speed), condition.draw(random, runs))
            for _ in range(tasks)
        ]
        found += find(pairs)
    return found / trials
