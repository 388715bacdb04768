"""Rules on the run records: the same machine, image and data for all, nobody else at work."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from statistics import median

from morocco.check.context import CheckContext
from morocco.check.profile import Machine
from morocco.check.rule import CHANGE, Detail, rule
from morocco.hardware.clocks import GpuClocks, describe_slowdown
from morocco.logs.log import Log, group_by_task
from morocco.logs.record import FOREIGN_CPU, GPU_IN_USE, GPU_SLOWED, TIME_TOLERANCE, RunRecord
from morocco.util.units import GIB, Seconds, format_bytes, plural

record_rule = partial(rule, needs_records=True)

MEMORY_TOLERANCE = 0.1
"""A machine with 96 GB reports a few per cent less."""
SETTLED: Seconds = 5.0
"""Clocks take a moment to rise; those of a GPU that was at work for less are not compared."""
COMPARABLE = 3
"""The fewest runs of which one can be told to be slower than the others."""

_RULES_OF_THEIR_OWN = (GPU_IN_USE, FOREIGN_CPU, GPU_SLOWED)
"""Warnings that `foreign_load`, `foreign_cpu` and `clocks` cover."""


@rule(
    "warn",
    good="every log has a run record",
    bad="no usable run record beside the log, so it is unknown how and where the run ended",
    todo="keep the .json files that `morocco bench` writes beside the logs",
)
def records(context: CheckContext) -> Iterator[Detail]:
    return _merge(
        (entry.log, entry.record_fault or "")
        for entry in context.submission.entries
        if entry.log and entry.record is None
    )


@record_rule(
    "NO",
    good="every record belongs to its log",
    bad="the record belongs to another run",
    repeat=True,
)
def same_run(context: CheckContext) -> Iterator[Detail]:
    for log, record in context.recorded():
        if what := ", ".join(_find_contradictions(log, record)):
            yield Detail.about([log], what)


def _find_contradictions(log: Log, record: RunRecord) -> Iterator[str]:
    path = log.path
    for recorded, named in (
        (record.task, path.task),
        (record.input_size, path.input_size),
        (record.batch_size, path.batch_size),
    ):
        if recorded is not None and recorded != named:
            yield f"the record says {recorded}, the name {named}"
    start = record.start_time
    if start is not None and abs(start - log.samples[0].timestamp) > TIME_TOLERANCE:
        yield "the record is from another time"
    elif record.run_time is not None and abs(record.run_time - log.run_time) > TIME_TOLERANCE:
        yield f"the record says {record.run_time:.2f} s, the log {log.run_time:.2f} s"


@record_rule(
    "NO",
    good="each task was measured on one kind of machine",
    bad="one task was measured on different machines",
    todo=f"choose one machine; {CHANGE}",
)
def one_machine(context: CheckContext) -> Iterator[Detail]:
    # The fingerprint covers the facts too, so it is worth naming only if none of them differ.
    return _find_different(context, _describe_machine, lambda record: {"machine": record.machine})


def _describe_machine(record: RunRecord) -> dict[str, str | int | None]:
    """Return what decides the speed of a machine, as far as it is known."""
    gpus = record.gpus
    return {
        "CPU": record.host.cpu,
        "cores:": record.host.cores,
        "RAM:": record.host.ram and f"{record.host.ram / GIB:.0f} GB",
        "GPUs:": None if gpus is None else _join(gpu.name for gpu in gpus) or "none",
        "GPU memory:": _join(gpu.memory and format_bytes(gpu.memory) for gpu in gpus or ()),
        "driver": _join(gpu.driver for gpu in gpus or ()),
        "power limit:": _join(gpu.power_limit and f"{gpu.power_limit:.0f} W" for gpu in gpus or ()),
    }


def _join(values: Iterable[str | float | None]) -> str:
    return ", ".join(str(value) for value in values if value)


@record_rule(
    "NO",
    good="each task was measured with one image",
    bad="one task was measured with different images",
    todo=f"choose one image; {CHANGE}",
)
def one_image(context: CheckContext) -> Iterator[Detail]:
    return _find_different(context, lambda record: {"image": record.image})


@record_rule(
    "NO",
    good="each task was measured on one data file",
    bad="one task was measured on different data",
    todo=f"choose one DATA_DIR; {CHANGE}",
)
def one_input(context: CheckContext) -> Iterator[Detail]:
    return _find_different(context, lambda record: {"SHA-256": record.data.sha256})


def _find_different(
    context: CheckContext, *descriptions: Callable[[RunRecord], Mapping[str, str | int | None]]
) -> Iterator[Detail]:
    """Yield the logs of each value, for every fact of which the runs of a task have several values.

    A later description counts only if the runs agree in all facts of the earlier ones.
    """
    for logs in group_by_task(context.logs).values():
        recorded = [log for log in logs if log.name in context.records]
        for describe in descriptions:
            facts = {log.name: describe(context.records[log.name]) for log in recorded}
            details = []
            for fact in dict.fromkeys(name for values in facts.values() for name in values):
                known = ((log, facts[log.name][fact]) for log in recorded)
                values = list(_merge((log, f"{fact} {value}") for log, value in known if value))
                details += values if len(values) > 1 else []
            if details:
                yield from details
                break


@record_rule(
    "warn",
    good="nobody else was on the GPUs",
    bad="other processes were on the GPU before or during the run",
    todo="stop them",
    repeat=True,
)
def foreign_load(context: CheckContext) -> Iterator[Detail]:
    def list_processes(record: RunRecord) -> Iterable[str]:
        before = record.gpus_before.processes if record.gpus_before else ()
        processes = (*before, *(record.gpu_users or ()))
        return dict.fromkeys(process.name or "a hidden process" for process in processes)

    return _judge_each(context, list_processes)


@record_rule(
    "warn",
    good="nobody else kept the CPU busy during a run",
    bad="other processes kept the CPU busy during the run",
    todo="stop them",
    repeat=True,
)
def foreign_cpu(context: CheckContext) -> Iterator[Detail]:
    def describe(record: RunRecord) -> Iterator[str]:
        load = record.load
        if load is not None and load.has_foreign_load:
            yield f"{load.foreign_cores:.1f} of {plural(load.cores or 0, 'core')}"

    return _judge_each(context, describe)


@record_rule(
    "warn",
    good="the GPUs ran at their usual clocks",
    bad="a GPU was slowed down, so the run took too long",
    todo="improve its cooling or power supply, or choose another machine",
    repeat=True,
)
def clocks(context: CheckContext) -> Iterator[Detail]:
    usual = _find_usual_clocks(context)
    share, drop = context.profile.thresholds.slowed, context.profile.thresholds.slow_clock

    def judge(log: Log, record: RunRecord) -> Iterator[str]:
        for gpu in record.gpu_clocks or ():
            if gpu.is_slowed(share):
                yield describe_slowdown(gpu)
                continue
            expected = usual.get(_find_peers(log, record, gpu))
            if expected and gpu.sm_clock and gpu.sm_clock < (1 - drop) * expected:
                yield f"SM clock {gpu.sm_clock} MHz, {expected:.0f} in comparable runs"

    return _merge(
        (log, what) for log, record in context.recorded() if (what := ", ".join(judge(log, record)))
    )


def _find_usual_clocks(context: CheckContext) -> dict[tuple[object, ...], float]:
    """Return the median SM clock of comparable runs, where they are enough."""
    found = defaultdict(list)
    for log, record in context.recorded():
        for gpu in record.gpu_clocks or ():
            if gpu.sm_clock and (key := _find_peers(log, record, gpu)):
                found[key].append(gpu.sm_clock)
    return {key: median(known) for key, known in found.items() if len(known) >= COMPARABLE}


def _find_peers(log: Log, record: RunRecord, gpu: GpuClocks) -> tuple[object, ...]:
    """Return what comparable runs have in common; empty if the run is comparable to none.

    A GPU at its power limit is the slower the harder it works: only runs of the same work compare.
    """
    names = [info.name for info in record.gpus or () if info.index == gpu.gpu]
    if not names or not gpu.busy or gpu.busy < SETTLED:
        return ()
    limit = gpu.throttling.power_cap if gpu.throttling else None
    free = limit is not None and not limit
    return (names[0], *(() if free else (log.model, log.path.task, log.path.size)))


@record_rule(
    "warn",
    good="`morocco bench` gave no other warnings",
    bad="`morocco bench` gave warnings",
    todo="do as the warnings say",
)
def warnings(context: CheckContext) -> Iterator[Detail]:
    def find_own(record: RunRecord) -> Iterator[str]:
        coded = zip(record.warnings, record.warning_codes, strict=True)
        yield " ".join(text for text, code in coded if text and code not in _RULES_OF_THEIR_OWN)

    return _judge_each(context, find_own)


@record_rule(
    "warn",
    good="no machine differs from the one of the suite",
    bad="not the machine of the suite, so the numbers are not comparable",
    todo="measure on the machine that the suite asks for",
)
def reference_machine(context: CheckContext) -> Iterator[Detail]:
    machine = context.profile.machine
    if machine is not None:
        yield from _judge_each(context, lambda record: _compare(record, machine))


def _judge_each(
    context: CheckContext, judge: Callable[[RunRecord], Iterable[str]]
) -> Iterator[Detail]:
    """Yield what is wrong with each record, merged for the logs of a model that have the same."""
    judged = ((log, ", ".join(judge(record))) for log, record in context.recorded())
    return _merge((log, what) for log, what in judged if what)


def _merge(faults: Iterable[tuple[Log, str]]) -> Iterator[Detail]:
    """Yield one detail for all logs of a model with the same text."""
    logs: dict[tuple[str, str], list[Log]] = {}
    for log, what in faults:
        logs.setdefault((log.model, what), []).append(log)
    yield from (Detail.about(of_text, what) for (_, what), of_text in logs.items())


def _compare(record: RunRecord, machine: Machine) -> Iterator[str]:
    """Yield how the machine of a run differs from the one that is asked for."""
    gpus = record.gpus or ()
    names = [gpu.name for gpu in gpus if gpu.name]
    memories = [gpu.memory / GIB for gpu in gpus if gpu.memory]
    if machine.gpus is not None and record.gpus is not None and len(gpus) != machine.gpus:
        yield f"{plural(len(gpus), 'GPU')}, not {machine.gpus}"
    if machine.gpu and any(machine.gpu.lower() not in name.lower() for name in names):
        yield f"{_join(dict.fromkeys(names))}, not {machine.gpu}"
    if machine.gpu_ram and any(_is_off(memory, machine.gpu_ram) for memory in memories):
        yield f"GPU memory {_join(f'{size:.0f}' for size in memories)} GB, not {machine.gpu_ram:g}"
    if machine.cores and record.host.cores not in (0, machine.cores):
        yield f"{plural(record.host.cores, 'core')}, not {machine.cores}"
    if machine.ram and record.host.ram and _is_off(record.host.ram / GIB, machine.ram):
        yield f"{record.host.ram / GIB:.0f} GB of RAM, not {machine.ram:g}"


def _is_off(size: float, wanted: float) -> bool:
    return abs(size - wanted) > MEMORY_TOLERANCE * wanted
