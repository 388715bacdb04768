"""How a run turned out: what was measured, and whether it failed; pure functions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePath

from morocco.bench.contract import Answers
from morocco.errors import (
    NoPredictions,
    OutOfMemory,
    TargetError,
    UnreadInput,
    WrongPredictions,
)
from morocco.hardware.clocks import GpuClocks, describe_slowdown
from morocco.hardware.info import GpuInfo, GpuProcess, Joules, Load
from morocco.logs.record import (
    FOREIGN_CPU,
    GPU_IN_USE,
    GPU_SLOWED,
    GpusBefore,
    Monitor,
    Output,
)
from morocco.logs.samples import Peaks
from morocco.targets.target import Exit, Identity, is_process
from morocco.tasks import Records
from morocco.util.units import Bytes, Seconds, format_bytes, plural

_SIGKILLED = 128 + 9
_IDLE = 0.05
"""Cores; Python takes as much to start in a run of a second, a model far more."""
_IDLE_CLIENT = 0.2
_CLIENTS = {"curl", "docker", "kubectl", "nerdctl", "podman", "srun", "ssh", "wget"}
_QUOTED_LINES = 10
_QUOTED_WIDTH = 300
_IDX = ", with the `idx` of its record"
_RAW = "; for a target that obeys another contract, use --raw-output."
_TOO_MANY = " If it needs more processes or threads than it may have, use --pids-limit."
_NO_NETWORK = (
    " It seems to have tried the network, of which a run has none: put what it downloads into the "
    "image, or allow it with --network bridge."
)
_UNREACHABLE = (
    "Temporary failure in name resolution",
    "Name or service not known",
    "Network is unreachable",
    "Could not resolve host",
)
_CONFINED = (
    (
        "capabilities",
        "Operation not permitted",
        " If it needs a capability that containers lack here, use --cap-add.",
    ),
    ("pids", "Resource temporarily unavailable", _TOO_MANY),
    ("pids", "can't start new thread", _TOO_MANY),
    ("read_only", "Read-only file system", " Without --read-only it may write to its disk."),
    *(("network", sign, _NO_NETWORK) for sign in _UNREACHABLE),
)
"""Limit, what a target says that has met it, and what to do."""
_FED_LATE: Seconds = 0.05
"""A busy machine takes 0.02 s from the start of a container to the first byte of its input."""
_BLIND: Seconds = 0.5
_NO_OUTPUT = Output(0, hashlib.sha256().hexdigest(), None, None)


@dataclass(frozen=True)
class RunWarning:
    """Something that makes a measurement doubtful."""

    code: str
    """What it is about, the same for all warnings of its kind: "gpu-in-use"."""
    message: str


@dataclass(frozen=True)
class Prepared:
    """A run that is ready to start."""

    records: Records
    target: Identity
    gpus: tuple[GpuInfo, ...]
    gpus_before: GpusBefore


@dataclass(frozen=True)
class Measurement:
    """What was measured of a run, up to where it came; moments are on the monotonic clock."""

    started: Seconds | None = None
    """None if the target never started."""
    exit: Exit | None = None
    """None if the run was broken off before the target ended."""
    fed: int = 0
    """Records handed over."""
    unread: Bytes = 0
    """Input that the target left unread, as far as is known."""
    predictions: Output = _NO_OUTPUT
    answers: Answers | None = None
    """What the predictions are worth; None if they were not checked."""
    stderr: str = ""
    """The end of what the target logged."""
    peaks: Peaks = field(default_factory=Peaks)
    cores: float | None = None
    """The most that may have been busy on average; None if it could not be read."""
    energy: Joules | None = None
    monitor: Monitor | None = None
    load: Load | None = None
    gpus_lost: tuple[str, ...] = ()
    gpu_users: tuple[GpuProcess, ...] | None = None
    """Others that computed on the GPUs during the run; None if that cannot be told."""
    gpu_clocks: tuple[GpuClocks, ...] | None = None
    blind: Seconds = 0.0
    """For how long after the start its processes were not known, and so not read."""


def warn_of_gpu_users(before: GpusBefore) -> Iterator[RunWarning]:
    """Yield a warning for each process that uses a GPU before the target has started."""
    for process in before.processes:
        yield _warn_of_gpu_user(process, "is in use by others")


def _warn_of_gpu_user(process: GpuProcess, what: str) -> RunWarning:
    name = process.name or "a hidden process"
    message = f"GPU {process.gpu} {what}: {name} (pid {process.pid}). The measurement may come out "
    return RunWarning(GPU_IN_USE, message + "too slow.")


def warn_of_other_runs(runs: Iterable[str]) -> Iterator[RunWarning]:
    """Yield a warning for each morocco run that is at work on this machine."""
    for run in runs:
        message = (
            f"Another morocco run is at work on this machine: {run}. They slow each other down; "
            "measure one after the other."
        )
        yield RunWarning("other-runs", message)


def judge(prepared: Prepared, measured: Measurement) -> tuple[RunWarning, ...]:
    """Return what makes a completed run doubtful; TargetError, of the first cause, if it failed."""
    assert measured.exit
    _check_exit(prepared, measured, measured.exit)
    _check_contract(prepared, measured)
    return tuple(_find_doubts(prepared, measured, measured.exit))


def _check_exit(prepared: Prepared, measured: Measurement, end: Exit) -> None:
    ram = measured.peaks.ram
    peak = "" if ram is None else f" Its RAM peaked at {format_bytes(ram)}."
    limit = prepared.target.limits.get("memory")
    if end.code and end.out_of_memory:
        why = f"it needed more than --memory {limit}." if limit else f"the machine ran out.{peak}"
        raise build_failure(
            OutOfMemory, f"The target was killed for memory: {why}", measured.stderr
        )
    if end.code == _SIGKILLED:
        message = (
            "The target was killed by signal 9, and not by morocco: most likely the machine ran "
            f"out of memory.{peak}"
        )
        raise build_failure(OutOfMemory, message, measured.stderr)
    if end.code:
        progress = format_counts(prepared.records, measured)
        hint = _find_confinement(prepared.target, measured.stderr)
        message = f"The target exited with code {end.code}: {progress}.{hint}"
        raise build_failure(TargetError, message, measured.stderr, end.code)


def _find_confinement(target: Identity, stderr: str) -> str:
    """Return which option helps a container that seems to have met one of its limits."""
    limits = set(target.limits) - ({"network"} if target.limits.get("network") != "none" else set())
    hints = (hint for limit, sign, hint in _CONFINED if limit in limits and sign in stderr)
    return next(hints, "")


def _check_contract(prepared: Prepared, measured: Measurement) -> None:
    if measured.fed < prepared.records.count or measured.unread:
        message = (
            "The target exited before it had read its input: "
            f"{format_counts(prepared.records, measured)}. It must read stdin to its end."
        )
        raise build_failure(UnreadInput, message, measured.stderr)
    if not measured.predictions.count:
        message = (
            "The target exited with code 0 but printed no predictions. It must write one JSON "
            "object per line to stdout."
        )
        raise build_failure(NoPredictions, message, measured.stderr)
    if measured.answers is not None:
        _check_answers(prepared.records, measured.answers, measured.stderr)


def _check_answers(records: Records, answers: Answers, stderr: str) -> None:
    if answers.broken is not None:
        message = (
            f"The target printed something else than predictions: {answers.broken}. A prediction "
            f"is one JSON object on a line{_IDX if records.distinct else ''}{_RAW}"
        )
        raise build_failure(WrongPredictions, message, stderr)
    needed = records.distinct or records.count
    answered = answers.distinct if records.distinct else answers.objects
    if answered < needed:
        what = "different idx" if records.distinct else "records"
        message = (
            f"The target left records out: {plural(answers.objects, 'prediction')} for "
            f"{answered:,} of {needed:,} {what}. It must predict every record{_RAW}"
        )
        raise build_failure(WrongPredictions, message, stderr)


def _find_doubts(prepared: Prepared, measured: Measurement, end: Exit) -> Iterator[RunWarning]:
    records, predicted = prepared.records, measured.predictions.count or 0
    if predicted not in (records.count, records.distinct):
        distinct = f" with {records.distinct:,} different idx" if records.distinct else ""
        yield RunWarning(
            "prediction-count",
            f"{plural(predicted, 'prediction')} for {plural(records.count, 'record')}{distinct}: "
            "the model should print one line for each record and nothing else to stdout.",
        )
    if _works_elsewhere(prepared.target, measured):
        yield RunWarning(
            "works-elsewhere",
            f"The target kept at most {measured.cores:.2f} cores busy and was on no GPU: its work "
            "is done by other processes, which are not measured. If the command is the client of "
            "an engine or of a server, measure the image or the server's own program.",
        )
    if end.out_of_memory:
        message = "A process of the target was killed for memory, but the target exited with 0."
        yield RunWarning("out-of-memory", message)
    yield from _find_gpu_doubts(prepared, measured)
    yield from _find_doubts_of_engine(measured.blind, end.fed_late)
    if measured.monitor is not None and (missed := measured.monitor.samples_missed):
        message = f"{plural(missed, 'sample')} missed: the machine was too busy."
        yield RunWarning("samples-missed", message)
    if measured.load is not None:
        yield from _find_load(measured.load, quota_wanted="cpus" in prepared.target.limits)


def _find_gpu_doubts(prepared: Prepared, measured: Measurement) -> Iterator[RunWarning]:
    peaks = measured.peaks
    if prepared.gpus and peaks.gpu_ram is None:
        yield RunWarning(
            "gpu-unused",
            f"The target was given {plural(len(prepared.gpus), 'GPU')} but was never seen on one. "
            "If it is a CPU model, use --gpus none.",
        )
    if peaks.gpu_ram_source == "device":
        yield RunWarning(
            "gpu-ram-of-device",
            "The driver does not report GPU memory by process: gpu_ram is the growth of the "
            "GPU's memory in use since before the start.",
        )
    told = {(process.gpu, process.pid) for process in prepared.gpus_before.processes}
    for process in measured.gpu_users or ():
        if (process.gpu, process.pid) not in told:
            yield _warn_of_gpu_user(process, "was used by others during the run")
    for clocks in filter(GpuClocks.is_slowed, measured.gpu_clocks or ()):
        yield RunWarning(
            GPU_SLOWED,
            f"GPU {clocks.gpu} was {describe_slowdown(clocks)}. The run took longer than it need: "
            "improve the cooling or the power supply, or measure on another machine.",
        )
    for lost in measured.gpus_lost:
        message = f"{lost}. Its readings end there; gpu_ram may be too low."
        yield RunWarning("gpu-lost", message)


def _works_elsewhere(target: Identity, measured: Measurement) -> bool:
    """Return whether a bare process uses so little CPU that others must do its work."""
    if not is_process(target.target) or measured.cores is None or measured.peaks.gpu_ram:
        return False
    words = {PurePath(word).name for word in " ".join(target.command).split()}
    return measured.cores < (_IDLE_CLIENT if words & _CLIENTS else _IDLE)


def _find_load(load: Load, *, quota_wanted: bool) -> Iterator[RunWarning]:
    """Yield what else was at work on the machine and may have slowed the target down."""
    cores = f"of {plural(load.cores or 0, 'core')}"
    if load.has_foreign_load:
        yield RunWarning(
            FOREIGN_CPU,
            f"Other processes kept {load.foreign_cores:.1f} {cores} busy (at most "
            f"{load.foreign_highest:.1f}). The measurement may come out too slow: stop them, and "
            "measure again.",
        )
    if load.has_steal:
        yield RunWarning(
            "steal",
            f"The hypervisor gave {load.stolen_cores:.1f} {cores} to other virtual machines. The "
            "measurement may come out too slow: rent a machine whose cores are not shared.",
        )
    if load.has_swapping:
        yield RunWarning(
            "swapping",
            f"{format_bytes(load.swapped_in or 0)} came back from swap during the run. The "
            "measurement may come out too slow: free memory, and measure again.",
        )
    if load.has_throttling and load.throttling and not quota_wanted:
        periods = load.throttling
        yield RunWarning(
            "throttled",
            f"The CPU quota of the target's control group ran out in {periods.throttled:,} of "
            f"{periods.periods:,} periods. The target is slower than its {cores[3:]}: raise the "
            "quota, or let the model use fewer threads.",
        )


def _find_doubts_of_engine(blind: Seconds, fed_late: Seconds) -> Iterator[RunWarning]:
    if fed_late > _FED_LATE:
        yield RunWarning(
            "fed-late",
            f"The engine reported {fed_late:.3f} s late that the target runs: it was fed that much "
            "later, and the run time may be too long by as much.",
        )
    if blind > _BLIND:
        yield RunWarning(
            "read-late",
            f"The engine told only {blind:.1f} s after the start, or not at all, which processes "
            "to read: the peaks may be too low.",
        )


def build_failure(
    kind: type[TargetError], message: str, stderr: str, code: int | None = None
) -> TargetError:
    """Return an error that quotes the last lines a target logged."""
    lines = [line for line in stderr.splitlines() if line.strip()][-_QUOTED_LINES:]
    if not lines:
        return kind(f"{message} It logged nothing to stderr.", code)
    quoted = tuple(line[:_QUOTED_WIDTH] for line in lines)
    text = "\n    ".join([f"{message}\n  Its last lines on stderr:", *quoted])
    return kind(text, code, quoted)


def format_counts(records: Records, measured: Measurement) -> str:
    """Return how far a run has come, as part of a sentence."""
    unread = f", {format_bytes(measured.unread)} of input left unread" if measured.unread else ""
    return (
        f"{measured.fed:,} of {plural(records.count, 'record')} handed over{unread}, "
        f"{plural(measured.predictions.count or 0, 'prediction')} back"
    )
