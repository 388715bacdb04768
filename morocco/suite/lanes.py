"""Where runs are done: the lanes of this machine, each with its share of it, one run at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Protocol

from morocco.bench.interrupts import Events
from morocco.bench.run import RunObserver, RunSpec, run_spec
from morocco.bench.writers import FileWriter, LogWriter, WarmUpWriter
from morocco.errors import DataError, GpuError
from morocco.hardware.gpu import Gpus
from morocco.hardware.info import GpuInfo
from morocco.logs.record import RunRecord
from morocco.suite.plan import Job


class LaneLost(Exception):
    """A lane can do no more runs; its current run must be done elsewhere."""


class Lane(Protocol):
    """A place where one run at a time can be done."""

    @property
    def name(self) -> str:
        """A name that no other lane has."""

    def measure(self, job: Job, observer: RunObserver, *, force: bool) -> None:
        """Do a run and write its log and record; `force` replaces a finished log.

        MoroccoError if the run fails, LaneLost if it must be done elsewhere.
        """

    def stop(self, reason: Exception) -> None:
        """End the current run, which then raises `reason`, and start no other."""


@dataclass(frozen=True)
class Share:
    """The part of a machine that belongs to a lane."""

    gpus: str
    cores: tuple[int, ...] = ()
    """Empty for all."""

    @classmethod
    def of_gpus(cls, gpus: Gpus, choice: str) -> Share:
        """Return the whole machine with the GPUs of `choice`; "auto" means the first one."""
        return cls(gpus.infos[0].uuid if choice == "auto" and gpus.infos else choice)

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

    def measure(self, job: Job, observer: RunObserver, *, force: bool) -> None:
        """Do a run here."""
        events: Events = SimpleQueue()
        self._events = events
        if self._reason is not None:
            events.put(self._reason)
        measure(self._share.apply(job), lambda: open_writer(job, force=force), observer, events)

    def stop(self, reason: Exception) -> None:
        """End the current run."""
        self._reason = reason
        self._events.put(reason)


def measure(
    job: Job, open_writer: Callable[[], LogWriter], observer: RunObserver, events: Events
) -> RunRecord:
    """Do a run on this machine; the writer is opened once nothing else can be wrong."""
    spec = RunSpec(job.target, job.task, job.records, job.batch_size, job.options)
    return run_spec(spec, open_writer, observer, events=events)


def open_writer(job: Job, *, force: bool) -> FileWriter:
    """Return a writer for the log of a job; a warm-up leaves no log."""
    if job.index is None:
        return WarmUpWriter(job.path, replace=True)
    return FileWriter(job.path, replace=force)


def split_machine(gpus: Sequence[GpuInfo], cores: Sequence[int]) -> list[Share]:
    """Return one share for each GPU, with equally many cores that no other share has.

    Cores that are left over stay unused. GpuError if there is no GPU, DataError if there are
    fewer cores than GPUs.
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
