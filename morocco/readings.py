"""From the readings of runs to numbers, and to what the numbers would be with other runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from random import Random
from statistics import fmean, median, stdev

from morocco.logs import Log
from morocco.recorded import Recorded
from morocco.report import Metric, Readings
from morocco.runs import Group
from morocco.speed import SEED, compute_rps, is_longer, resample_median, resample_rps
from morocco.units import GIB, Bytes

COMPARED: tuple[Metric, ...] = ("rps", "init_time", "gpu_ram", "ram", "energy")
"""Metrics that have a ratio: the highest peak of the long runs has no honest interval."""
_PER: int = 1000
"""Records that the energy is told for."""


def read_group(group: Group, records: Mapping[str, Recorded]) -> Readings:
    """Return what the runs of a group took; `records` by the name of their log."""
    init, long = group.init.logs, group.long.logs
    return Readings(
        input_size=group.path.input_size,
        batch_size=group.path.batch_size,
        init_times=tuple(group.init.times),
        run_times=tuple(group.long.times),
        gpu_ram=_to_gb(log.gpu_ram for log in init),
        gpu_ram_batch=_to_gb(log.gpu_ram for log in long),
        ram=_to_gb(log.ram for log in init),
        ram_batch=_to_gb(log.ram for log in long),
        init_energy=_find_energy(init, records),
        energy=_find_energy(long, records),
    )


def _to_gb(peaks: Iterable[Bytes | None]) -> tuple[float, ...]:
    return tuple(peak / GIB for peak in peaks if peak is not None)


def _find_energy(logs: Iterable[Log], records: Mapping[str, Recorded]) -> tuple[float, ...]:
    told = (records[log.name].energy for log in logs if log.name in records)
    return tuple(joules for joules in told if joules is not None and joules >= 0)


def has_speed(readings: Readings) -> bool:
    """Tell whether every long run outlasts the start-up."""
    init = median(readings.init_times)
    return all(is_longer(time, init) for time in readings.run_times)


def measure(metric: Metric, readings: Readings) -> float | None:
    """Return a metric as `stats` computes it; None where the runs do not tell it."""
    if metric == "rps":
        times = sorted(readings.run_times)
        return compute_rps(readings.input_size, median(readings.init_times), times)
    if metric == "energy":
        return _measure_energy(readings)
    values = _get_values(metric, readings)
    return median(values) if values else None


def _measure_energy(readings: Readings) -> float | None:
    """Return the joules of 1000 records beyond the start-up; None where these drown in it."""
    if not (readings.energy and readings.init_energy):
        return None
    beyond = median(readings.energy) - median(readings.init_energy)
    return beyond / readings.input_size * _PER if beyond > 0 else None


def measure_spread(readings: Readings) -> float | None:
    """Return standard deviation / mean of the speed; None for a single long run."""
    init = median(readings.init_times)
    speeds = [readings.input_size / (time - init) for time in readings.run_times]
    return stdev(speeds) / fmean(speeds) if len(speeds) > 1 else None


def resample(metric: Metric, readings: Readings, stream: str) -> list[float]:
    """Return the metric of each resample of the runs; another `stream` draws on its own.

    Not finite where a resample has no bound; the same readings and stream give the same numbers.
    """
    random = Random(f"{SEED} {stream} {metric}")
    if metric == "rps":
        size, inits, times = readings.input_size, readings.init_times, readings.run_times
        return resample_rps(size, inits, times, random)
    if metric == "energy":
        start_ups = resample_median(readings.init_energy, random)
        wholes = resample_median(readings.energy, random)
        pairs = zip(start_ups, wholes, strict=True)
        return [max(0.0, whole - init) / readings.input_size * _PER for init, whole in pairs]
    return resample_median(_get_values(metric, readings), random)


def count_runs(metric: Metric, readings: Readings) -> int:
    """Return how many runs a metric rests on: of both sizes, the fewer."""
    if metric == "rps":
        return min(len(readings.init_times), len(readings.run_times))
    if metric == "energy":
        return min(len(readings.init_energy), len(readings.energy))
    return len(_get_values(metric, readings))


def _get_values(metric: Metric, readings: Readings) -> tuple[float, ...]:
    values = {
        "init_time": readings.init_times,
        "gpu_ram": readings.gpu_ram,
        "ram": readings.ram,
    }
    return values[metric]


def is_measurable(value: float | None) -> bool:
    """Tell whether a number can stand in a ratio."""
    return value is not None and isfinite(value) and value > 0
