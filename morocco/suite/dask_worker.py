"""What a worker of a Dask cluster does for a suite: get ready, measure a run, break it off."""

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

from morocco import __version__, errors
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

_POLL: Seconds = 0.2
_PERIOD: Seconds = 1.0
"""Of what is told while a run goes."""
_OF_A_NANNY = {
    "MALLOC_TRIM_THRESHOLD_": "65536",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""What a nanny sets, where it is not set yet, for the worker alone."""
_NO_GPU = ("", "-1", "none", "void", "NoDevFiles")
"""What CUDA_VISIBLE_DEVICES holds where a worker is to have none."""


@dataclass(frozen=True)
class Fault:
    """A failure, as it travels: exceptions of other versions might not."""

    kind: str
    message: str
    cause: str


@dataclass(frozen=True)
class Ready:
    """What a worker says before its first run."""

    images: Mapping[str, str | None] = field(default_factory=dict)
    """By target."""
    fault: Fault | None = None
    """Why it cannot take part."""


@dataclass(frozen=True)
class Measured:
    """A run that came to its end, good or bad."""

    samples: tuple[Sample, ...]
    record: Mapping[str, Any]
    """Empty for a run that never began."""
    fault: Fault | None = None


_at_work: dict[str, Events] = {}
"""What ends each run that is at work or waits to be, by the name that its suite gave it."""
_slot = threading.Lock()
"""Of whoever measures here: two suites must not disturb each other."""


def describe() -> str:
    """Return what has to be the same on all sides, so that they understand each other."""
    python = ".".join(platform.python_version_tuple()[:2])
    return f"morocco {__version__} on Python {python}"


def get_ready(targets: Sequence[str], records: Sequence[Records], options: RunOptions) -> Ready:
    """Return the images of the targets, pulled where needed, or why no run can be done here.

    What a killed suite of the same folder left behind on this machine is removed.
    """
    try:
        for known in records:
            if load_records(known.path, 1).sha256 != known.sha256:
                raise DataError(f"{known.path} holds other records there")
        find_share(options.gpus)
        _forget_nanny()
        return Ready(prepare_targets(targets, options, lambda _: None))
    except MoroccoError as error:
        return Ready(fault=_tell(error))


def measure_job(name: str, job: Job, topic: str | None) -> Measured:
    """Measure a run on this worker; its progress goes to the topic, if there is one."""
    sink = MemoryWriter()
    watch = ProgressReporter(name, topic)
    events: Events = SimpleQueue()
    _at_work[name] = events
    try:
        with _wait_for_slot(events, watch):
            end_leftovers([job.target], job.options)
            measure(find_share(job.options.gpus).apply(job), lambda: sink, watch, events)
    except MoroccoError as error:
        return Measured(tuple(sink.samples), sink.record, _tell(error))
    finally:
        del _at_work[name]
    return Measured(tuple(sink.samples), sink.record)


def break_off(name: str) -> bool:
    """End a run, and return whether it is here."""
    events = _at_work.get(name)
    if events is not None:
        events.put(Interrupted("Broken off by the suite.", 15))
    return events is not None


def check_engine() -> Fault | None:
    """Return what is wrong with the engine of this worker."""
    from morocco.targets.engine import connect

    try:
        connect().close()
    except EngineError as error:
        return _tell(error)
    return None


def find_share(choice: str) -> Share:
    """Return the GPUs of this worker; GpuError where they are not there.

    With "auto" it is one: the first that whoever started the worker let it see, or the first of
    the machine.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if choice != "auto" or visible is None:
        with Gpus.open(choice) as gpus:
            return Share(gpus.infos[0].uuid if choice == "auto" and gpus.infos else choice)
    first = visible.split(",")[0].strip()
    if first in _NO_GPU:
        return Share("none")
    with Gpus.open(first) as gpus:
        return Share(gpus.infos[0].uuid)


def _forget_nanny() -> None:
    """Take back what a nanny has set: with one thread a bare process would be too slow."""
    if get_worker().nanny is not None:
        for name, value in _OF_A_NANNY.items():
            if os.environ.get(name) == value:
                del os.environ[name]


@contextmanager
def _wait_for_slot(events: Events, watch: ProgressReporter) -> Iterator[None]:
    """Hold the slot of this worker, once another suite lets go of it."""
    while not _slot.acquire(timeout=_POLL):
        watch.check()
        with suppress(Empty):
            raise events.get_nowait()
    try:
        yield
    finally:
        _slot.release()


class MemoryWriter:
    """Keeps a log until it is sent back whole."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.record: Mapping[str, Any] = {}

    def write(self, sample: Sample) -> None:
        self.samples.append(sample)

    def finish(self, record: Mapping[str, Any]) -> None:
        self.record = record

    def fail(self, record: Mapping[str, Any]) -> None:
        self.record = record


class ProgressReporter:
    """Passes on how far a run is, and ends one that nobody waits for any more."""

    def __init__(self, name: str, topic: str | None) -> None:
        self._name, self._topic = name, topic
        self._worker = get_worker()
        self._key = self._worker.get_current_task()
        self._last = float("-inf")

    def check(self) -> None:
        """Raise Interrupted where the suite was killed, or this worker has lost its scheduler."""
        task = self._worker.state.tasks.get(self._key)
        in_use = self._worker.status in (Status.running, Status.paused)
        if task is None or task.state == "cancelled" or not in_use:
            raise Interrupted("Nobody waits for this run any more.", 15)

    def progress(self, progress: Progress) -> None:
        self.check()
        now = time.monotonic()
        if self._topic is None or now - self._last < _PERIOD:
            return
        self._last = now
        sample = None if progress.sample is None else tuple(progress.sample)
        told = vars(replace(progress, sample=None)) | {"sample": sample}
        self._worker.log_event(self._topic, {"name": self._name, "progress": told})

    def warn(self, message: str) -> None:
        """Do nothing: the record says it."""


def _tell(error: MoroccoError) -> Fault:
    known = (kind for kind in type(error).__mro__ if kind.__module__ == errors.__name__)
    return Fault(next(known).__name__, str(error), error.cause)
