"""On which machines models were measured, as the records say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from morocco.logs.record import RunRecord
from morocco.util.units import GIB, plural

UNKNOWN = "unknown GPU"
NO_GPU = "no GPU"

Machines = Mapping[str, str]
"""From the fingerprint of a machine to what it is, in words."""


def find_machines(records: Iterable[RunRecord]) -> dict[str, str]:
    """Return the machines of some runs; records without a fingerprint tell of none."""
    return {record.machine: describe(record) for record in records if record.machine}


def describe(record: RunRecord) -> str:
    """Return what decides the speed of a machine: "Tesla V100, Broadwell, 8 cores, 94 GB"."""
    parts = [
        name_gpus(record),
        record.host.cpu,
        record.host.cores and plural(record.host.cores, "core"),
        record.host.ram and f"{record.host.ram / GIB:.0f} GB",
        next((f"driver {gpu.driver}" for gpu in record.gpus or () if gpu.driver), None),
    ]
    return ", ".join(str(part) for part in parts if part)


def name_gpus(record: RunRecord | None) -> str:
    """Return the product name of the GPUs of a run: "2 x Tesla V100"."""
    if record is None or record.gpus is None:
        return UNKNOWN
    names = [gpu.name or UNKNOWN for gpu in record.gpus]
    counts = {name: names.count(name) for name in names}
    told = [name if count == 1 else f"{count} x {name}" for name, count in counts.items()]
    return " + ".join(told) or NO_GPU


def is_same(one: Machines, other: Machines) -> bool | None:
    """Tell whether two models ran on equal machines; None where records do not tell."""
    return None if not one or not other else set(one) == set(other)


def find_unequal(machines: Mapping[str, Machines]) -> Iterator[str]:
    """Yield one warning for each way in which the machines differ, by model."""
    for model, of_model in machines.items():
        if len(of_model) > 1:
            yield f"{model} was measured on several machines: {'; '.join(_tell(of_model))}."
    known = {model: of_model for model, of_model in machines.items() if of_model}
    if len({frozenset(of_model) for of_model in known.values()}) > 1:
        told = "; ".join(f"{model}: {' and '.join(_tell(m))}" for model, m in known.items())
        yield f"The models were measured on unequal machines, so they hardly compare: {told}."


def _tell(machines: Machines) -> list[str]:
    """Return the descriptions; equal ones are told apart by their fingerprint."""
    texts = list(machines.values())
    return [
        f"{text} ({mark})" if texts.count(text) > 1 else text for mark, text in machines.items()
    ]


def find_unknown(machines: Mapping[str, Machines]) -> str | None:
    """Return a note on models of which nobody can tell the machine."""
    unknown: Sequence[str] = [model for model, of_model in machines.items() if not of_model]
    if not unknown or len(machines) == 1:
        return None
    return f"No records, so nobody can tell whether the machine is the same: {', '.join(unknown)}."
