"""Rules on the run records: one machine, one image, nobody else at work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from morocco.check.context import CheckContext
from morocco.check.profile import Machine
from morocco.check.result import Detail, tell
from morocco.logs.discovery import by_model_and_task
from morocco.logs.log import Log
from morocco.logs.record import AGREEMENT, Recorded
from morocco.util.units import GIB, format_bytes, plural

ABOUT = 0.1
"""A machine of 96 GB shows its users a few per cent less."""
_SHARED_LOAD = "in use by others"
"""In a warning of `bench`: what it warns of has a rule of its own."""


def find_unrecorded(case: CheckContext) -> Iterator[Detail]:
    """Yield the logs without a record that can be read."""
    faults: dict[tuple[str, str], list[Log]] = {}
    for entry in case.entries:
        if entry.log is not None and entry.record is None:
            what = entry.record_fault or ""
            faults.setdefault((entry.model, what), []).append(entry.log)
    yield from (tell(logs, what) for (_, what), logs in faults.items())


def find_strangers(case: CheckContext) -> Iterator[Detail]:
    """Yield the logs whose record is one of another run."""
    for log, record in case.recorded():
        what = ", ".join(_find_contradictions(log, record))
        if what:
            yield tell([log], what)


def _find_contradictions(log: Log, record: Recorded) -> Iterator[str]:
    path = log.path
    for said, named in (
        (record.task, path.task),
        (record.input_size, path.input_size),
        (record.batch_size, path.batch_size),
    ):
        if said is not None and said != named:
            yield f"the record says {said}, the name {named}"
    if record.started is not None and abs(record.started - log.samples[0].timestamp) > AGREEMENT:
        yield "the record is of another time"
    elif record.run_time is not None and abs(record.run_time - log.run_time) > AGREEMENT:
        yield f"the record says {record.run_time:.2f} s, the log {log.run_time:.2f} s"


def find_machines(case: CheckContext) -> Iterator[Detail]:
    """Yield in what the machines differ that ran one task of one model."""
    for _, runs in _by_task(case):
        told = [(log, _describe(record)) for log, record in runs]
        names = dict.fromkeys(name for _, facts in told for name in facts)
        found = [
            detail
            for name in names
            for detail in _find_different([(log, facts.get(name)) for log, facts in told], name)
        ]
        # The fingerprint differs with the rest, so alone it tells of what is not listed here.
        yield from found or _find_different([(log, r.machine) for log, r in runs], "machine")


def _describe(record: Recorded) -> dict[str, str]:
    """Return what decides the speed of a machine, as far as it is known."""
    gpus = record.gpus
    facts = {
        "CPU": record.cpu,
        "cores:": record.cores,
        "RAM:": None if record.ram is None else f"{record.ram / GIB:.0f} GB",
        "GPUs:": None if gpus is None else _join(gpu.name for gpu in gpus) or "none",
        "GPU memory:": _join(gpu.memory and format_bytes(gpu.memory) for gpu in gpus or ()),
        "driver": _join(gpu.driver for gpu in gpus or ()),
        "power limit:": _join(gpu.power_limit and f"{gpu.power_limit:.0f} W" for gpu in gpus or ()),
    }
    return {name: str(value) for name, value in facts.items() if value}


def _join(values: Iterable[str | float | None]) -> str:
    return ", ".join(str(value) for value in values if value)


def find_images(case: CheckContext) -> Iterator[Detail]:
    """Yield the images of one task of one model, where there are several."""
    for _, runs in _by_task(case):
        yield from _find_different([(log, record.image) for log, record in runs], "image")


def find_inputs(case: CheckContext) -> Iterator[Detail]:
    """Yield the data files of one task, where there are several."""
    for _, runs in _by_task(case):
        yield from _find_different([(log, record.data) for log, record in runs], "SHA-256")


def _by_task(case: CheckContext) -> Iterator[tuple[tuple[str, str], list[tuple[Log, Recorded]]]]:
    for key, logs in by_model_and_task(case.logs).items():
        yield key, [(log, case.records[log.name]) for log in logs if log.name in case.records]


def _find_different(told: Sequence[tuple[Log, str | None]], what: str) -> Iterator[Detail]:
    """Yield each value with its logs if there are several; what is not known counts as none."""
    logs: dict[str, list[Log]] = {}
    for log, value in told:
        if value is not None:
            logs.setdefault(value, []).append(log)
    if len(logs) > 1:
        yield from (tell(of_value, f"{what} {value}") for value, of_value in logs.items())


def find_foreign_load(case: CheckContext) -> Iterator[Detail]:
    """Yield the runs before whose start others were on the GPU."""
    yield from _group(case, lambda record: ", ".join(dict.fromkeys(record.foreign)))


def find_warnings(case: CheckContext) -> Iterator[Detail]:
    """Yield what `bench` itself warned of."""
    yield from _group(case, lambda record: " ".join(_own_warnings(record)))


def _own_warnings(record: Recorded) -> list[str]:
    return [warning for warning in record.warnings if _SHARED_LOAD not in warning]


def find_other_machines(case: CheckContext) -> Iterator[Detail]:
    """Yield in what the machines differ from that of the profile."""
    machine = case.profile.machine
    if machine is not None:
        yield from _group(case, lambda record: ", ".join(_compare(record, machine)))


def _group(case: CheckContext, look: Callable[[Recorded], str]) -> Iterator[Detail]:
    """Yield what each record says, once for all logs of a model that say the same."""
    logs: dict[tuple[str, str], list[Log]] = {}
    for log, record in case.recorded():
        what = look(record)
        if what:
            logs.setdefault((log.model, what), []).append(log)
    yield from (tell(of_text, what) for (_, what), of_text in logs.items())


def _compare(record: Recorded, machine: Machine) -> Iterator[str]:
    gpus = record.gpus or ()
    names = [gpu.name for gpu in gpus if gpu.name]
    memories = [gpu.memory / GIB for gpu in gpus if gpu.memory]
    if machine.gpus is not None and record.gpus is not None and len(gpus) != machine.gpus:
        yield f"{plural(len(gpus), 'GPU')}, not {machine.gpus}"
    if machine.gpu and any(machine.gpu.lower() not in name.lower() for name in names):
        yield f"{_join(dict.fromkeys(names))}, not {machine.gpu}"
    if machine.gpu_ram and any(_is_off(memory, machine.gpu_ram) for memory in memories):
        yield f"GPU memory {_join(f'{size:.0f}' for size in memories)} GB, not {machine.gpu_ram:g}"
    if machine.cores and record.cores and record.cores != machine.cores:
        yield f"{plural(record.cores, 'core')}, not {machine.cores}"
    if machine.ram and record.ram and _is_off(record.ram / GIB, machine.ram):
        yield f"{record.ram / GIB:.0f} GB of RAM, not {machine.ram:g}"


def _is_off(size: float, wanted: float) -> bool:
    return abs(size - wanted) > ABOUT * wanted
