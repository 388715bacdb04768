"""A worker of a Dask cluster as a lane: runs go there, logs and records come back."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any

from distributed import Client, Future, KilledWorker

from morocco import errors, worker
from morocco.bench import Progress, Watch
from morocco.errors import EngineError, Interrupted, MoroccoError, TargetError
from morocco.lanes import LaneLost, open_sink
from morocco.logs import Sample
from morocco.plan import Job
from morocco.sink import FileSink
from morocco.units import Seconds
from morocco.worker import Measured, Told

UNREACHABLE = (OSError, CancelledError, asyncio.CancelledError, TimeoutError, asyncio.TimeoutError)
"""What Dask raises where somebody is gone."""
FETCH: Seconds = 120
"""For an answer that is there to arrive."""
_POLL: Seconds = 0.5
_FAREWELL: Seconds = 30
"""For a run that was broken off to end: then its worker is left alone with it."""


class ClusterLane:
    """One worker, until it is lost."""

    def __init__(
        self, client: Client, address: str, number: int, resources: Mapping[str, int], topic: str
    ) -> None:
        """`number` tells it from an earlier worker of the same address; no topic: no progress."""
        self.name = f"{address} ({number})"
        self.is_lost = False
        self._client, self._address = client, address
        self._resources, self._topic = resources, topic or None
        self._run = ""
        self._watch: Watch | None = None
        self._reason: Exception | None = None
        self._changed = threading.Event()

    def measure(self, job: Job, watch: Watch, *, force: bool) -> None:
        """Have a run done by the worker, and write here what it measured."""
        if self._reason is not None:
            raise self._reason
        if self.is_lost:
            raise self._lost(job)
        sink = open_sink(job, force=force)
        try:
            measured = self._measure(job, watch)
        except BaseException:
            sink.drop()
            raise
        _write(measured, sink)
        for message in measured.record.get("warnings", ()):
            watch.warn(message)
        if measured.fault is not None:
            raise self._reason or _to_error(measured.fault)

    def stop(self, reason: Exception) -> None:
        """End the run at work."""
        self._reason = reason
        self._changed.set()

    def lose(self) -> None:
        """Take note that the worker is gone."""
        self.is_lost = True
        self._changed.set()

    def hear(self, name: str, told: Mapping[str, Any]) -> None:
        """Pass on how far a run is, if it is the one of this worker."""
        watch = self._watch
        if watch is not None and name == self._run:
            sample = told["sample"]
            newest = None if sample is None else Sample(*sample)
            watch.progress(Progress(**{**told, "sample": newest}))

    def find_fault(self) -> Told | None:
        """Return what is wrong with the engine of the worker; LaneLost if it does not answer."""
        future = submit_to(self._client, self._address, {}, worker.check_engine)
        try:
            fault: Told | None = future.result(timeout=FETCH)
        except (*UNREACHABLE, KilledWorker):
            self.is_lost = True
            raise LaneLost(f"The worker {self._address} is lost.") from None
        return fault

    def _measure(self, job: Job, watch: Watch) -> Measured:
        self._run, self._watch = uuid.uuid4().hex, watch
        self._changed.clear()
        asked = (self._run, job, self._topic)
        future = submit_to(self._client, self._address, self._resources, worker.measure_job, *asked)
        future.add_done_callback(lambda _: self._changed.set())
        try:
            self._wait_for(future, job)
            measured = self._fetch(future, job)
        finally:
            self._watch = None
            if not future.done():
                with suppress(*UNREACHABLE):
                    future.cancel()
        fault = measured.fault
        if fault is not None and fault.kind == Interrupted.__name__ and self._reason is None:
            raise self._lost(job)
        return measured

    def _wait_for(self, future: Future[Any], job: Job) -> None:
        deadline = None
        while not future.done():
            if self.is_lost:
                raise self._lost(job)
            if self._reason is not None:
                deadline = deadline or time.monotonic() + _FAREWELL
                if not self._break_off() or time.monotonic() > deadline:
                    raise self._reason
            self._changed.wait(_POLL)
            self._changed.clear()

    def _break_off(self) -> bool:
        """Return whether the worker has the run, and so will end it."""
        told: dict[str, bool] = {}
        with suppress(*UNREACHABLE):
            told = self._client.run(
                worker.break_off, self._run, workers=[self._address], on_error="ignore"
            )
        return told.get(self._address, False)

    def _fetch(self, future: Future[Any], job: Job) -> Measured:
        try:
            measured: Measured = future.result(timeout=FETCH)
        except (*UNREACHABLE, KilledWorker) as error:
            if future.status == "error" and not isinstance(error, KilledWorker):
                raise  # by what ran there
            refuse_lost_scheduler(self._client)
            raise self._lost(job) from None
        return measured

    def _lost(self, job: Job) -> LaneLost:
        self.is_lost = True
        return LaneLost(f"The worker {self._address} is lost; {job.label} is done elsewhere.")


def submit_to(
    client: Client,
    address: str,
    resources: Mapping[str, int],
    function: Callable[..., Any],
    *args: Any,
) -> Future[Any]:
    """Have a worker, and no other, call a function once; EngineError without a scheduler."""
    refuse_lost_scheduler(client)
    return client.submit(
        function,
        *args,
        key=f"morocco-{uuid.uuid4().hex}",
        workers=[address],
        allow_other_workers=False,
        resources=dict(resources) or None,
        pure=False,
        retries=0,
    )


def refuse_lost_scheduler(client: Client) -> None:
    """Raise EngineError where the connection to the scheduler is lost."""
    if client.status != "running":
        raise lost_scheduler()


def lost_scheduler() -> EngineError:
    """Return what says that the scheduler is gone."""
    return EngineError("The Dask scheduler is gone: start it, and its workers, again.")


def _write(measured: Measured, sink: FileSink) -> None:
    if not measured.record:  # it failed before it began
        sink.drop()
        return
    for sample in measured.samples:
        sink.write(sample)
    if measured.fault is None:
        sink.finish(measured.record)
    else:
        sink.fail(measured.record)


def _to_error(told: Told) -> MoroccoError:
    error: MoroccoError = getattr(errors, told.kind, TargetError)(told.message)
    error.cause = told.cause
    return error
