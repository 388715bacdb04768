"""What a single run says by itself: its run time, use and peaks; no estimate of speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isnan
from statistics import fmean

from morocco.logs.log import UNKNOWN_SIZE, Log
from morocco.util.units import GIB, Bytes, Seconds


@dataclass(frozen=True)
class RunSummary:
    """One run; None for what its log and record do not tell."""

    log: str
    run_time: Seconds
    """Start-up included."""
    input_size: int | None
    batch_size: int | None
    records_per_second: float | None
    """Input size / run time, so less than the speed by what the start-up takes."""
    cpu: float | None
    """Busy cores, the mean over the run."""
    ram: float | None
    """GB (2^30): the peak."""
    gpu_usage: float | None
    """0 to 1, the mean of the readings."""
    gpu_ram: float | None
    """GB (2^30): the peak."""
    samples: int


def summarise_run(log: Log) -> RunSummary:
    """Return what one log says by itself."""
    known, (records, batch) = log.path.size != UNKNOWN_SIZE, log.path.size
    return RunSummary(
        log.name,
        log.run_time,
        records if known else None,
        batch if known else None,
        records / log.run_time if known and log.run_time else None,
        _compute_cpu(log),
        _convert(log.ram),
        _compute_mean(log.columns["gpu_usage"]),
        _convert(log.gpu_ram),
        len(log.samples),
    )


def _compute_cpu(log: Log) -> float | None:
    """Return the mean of the busy cores; each reading is of the time since the line before."""
    times, readings = log.columns["timestamp"], log.columns["cpu_usage"]
    spans = [after - before for before, after in pairwise(times)]
    known = [(span, cpu) for span, cpu in zip(spans, readings[1:], strict=True) if not isnan(cpu)]
    total = sum(span for span, _ in known)
    return sum(span * cpu for span, cpu in known) / total if total else None


def _compute_mean(readings: Sequence[float]) -> float | None:
    known = [reading for reading in readings if not isnan(reading)]
    return fmean(known) if known else None


def _convert(peak: Bytes | None) -> float | None:
    return None if peak is None else peak / GIB
