"""GPUs against one another, by what the runs on each of them took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from morocco.logs.log import Log
from morocco.logs.record import RunRecord
from morocco.report.cells import Key, SubmissionRuns, choose
from morocco.report.machines import UNKNOWN, name_gpus
from morocco.report.model import GpuComparison
from morocco.stats.estimates import summarise
from morocco.stats.grouping import Clock

_SHOWN = 12
"""Characters of a UUID: "GPU-1a2b3c4d"."""


class _Speed(NamedTuple):
    rps: float
    runs: int


def compare_gpus(runs: SubmissionRuns, clock: Clock) -> tuple[GpuComparison, ...]:
    """Return each kind of GPU or, where there is but one kind, each GPU; the fastest first.

    Only models and tasks that several of them ran are compared; start-ups count for all GPUs of a
    kind. Runs without a record are those of an unknown GPU.
    """
    logs = [log for of_cell in runs.good.values() for log in of_cell]
    kinds = {log.name: name_gpus(runs.records.get(log.name)) for log in logs}
    one_kind = len(set(kinds.values()) - {UNKNOWN}) == 1
    cards = {
        name: _name_card(kind, runs.records.get(name)) if one_kind else kind
        for name, kind in kinds.items()
    }
    by_cell = {key: _time(of_cell, kinds, cards, clock) for key, of_cell in runs.good.items()}
    found = [_summarise(name, by_cell) for name in dict.fromkeys(cards.values())]
    return tuple(sorted(filter(None, found), key=lambda card: (-card.mean, card.name)))


def _name_card(kind: str, record: RunRecord | None) -> str:
    marks = [gpu.uuid[:_SHOWN] for gpu in (record and record.gpus) or () if gpu.uuid]
    return f"{kind} ({', '.join(marks)})" if marks else kind


def _time(
    logs: Sequence[Log], kinds: Mapping[str, str], cards: Mapping[str, str], clock: Clock
) -> dict[str, _Speed]:
    """Return the speed of each card on one task of one model."""
    found = {}
    for card in dict.fromkeys(cards[log.name] for log in logs):
        kind = next(kinds[log.name] for log in logs if cards[log.name] == card)
        own = [
            log for log in logs if _belongs(log, kinds[log.name] == kind, cards[log.name] == card)
        ]
        group = choose(own, (), clock, many=True).group
        if group is not None:
            (estimate,) = summarise([group], many_models=True).estimates
            found[card] = _Speed(estimate.rps, estimate.runs)
    return found


def _belongs(log: Log, of_kind: bool, of_card: bool) -> bool:
    return of_kind if log.path.is_start_up else of_card


def _summarise(name: str, by_cell: Mapping[Key, Mapping[str, _Speed]]) -> GpuComparison | None:
    cells = [cell for cell in by_cell.values() if name in cell and len(cell) > 1]
    if not cells:
        return None
    ratios = [cell[name].rps / _find_best(cell.values()) for cell in cells]
    runs = sum(cell[name].runs for cell in cells)
    return GpuComparison(name, runs, len(cells), min(ratios), fmean(ratios), max(ratios))


def _find_best(speeds: Iterable[_Speed]) -> float:
    return max(speed.rps for speed in speeds)
