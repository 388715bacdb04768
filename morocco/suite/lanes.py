"""Where runs are done: the lanes of this machine, each with its share of it, one run at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Protocol

from morocco.bench.interrupts import Events
from morocco.bench.run import RunObserver, RunSpec, run_bench
from morocco.bench.writers import FileWriter, LogWriter, WarmUpWriter
from morocco.errors import DataError, GpuError
from morocco.hardware.gpu import Gpus
from morocco.hardware.info import GpuInfo
from morocco.logs.record import RunRecord
from morocco.suite.plan import Job
from morocco.targets.factory import make_target
from morocco.util.units import Bytes

_MB = 2**20
_ROUND = 256
"""MB."""


class LaneLost(Exception):
    """A lane can do no more runs; the one it had is to be done elsewhere."""


class Lane(Protocol):
    """A place where one run at a time can be done."""

    @property
    def name(self) -> str:
        """What tells it from the others."""

    def measure(self, job: Job, watch: RunObserver, *, force: bool) -> None:
        """Do a run and write its log and record; with `force` it replaces a finished one.

        MoroccoError if it fails, LaneLost if it has to be done elsewhere.
        """

    def stop(self, reason: Exception) -> None:
        """End the run at work, which then raises `reason`, and begin no other."""


@dataclass(frozen=True)
class Share:
    """The part of a machine that a lane has; no cores mean all."""

    gpus: str
    cores: tuple[int, ...] = ()

    def apply(self, job: Job) -> Job:
        """Return the job as it is done on this share."""
        return replace(job, options=replace(job.options, gpus=self.gpus, cores=self.cores))


class LocalLane:
    """A share of this machine."""

    def __init__(self, name: str, share: Share) -> None:
        self.name = name
        self._share = share
        self._reason: Exception | None = None
        self._events: Events = SimpleQueue()

    def measure(self, job: Job, watch: RunObserver, *, force: bool) -> None:
        """Do a run here."""
        events: Events = SimpleQueue()
        self._events = events
        if self._reason is not None:
            events.put(self._reason)
        measure(self._share.apply(job), lambda: open_writer(job, force=force), watch, events)

    def stop(self, reason: Exception) -> None:
        """End the run at work."""
        self._reason = reason
        self._events.put(reason)


def measure(
    job: Job, open_writer: Callable[[], LogWriter], watch: RunObserver, events: Events
) -> RunRecord:
    """Do a run on this machine; the sink is opened once nothing else can be wrong."""
    options = job.options
    with Gpus.open(options.gpus) as gpus:
        target = make_target(job.target, job.batch_size, options, gpus, lambda _: None)
        plan = RunSpec(
            task=job.task,
            records=job.records,
            batch_size=job.batch_size,
            period=1 / options.rate,
            timeout=options.timeout,
            arguments=options.for_record(),
        )
        return run_bench(plan, target, gpus, open_writer(), watch, events=events)


def open_writer(job: Job, *, force: bool) -> FileWriter:
    """Return what writes the log of a job; a warm-up leaves none."""
    if job.index is None:
        return WarmUpWriter(job.path, replace=True)
    return FileWriter(job.path, replace=force)


def share_out(gpus: Sequence[GpuInfo], cores: Sequence[int]) -> list[Share]:
    """Return one share for each GPU: equal parts of the cores, none in two of them.

    What is left over when the parts are equal stays unused. GpuError without a GPU, DataError
    where there are fewer cores than GPUs.
    """
    if not gpus:
        raise GpuError(
            "--parallel does one run on each GPU at a time, and NVML sees no GPU here. Leave it "
            "out to do one run after the other."
        )
    each = len(cores) // len(gpus)
    if not each:
        raise DataError(f"--parallel: {len(gpus)} GPUs cannot share {len(cores)} CPU cores.")
    return [
        Share(gpu.uuid, tuple(sorted(cores[each * n : each * (n + 1)])))
        for n, gpu in enumerate(gpus)
    ]


def share_memory(ram: Bytes, parts: int) -> str:
    """Return an equal part of the RAM as Docker writes it.

    In round numbers: what the kernel takes differs a little from boot to boot, the share must not.
    """
    part = ram // parts // _MB
    return f"{part // _ROUND * _ROUND or part}m"
