"""What a worker of a Dask cluster does for a suite: get ready, measure a run, break it off."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from queue import SimpleQueue
from typing import Any

from distributed import get_worker

from morocco import __version__
from morocco.bench import Progress
from morocco.errors import DataError, EngineError, Interrupted, MoroccoError
from morocco.gpu import Gpus
from morocco.lanes import Share, measure
from morocco.logs import Sample
from morocco.options import RunOptions
from morocco.plan import Job
from morocco.preflight import end_leftovers, prepare_targets
from morocco.steps import Events
from morocco.tasks import Records, load_records


@dataclass(frozen=True)
class Told:
    """A failure, as it travels: exceptions of other versions might not."""

    kind: str
    message: str
    cause: str


@dataclass(frozen=True)
class Ready:
    """What a worker says before its first run."""

    images: Mapping[str, str | None] = field(default_factory=dict)
    """By target."""
    fault: Told | None = None
    """Why it cannot take part."""


@dataclass(frozen=True)
class Measured:
    """A run that came to its end, good or bad."""

    samples: tuple[Sample, ...]
    record: Mapping[str, Any]
    """Empty for a run that never began."""
    fault: Told | None = None


_at_work: dict[str, Events] = {}
"""What ends the run at work, by suite: a worker has one run of a suite at a time."""


def get_ready(
    version: str, targets: Sequence[str], records: Sequence[Records], options: RunOptions
) -> Ready:
    """Return the images of the targets, pulled where needed, or why no run can be done here.

    What a killed suite of the same folder left behind on this machine is removed.
    """
    try:
        if version != __version__:
            raise DataError(f"it has morocco {__version__}, this machine {version}")
        for known in records:
            if load_records(known.path, 1).sha256 != known.sha256:
                raise DataError(f"{known.path} holds other records there")
        return Ready(prepare_targets(targets, options, lambda _: None))
    except MoroccoError as error:
        return Ready(fault=_tell(error))


def measure_job(job: Job, topic: str) -> Measured:
    """Measure a run on this worker; its progress goes to the topic."""
    suite = job.options.suite or ""
    events: Events = SimpleQueue()
    _at_work[suite] = events
    sink = _Memory()
    watch = _Reporter(topic)
    try:
        end_leftovers([job.target], job.options)
        measure(_find_share(job).apply(job), lambda: sink, watch, events)
    except MoroccoError as error:
        return Measured(tuple(sink.samples), sink.record, _tell(error))
    finally:
        _at_work.pop(suite, None)
    return Measured(tuple(sink.samples), sink.record)


def break_off(suite: str) -> None:
    """End the run of a suite that is at work here, if there is one."""
    with suppress(KeyError):
        _at_work[suite].put(Interrupted("Broken off by the suite.", 15))


def check_engine() -> Told | None:
    """Return what is wrong with the engine of this worker."""
    from morocco.engine import connect

    try:
        connect().close()
    except EngineError as error:
        return _tell(error)
    return None


def _find_share(job: Job) -> Share:
    """Return the GPU of this worker: the one it was told of, else the first of the machine."""
    choice = job.options.gpus
    if choice == "auto":
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        with Gpus.open(visible or choice) as gpus:
            choice = gpus.infos[0].uuid if gpus.infos else choice
    return Share(choice)


class _Memory:
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


class _Reporter:
    """Passes on what a run tells while it goes."""

    def __init__(self, topic: str) -> None:
        self._topic, self._worker = topic, get_worker()

    def progress(self, progress: Progress) -> None:
        told = replace(progress, sample=None)
        sample = None if progress.sample is None else tuple(progress.sample)
        self._tell({"progress": vars(told) | {"sample": sample}})

    def warn(self, message: str) -> None:
        self._tell({"warning": message})

    def _tell(self, message: dict[str, Any]) -> None:
        self._worker.log_event(self._topic, {"worker": self._worker.address, **message})


def _tell(error: MoroccoError) -> Told:
    return Told(type(error).__name__, str(error), error.cause)
