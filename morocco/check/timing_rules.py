"""Rules on run times: whether the runs finished, and whether their speed can be trusted."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from math import isnan
from pathlib import PurePath
from statistics import median

from morocco.check.context import CheckContext
from morocco.check.rule import Detail, rule
from morocco.logs.log import Log, group_by_size, group_by_task
from morocco.logs.record import SLOWED, RunRecord
from morocco.stats.anomalies import (
    find_late,
    find_short_work,
    find_slow_starts,
    find_spread,
)
from morocco.stats.grouping import Group
from morocco.util.units import Bytes, Seconds, format_bytes

BUSY_END = 0.05
"""A model that has finished leaves the GPU idle while it prints; one that died does not."""
_MAX_READINGS = 100_000
"""Enough for a median; millions would fill the memory."""


@rule(
    "NO",
    good="the clock starts with the task",
    bad="the clock started after the task had loaded, so the speed is too high",
    repeat=True,
)
def late_clock(context: CheckContext) -> Iterator[Detail]:
    of_model: dict[str, list[Group]] = {model: [] for model in context.models}
    for group in context.groups:
        of_model[group.long.logs[0].model].append(group)
    for groups in of_model.values():
        late = [log for group in groups for log in find_late(group)]
        if late:
            inits = [ram for group in groups if (ram := group.init.first_ram) is not None]
            longs = [ram for log in late if (ram := log.samples[0].ram) is not None]
            what = f"{_format_range(longs)} at the first line, 1_1 runs {_format_range(inits)}"
            yield Detail.about(late, what)


def _format_range(sizes: Sequence[float]) -> str:
    low, high = (format_bytes(Bytes(size)) for size in (min(sizes), max(sizes)))
    return low if low == high else f"{low} to {high}"


@rule("NO", good="every run finished", bad="these runs failed or were cut off", repeat=True)
def finished(context: CheckContext) -> Iterator[Detail]:
    """Judge by the record or, without one, by the signs of a run that was cut off."""
    for of_task in group_by_task(context.logs).values():
        for logs in group_by_size(of_task).values():
            yield from _judge_ends(logs, context)


def _judge_ends(logs: Sequence[Log], context: CheckContext) -> Iterator[Detail]:
    records = {log.name: context.records.get(log.name) for log in logs}
    usual_time = median(log.run_time for log in logs)
    counts = Counter(record.prediction_count for record in records.values() if record)
    ((usual_count, _),) = counts.most_common(1) or [(None, 0)]
    for log in logs:
        record = records[log.name]
        if record is not None and record.exit_code is not None:
            reasons = _find_failures(record, log, usual_count)
        else:
            reasons = _find_cut_signs(log, usual_time, context.profile.thresholds.short_run)
        if what := ", ".join(reasons):
            yield Detail.about([log], what)


def _find_failures(record: RunRecord, log: Log, usual: int | None) -> Iterator[str]:
    exit_code = f"exit code {record.exit_code}"
    if record.exit_code != 0:
        yield exit_code
    if record.failure is not None and record.cause != exit_code:
        yield f"failed: {record.cause}"
    if record.records_fed is not None and record.records_fed < log.path.input_size:
        yield f"{record.records_fed:,} of {log.path.input_size:,} records fed"
    if not log.samples[-1].is_closing:
        yield "no closing line"
    if record.prediction_count == 0:
        yield "no predictions"
    elif record.prediction_count != usual and None not in (record.prediction_count, usual):
        yield f"{record.prediction_count:,} predictions, other runs {usual:,}"


def _find_cut_signs(log: Log, usual: Seconds, limit: float) -> Iterator[str]:
    """Yield the signs of a run that was cut off.

    For 1_1 runs one sign alone means nothing: a good run is short compared with a cold start, and
    may end while the GPU's averaged usage still shows its work.
    """
    signs = []
    if log.run_time < (1 - limit) * usual:
        signs.append(f"{log.run_time:.1f} s, others {usual:.1f} s")
    last = log.samples[-1].gpu_usage
    if last is not None and last > BUSY_END:
        signs.append(f"GPU {last:.0%} busy at the last line")
    if log.path.input_size > 1 or len(signs) > 1:
        yield from signs


@rule(
    "NO",
    good="start-up takes about the same time in all 1_1 runs of a task",
    bad="slow starts, as with a new image on a cold disk (or the fastest run was cut off)",
    todo="do one run first and discard it",
    repeat=True,
)
def start_up(context: CheckContext) -> Iterator[Detail]:
    limit = context.profile.thresholds.cold_start
    for task in context.tasks.values():
        for run in find_slow_starts(task.init, limit):
            fastest = task.init.times[0]
            yield Detail.about([run.log], f"{run.time:.1f} s, the fastest {fastest:.1f} s")


@rule(
    "NO",
    good="every long run takes longer than the start-up",
    bad="not longer than the start-up, so there is no speed",
    todo="measure with a larger --input-size",
)
def speed(context: CheckContext) -> Iterator[Detail]:
    for group in context.groups:
        for run in group.too_short:
            yield Detail.about([run.log], f"{run.time:.1f} s, start-up {group.init_time:.1f} s")


@rule(
    "warn",
    good="the work takes long enough to be timed",
    bad="too little work beyond the start-up to time it well",
    todo="measure with a larger --input-size",
)
def work(context: CheckContext) -> Iterator[Detail]:
    for group in context.measured:
        short = find_short_work(group)
        if short is not None:
            what = f"{short.time:.1f} s, {short.samples:.0f} samples"
            yield Detail.about(group.long.logs, f"{what}, --input-size {short.enough} is enough")


@rule(
    "warn",
    good="the speed is about the same in all runs of a size",
    bad="the speed varies",
    todo="measure more runs of all: run the same `morocco suite …` with more --repeats",
)
def spread(context: CheckContext) -> Iterator[Detail]:
    """Yield the groups with too wide a spread, and which runs a cause is recorded for.

    Without a cause no run is named: to choose which runs count would choose the result.
    """
    for group in context.measured:
        found = find_spread(group, context.profile.thresholds.spread)
        if found is not None:
            speeds = [rps for rps, _ in found.speeds]
            what = f"by {found.variation:.0%}, {min(speeds):.4g} to {max(speeds):.4g} rps"
            causes = _list_causes(group, context)
            yield Detail.about(group.long.logs, f"{what}{'; '.join(['', *causes])}")


def _list_causes(group: Group, context: CheckContext) -> Iterator[str]:
    for log in group.long.logs:
        record = context.records.get(log.name)
        codes = [code for code in record.warning_codes if code in SLOWED] if record else []
        if codes:
            yield f"{PurePath(log.name).name}: {', '.join(codes)}"


@rule(
    "warn",
    good="no GPU is idle while the model works",
    bad="the GPU is often idle while the model works",
    todo="measure with a larger --batch-size, if the model can use one",
)
def gpu_busy(context: CheckContext) -> Iterator[Detail]:
    for group in context.measured:
        runs = ((run.log, run.time - group.init_time) for run in group.long.runs)
        uses = [use for log, work in runs if (use := _compute_use(log, work)) is not None]
        if uses and median(uses) < context.profile.thresholds.gpu_busy:
            yield Detail.about(group.long.logs, f"{median(uses):.0%}")


def _compute_use(log: Log, work: Seconds) -> float | None:
    """Return the median GPU usage between the first and the last busy reading of the work.

    Busy means half of the peak or more. Busy readings more than `work` seconds before the last
    one are the model being loaded.
    """
    moments, uses = log.columns["timestamp"], log.columns["gpu_usage"]
    peak = max((use for use in uses if not isnan(use)), default=None)
    if peak is None:
        return None
    readings = zip(moments, uses, strict=True)
    busy = array("d", (moment for moment, use in readings if use >= peak / 2))
    first, last = busy[bisect_left(busy, busy[-1] - work)], busy[-1]
    at_work = uses[bisect_left(moments, first) : bisect_right(moments, last)]
    known = array("d", (use for use in at_work if not isnan(use)))
    return median(known[:: len(known) // _MAX_READINGS + 1])
