"""What a worker of a Dask cluster does for a suite: get ready, measure a run, end it early."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import Any

from distributed import Status, get_worker

from morocco import __version__
from morocco.bench.interrupts import Events
from morocco.bench.run import Progress
from morocco.errors import DataError, EngineError, Interrupted, MoroccoError
from morocco.hardware.gpu import Gpus
from morocco.logs.samples import Sample
from morocco.suite.lanes import Share, measure
from morocco.suite.plan import Job
from morocco.suite.preflight import end_leftovers, prepare_targets
from morocco.targets.options import RunOptions
from morocco.tasks import Records, load_records
from morocco.util.units import Seconds

_SLOT_CHECK_PERIOD: Seconds = 0.2
_PROGRESS_PERIOD: Seconds = 1.0
_NANNY_VARIABLES = {
    "MALLOC_TRIM_THRESHOLD_": "65536",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""What a nanny sets for its worker, except for variables that are set already."""
_NO_GPU = ("", "-1", "none", "void", "NoDevFiles")
"""Values of CUDA_VISIBLE_DEVICES that hide every GPU."""


@dataclass(frozen=True)
class Ready:
    """What a worker answers before its first run."""

    images: Mapping[str, str | None] = field(default_factory=dict)
    """Image ids by target."""
    error: MoroccoError | None = None
    """Why it cannot do the runs."""


@dataclass(frozen=True)
class Measured:
    """A run that has ended, well or not."""

    samples: tuple[Sample, ...]
    record: Mapping[str, Any]
    """Empty for a run that never started."""
    error: MoroccoError | None = None


_running: dict[str, Events] = {}
"""The event queue of each run that is measured or waits for the slot, by its id."""
_slot = threading.Lock()
"""Held during a run, so that two suites do not disturb each other."""


def describe() -> str:
    """Return the versions that coordinator, scheduler and workers must share."""
    python = ".".join(platform.python_version_tuple()[:2])
    return f"morocco {__version__} on Python {python}"


def get_ready(targets: Sequence[str], records: Sequence[Records], options: RunOptions) -> Ready:
    """Return the image ids of the targets, pulled if needed, or why no run can be done here.

    Remove what a killed suite of the same folder left on this machine.
    """
    try:
        for expected in records:
            if load_records(expected.path, 1).sha256 != expected.sha256:
                raise DataError(f"{expected.path} holds other records there.")
        _choose_share(options.gpus)
        return Ready(prepare_targets(targets, options, lambda _: None))
    except MoroccoError as error:
        return Ready(error=error)


def measure_job(run_id: str, job: Job, topic: str | None) -> Measured:
    """Measure a run on this worker; its progress goes to the topic, if there is one."""
    writer = MemoryWriter()
    reporter = ProgressReporter(run_id, topic)
    failure = None
    events: Events = SimpleQueue()
    _running[run_id] = events
    try:
        with _wait_for_slot(events, reporter):
            end_leftovers([job.target], job.options)
            job = _without_nanny(_choose_share(job.options.gpus).apply(job))
            measure(job, lambda: writer, reporter, events)
    except MoroccoError as error:
        failure = error
    finally:
        del _running[run_id]
    return Measured(tuple(writer.samples), writer.record, failure)


def end_run(run_id: str) -> bool:
    """End a run early, and return whether it was here."""
    events = _running.get(run_id)
    if events is not None:
        events.put(Interrupted("Stopped by the suite."))
    return events is not None


def check_engine() -> EngineError | None:
    """Return what is wrong with the engine of this worker."""
    from morocco.targets.engine import connect

    try:
        connect().close()
    except EngineError as error:
        return error
    return None


def _choose_share(choice: str) -> Share:
    """Return the GPUs of this worker; GpuError if they are missing.

    "auto" means one GPU: the first of CUDA_VISIBLE_DEVICES if that is set for the worker, else
    the first of the machine.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if choice == "auto" and visible is not None:
        first = visible.split(",")[0].strip()
        choice = "none" if first in _NO_GPU else first
        with Gpus.open(choice) as gpus:
            return Share(gpus.infos[0].uuid if gpus.infos else choice)
    with Gpus.open(choice) as gpus:
        return Share.of_gpus(gpus, choice)


def _without_nanny(job: Job) -> Job:
    """Keep the variables of a nanny from a bare process, which one thread would slow down."""
    if get_worker().nanny is None:
        return job
    unset = [name for name, value in _NANNY_VARIABLES.items() if os.environ.get(name) == value]
    return replace(job, options=replace(job.options, unset=tuple(unset)))


@contextmanager
def _wait_for_slot(events: Events, reporter: ProgressReporter) -> Iterator[None]:
    """Hold the slot of this worker, as soon as no other suite does."""
    while not _slot.acquire(timeout=_SLOT_CHECK_PERIOD):
        reporter.check()
        with suppress(Empty):
            raise events.get_nowait()
    try:
        yield
    finally:
        _slot.release()


class MemoryWriter:
    """Keeps a log in memory, to be sent back whole."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.record: Mapping[str, Any] = {}

    def write(self, sample: Sample) -> None:
        self.samples.append(sample)

    def finish(self, record: Mapping[str, Any]) -> None:
        self.record = record

    fail = finish


class ProgressReporter:
    """Sends the progress of a run, and ends a run whose result nobody waits for any more."""

    def __init__(self, run_id: str, topic: str | None) -> None:
        self._run_id, self._topic = run_id, topic
        self._worker = get_worker()
        self._key = self._worker.get_current_task()
        self._last = float("-inf")

    def check(self) -> None:
        """Raise Interrupted if the suite was killed or this worker has lost its scheduler."""
        task = self._worker.state.tasks.get(self._key)
        in_use = self._worker.status in (Status.running, Status.paused)
        if task is None or task.state == "cancelled" or not in_use:
            raise Interrupted("The suite does not wait for this run any more.")

    def progress(self, progress: Progress) -> None:
        self.check()
        now = time.monotonic()
        if self._topic is None or now - self._last < _PROGRESS_PERIOD:
            return
        self._last = now
        sample = None if progress.sample is None else tuple(progress.sample)
        facts = vars(replace(progress, sample=None)) | {"sample": sample}
        self._worker.log_event(self._topic, {"run": self._run_id, "progress": facts})

    def warn(self, message: str) -> None:
        """Do nothing: the record has the warning."""
