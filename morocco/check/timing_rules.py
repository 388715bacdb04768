"""Rules on run times: whether the runs came to their end, and give a speed to believe."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from math import isnan
from statistics import median

from morocco.check.context import CheckContext, by_size, find_too_short
from morocco.check.result import Detail, tell
from morocco.logs.discovery import by_model_and_task
from morocco.logs.log import Log
from morocco.logs.record import Recorded
from morocco.stats.anomalies import find_short_work, find_slow_starts, find_spread
from morocco.stats.grouping import find_late, first_ram
from morocco.util.units import Bytes, Seconds, format_bytes

BUSY_END = 0.05
"""A model that is done leaves the GPU idle while it prints; one that died does not."""

_ENOUGH = 100_000
"""Readings that make a median; millions would fill the memory."""


def find_late_clocks(case: CheckContext) -> Iterator[Detail]:
    """Yield the long runs whose first line shows a task that is loaded already."""
    for model in case.models:
        groups = [group for group in case.timed if group.long.logs[0].model == model]
        late = [log for group in groups for log in find_late(group)]
        if late:
            inits = [ram for group in groups if (ram := first_ram(group.init.logs)) is not None]
            longs = [ram for log in late if (ram := log.samples[0].ram) is not None]
            yield tell(late, f"{_range(longs)} at the first line, 1_1 runs {_range(inits)}")


def _range(sizes: Sequence[float]) -> str:
    low, high = (format_bytes(Bytes(size)) for size in (min(sizes), max(sizes)))
    return low if low == high else f"{low} to {high}"


def find_unfinished(case: CheckContext) -> Iterator[Detail]:
    """Yield the runs that failed or were cut off: by their records or, without, by their signs."""
    for logs in by_model_and_task(case.logs).values():
        for group in by_size(logs).values():
            yield from _find_unfinished(group, case)


def _find_unfinished(group: Sequence[Log], case: CheckContext) -> Iterator[Detail]:
    records = {log.name: case.records.get(log.name) for log in group}
    usual_time = median(log.run_time for log in group)
    counts = Counter(record.predictions for record in records.values() if record)
    ((usual_count, _),) = counts.most_common(1) or [(None, 0)]
    for log in group:
        record = records[log.name]
        if record is not None and record.exit_code is not None:
            reasons = _read_reasons(record, log, usual_count)
        else:
            reasons = _see_reasons(log, usual_time, case.profile.thresholds.short_run)
        what = ", ".join(reasons)
        if what:
            yield tell([log], what)


def _read_reasons(record: Recorded, log: Log, usual: int | None) -> Iterator[str]:
    """Yield what a record says against its run."""
    if record.exit_code != 0:
        yield f"exit code {record.exit_code}"
    if record.failure is not None:
        yield f"failed: {record.failure}"
    if record.records_fed is not None and record.records_fed < log.path.input_size:
        yield f"{record.records_fed:,} of {log.path.input_size:,} records fed"
    if not log.samples[-1].is_closing:
        yield "no closing line"
    if record.predictions == 0:
        yield "no predictions"
    elif record.predictions != usual and None not in (record.predictions, usual):
        yield f"{record.predictions:,} predictions, other runs {usual:,}"


def _see_reasons(log: Log, usual: float, limit: float) -> Iterator[str]:
    """Yield the signs of a run that was cut off.

    Of 1_1 runs each sign alone says nothing: beside cold starts a good one is short, and its work
    is over so soon that the GPU's average may still hold it.
    """
    signs = []
    if log.run_time < (1 - limit) * usual:
        signs.append(f"{log.run_time:.1f} s, others {usual:.1f} s")
    last = log.samples[-1].gpu_usage
    if last is not None and last > BUSY_END:
        signs.append(f"GPU {last:.0%} busy at the last line")
    if log.path.input_size > 1 or len(signs) > 1:
        yield from signs


def find_scattered_starts(case: CheckContext) -> Iterator[Detail]:
    """Yield the start-ups that take far longer than the fastest of their task."""
    for init in case.inits:
        fastest = init.times[0]
        for run in find_slow_starts(init, case.profile.thresholds.cold_start):
            yield tell([run.log], f"{run.time:.1f} s, the fastest {fastest:.1f} s")


def find_no_speed(case: CheckContext) -> Iterator[Detail]:
    """Yield the long runs that are no longer than the start-up."""
    for group in case.timed:
        for log in find_too_short(group):
            yield tell([log], f"{log.run_time:.1f} s, start-up {group.init_time:.1f} s")


def find_little_work(case: CheckContext) -> Iterator[Detail]:
    """Yield the groups whose work is too short to be timed well."""
    for group in case.measured:
        work = find_short_work(group)
        if work is not None:
            what = f"{work.time:.1f} s, {work.samples:.0f} samples, --input-size {work.enough}"
            yield tell(group.long.logs, f"{what} would do")


def find_outliers(case: CheckContext) -> Iterator[Detail]:
    """Yield every run off the median speed, in groups whose speed varies too much."""
    limit = case.profile.thresholds.spread
    for group in case.measured:
        spread = find_spread(group, limit)
        if spread is None:
            continue
        farthest = max(abs(speed.rps - spread.median) for speed in spread.speeds)
        least = min(limit * spread.median, farthest)  # a spread has one run that is to blame
        for speed in spread.speeds:
            if abs(speed.rps - spread.median) >= least:
                what = f"{speed.rps:.4g} rps, the median {spread.median:.4g}"
                yield tell([speed.run.log], what)


def find_idle_gpus(case: CheckContext) -> Iterator[Detail]:
    """Yield the groups that leave the GPU idle while they work."""
    for group in case.measured:
        runs = ((run.log, run.time - group.init_time) for run in group.long.runs)
        uses = [use for log, work in runs if (use := _find_use(log, work)) is not None]
        if uses and median(uses) < case.profile.thresholds.gpu_busy:
            yield tell(group.long.logs, f"{median(uses):.0%}")


def _find_use(log: Log, work: Seconds) -> float | None:
    """Return the median use of the GPU while it works, from the first busy reading to the last.

    Busy is half of the peak or more. What comes earlier than `work` seconds before the last one
    is the model being loaded.
    """
    peak = max((use for _, use in _list_uses(log)), default=None)
    if peak is None:
        return None
    last = max(moment for moment, use in _list_uses(log) if use >= peak / 2)
    busy = (moment for moment, use in _list_uses(log) if use >= peak / 2)
    first = next(moment for moment in busy if moment >= last - work)
    at_work = array("d", (use for moment, use in _list_uses(log) if first <= moment <= last))
    return median(at_work[:: len(at_work) // _ENOUGH + 1])


def _list_uses(log: Log) -> Iterator[tuple[Seconds, float]]:
    uses = zip(log.columns["timestamp"], log.columns["gpu_usage"], strict=True)
    return ((moment, use) for moment, use in uses if not isnan(use))
