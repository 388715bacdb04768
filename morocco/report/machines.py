"""The machines and GPUs that models were measured on, as records describe them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from statistics import fmean
from typing import NamedTuple

from morocco.logs.log import Log
from morocco.logs.record import RunRecord
from morocco.report.cells import CellRuns, Key, choose_best
from morocco.report.model import GpuComparison
from morocco.stats.grouping import Clock, Group, group_runs
from morocco.stats.speed import compute_rps
from morocco.util.units import GIB, plural

_UNKNOWN_GPU = "unknown GPU"
_UUID_LENGTH = 12
"""Characters of a UUID that are shown: "GPU-1a2b3c4d"."""

Machines = Mapping[str, str]
"""Descriptions of machines by fingerprint."""


def list_machines(records: Iterable[RunRecord | None]) -> dict[str, str]:
    """Return the machines of some runs; a record without a fingerprint adds none."""
    return {
        record.machine: _describe_machine(record)
        for record in records
        if record is not None and record.machine
    }


def _describe_machine(record: RunRecord) -> str:
    """Return what decides the speed of a machine: "Tesla V100, Broadwell, 8 cores, 94 GB"."""
    host = record.host
    parts = [
        name_gpus(record),
        host.cpu,
        host.cores and plural(host.cores, "core"),
        host.ram and f"{host.ram / GIB:.0f} GB",
        next((f"driver {gpu.driver}" for gpu in record.gpus or () if gpu.driver), None),
    ]
    return ", ".join(str(part) for part in parts if part)


def name_gpus(record: RunRecord | None) -> str:
    """Return the product name of the GPUs of a run: "2 x Tesla V100"."""
    if record is None or record.gpus is None:
        return _UNKNOWN_GPU
    counts = Counter(gpu.name or _UNKNOWN_GPU for gpu in record.gpus)
    texts = [name if count == 1 else f"{count} x {name}" for name, count in counts.items()]
    return " + ".join(texts) or "no GPU"


def are_same(one: Machines, other: Machines) -> bool | None:
    """Tell whether two models ran on equal machines; None where records do not say."""
    return None if not one or not other else set(one) == set(other)


def list_machine_warnings(machines: Mapping[str, Machines]) -> Iterator[str]:
    """Yield a warning for each way in which the machines of the models differ."""
    for model, of_model in machines.items():
        if len(of_model) > 1:
            yield f"{model} was measured on several machines: {'; '.join(_describe(of_model))}."
    known = {model: of_model for model, of_model in machines.items() if of_model}
    if len({frozenset(of_model) for of_model in known.values()}) > 1:
        texts = "; ".join(f"{model}: {' and '.join(_describe(m))}" for model, m in known.items())
        yield f"The models were measured on unequal machines, so they hardly compare: {texts}."


def _describe(machines: Machines) -> list[str]:
    """Return the descriptions; equal ones are followed by their fingerprints."""
    counts = Counter(machines.values())
    return [f"{text} ({mark})" if counts[text] > 1 else text for mark, text in machines.items()]


class _Speed(NamedTuple):
    rps: float
    """Of the runs, or its share of that of the best GPU."""
    runs: int


def compare_gpus(
    cells: Mapping[Key, CellRuns], records: Mapping[str, RunRecord], clock: Clock
) -> tuple[GpuComparison, ...]:
    """Compare the kinds of GPU or, where there is only one kind, the GPUs; the fastest first.

    Only models and tasks that ran on several of them are compared. Start-up runs count for all
    GPUs of their kind; runs without a record are those of an unknown GPU.
    """
    logs = [log for cell in cells.values() for log in cell.logs]
    kinds = {log.name: name_gpus(records.get(log.name)) for log in logs}
    names = kinds
    if len(set(kinds.values()) - {_UNKNOWN_GPU}) == 1:
        names = {log: _add_uuids(kind, records.get(log)) for log, kind in kinds.items()}
    speeds = [_time_gpus(cell, kinds, names, clock) for cell in cells.values()]
    compared: dict[str, list[_Speed]] = {}
    for of_cell in (of_cell for of_cell in speeds if len(of_cell) > 1):
        best = max(speed.rps for speed in of_cell.values())
        for name, speed in of_cell.items():
            compared.setdefault(name, []).append(_Speed(speed.rps / best, speed.runs))
    gpus = []
    for name, shares in compared.items():
        ratios, runs = zip(*shares, strict=True)
        low, mean, high = min(ratios), fmean(ratios), max(ratios)
        gpus.append(GpuComparison(name, sum(runs), len(shares), low, mean, high))
    return tuple(sorted(gpus, key=lambda gpu: (-gpu.mean, gpu.name)))


def _add_uuids(kind: str, record: RunRecord | None) -> str:
    uuids = [gpu.uuid[:_UUID_LENGTH] for gpu in (record and record.gpus) or () if gpu.uuid]
    return f"{kind} ({', '.join(uuids)})" if uuids else kind


def _time_gpus(
    cell: CellRuns, kinds: Mapping[str, str], names: Mapping[str, str], clock: Clock
) -> dict[str, _Speed]:
    """Return the speed of each GPU on one task of one model; `kinds`, `names` are by log."""
    start_ups: dict[str, list[Log]] = {}
    long: dict[str, list[Log]] = {}
    for log in cell.logs:
        if log.path.is_start_up:
            start_ups.setdefault(kinds[log.name], []).append(log)
        else:
            long.setdefault(names[log.name], []).append(log)
    inits = {
        kind: group_runs(of_kind, clock, many_models=True).init
        for kind, of_kind in start_ups.items()
    }
    speeds = {}
    for name, own in long.items():
        if init := inits.get(kinds[own[0].name]):
            groups = group_runs(own, clock, many_models=True).groups
            group = choose_best(Group(init, of_size.long, clock) for of_size in groups)
            if group is not None:
                rps = compute_rps(group.path.input_size, group.init_time, group.long.times)
                speeds[name] = _Speed(rps, len(group.long.runs))
    return speeds
