"""One model on one task: which of its sizes counts, what it comes to, or why there is nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from morocco.case import INIT_SIZE, Size, find_too_short
from morocco.logs import Log
from morocco.readings import measure, measure_spread, read_group
from morocco.recorded import Recorded
from morocco.report import Cell
from morocco.report_runs import Failed, Key, say_causes
from morocco.runs import Clock, Group, TaskRuns, split
from morocco.stats import Estimate
from morocco.units import plural


@dataclass(frozen=True)
class Choice:
    """The size of a cell that counts, or why there is none."""

    group: Group | None
    reason: str | None
    passed_over: tuple[Size, ...] = ()
    """Other sizes that have a speed."""


def choose(logs: Sequence[Log], failed: Sequence[Failed], clock: Clock, *, many: bool) -> Choice:
    """Return the long size with most runs among those with a speed; of equals the largest input.

    `logs` and `failed` are of one model and task.
    """
    if not logs:
        return Choice(None, _say_nothing_good(failed))
    task = split(list(logs), clock, many)
    usable = [group for group in task.groups if _is_usable(group)]
    if not usable:
        return Choice(None, _find_reason(task, failed))
    best = max(usable, key=lambda group: (len(group.long.runs), get_size(group)))
    return Choice(best, None, tuple(get_size(group) for group in usable if group is not best))


def _is_usable(group: Group) -> bool:
    return bool(group.init.runs and group.long.runs) and not find_too_short(group)


def get_size(group: Group) -> Size:
    """Return input and batch size of the long runs."""
    return group.path.input_size, group.path.batch_size


def _say_nothing_good(failed: Sequence[Failed]) -> str:
    if not failed:
        return "no runs"
    return f"{_all(len(failed))} failed: {say_causes(failed)}"


def _all(count: int) -> str:
    return f"all {count} runs" if count > 1 else "the only run"


def _find_reason(task: TaskRuns, failed: Sequence[Failed]) -> str:
    if not task.init.logs:
        return "no 1_1 runs" + _say_failed([f for f in failed if f.size == INIT_SIZE])
    if not task.groups:
        return "no long runs" + _say_failed([f for f in failed if f.size != INIT_SIZE])
    if not task.init.runs or not any(group.long.runs for group in task.groups):
        return "no GPU reading to start the clock from"
    short = [log for group in task.groups for log in find_too_short(group)]
    names = ", ".join(PurePath(log.name).name for log in short)
    return f"{names}: not longer than the start-up, {task.groups[0].init_time:.1f} s"


def _say_failed(failed: Sequence[Failed]) -> str:
    return f": {plural(len(failed), 'run')} failed, {say_causes(failed)}" if failed else ""


def make_cell(
    key: Key,
    logs: Sequence[Log],
    failed: Sequence[Failed],
    choice: Choice,
    estimate: Estimate | None,
    records: Mapping[str, Recorded],
) -> Cell:
    """Return a cell; `estimate` is that of the group that was chosen."""
    if choice.group is None or estimate is None:
        tried = len(logs) + len(failed)
        return Cell(*key, tuple(logs), reason=choice.reason, failed=len(failed), tried=tried)
    readings = read_group(choice.group, records)
    sizes = (INIT_SIZE, get_size(choice.group))
    counted = sum(run.size in sizes for run in failed)
    return Cell(
        *key,
        tuple(logs),
        estimate,
        readings=readings,
        ram=measure("ram", readings),
        ram_batch=max(readings.ram_batch, default=None),
        energy=measure("energy", readings),
        spread=measure_spread(readings),
        failed=counted,
        tried=len(choice.group.init.logs) + len(choice.group.long.logs) + counted,
    )
