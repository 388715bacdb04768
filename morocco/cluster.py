"""The lanes of a Dask cluster: one run at a time on each of its workers."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any

from distributed import Client, Future, KilledWorker
from distributed.comm.core import CommClosedError

from morocco import __version__, errors, worker
from morocco.bench import Progress, Watch
from morocco.errors import EngineError, MoroccoError, TargetError
from morocco.lanes import Lane, LaneLost, open_sink
from morocco.logs import Sample
from morocco.options import RunOptions
from morocco.plan import Job
from morocco.sink import FileSink
from morocco.tasks import Records
from morocco.units import Seconds
from morocco.worker import Measured, Ready, Told

_CONNECT: Seconds = 15
_PATIENCE: Seconds = 60
"""For a worker to come while there is none."""
_POLL: Seconds = 0.5
_LOST = (CommClosedError, OSError, CancelledError, asyncio.CancelledError, TimeoutError)


class ClusterCrew:
    """The workers of a cluster, those that come later included; a context manager.

    Where workers offer `GPU`, only those take part.
    """

    def __init__(
        self,
        address: str,
        targets: Sequence[str],
        records: Sequence[Records],
        options: RunOptions,
        on_images: Callable[[Mapping[str, str | None]], None],
        on_fault: Callable[[str], None],
    ) -> None:
        """`on_images` is told once what images there are; `on_fault` hears of unfit workers.

        EngineError where no scheduler answers.
        """
        self._address = address
        self._question = (__version__, list(targets), list(records), options)
        self._suite = options.suite or ""
        self._on_images, self._on_fault = on_images, on_fault
        self._asked: dict[str, Future[Any]] = {}
        self._lanes: dict[str, ClusterLane] = {}
        self._faults: dict[str, str] = {}
        self._images: Mapping[str, str | None] | None = None
        self._alone_since: Seconds | None = None
        self._topic = f"morocco-{uuid.uuid4().hex}"
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters is said here
        try:
            self._client = Client(address, timeout=_CONNECT, set_as_default=False)
        except (*_LOST, ValueError) as error:
            raise EngineError(
                f"No Dask scheduler answers at {address} ({error}). Start one: "
                "dask ssh host1 host2."
            ) from None
        self._client.subscribe_topic(self._topic, self._hear)

    def __enter__(self) -> ClusterCrew:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(*_LOST):
            self._client.close()

    def join(self) -> list[Lane]:
        """Return the workers that have got ready since the last call."""
        offers = self._find_workers()
        for address in [*self._asked, *self._lanes, *self._faults]:
            if address not in offers:
                self._forget(address)
        for address in offers:
            if address not in {*self._asked, *self._lanes, *self._faults}:
                self._asked[address] = self._ask(address)
        ready = [address for address, future in self._asked.items() if future.done()]
        return [
            lane
            for address in ready
            if (lane := self._take_in(address, offers[address])) is not None
        ]

    def _find_workers(self) -> dict[str, bool]:
        """Return the workers that may take part, and whether each offers a GPU."""
        if self._client.status != "running":
            raise EngineError(f"The Dask scheduler at {self._address} is gone.")
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        offers = {
            address: bool((facts.get("resources") or {}).get("GPU"))
            for address, facts in workers.items()
        }
        return {address: gpu for address, gpu in offers.items() if gpu or not any(offers.values())}

    def _forget(self, address: str) -> None:
        self._asked.pop(address, None)
        self._faults.pop(address, None)
        lane = self._lanes.pop(address, None)
        if lane is not None:
            lane.lose()

    def _ask(self, address: str) -> Future[Any]:
        # A killed suite may have left a run at work there.
        self._client.run(
            worker.break_off, self._suite, workers=[address], wait=False, on_error="ignore"
        )
        return submit_to(self._client, address, {}, worker.get_ready, *self._question)

    def _take_in(self, address: str, offers_gpu: bool) -> ClusterLane | None:
        ready: Ready = self._asked.pop(address).result()
        if ready.fault is not None:
            self._refuse(address, ready.fault.message)
            return None
        if self._images is None:
            self._images = ready.images
            self._on_images(ready.images)
        elif self._images != ready.images:
            self._refuse(address, "its images are not those of the other workers")
            return None
        resources = {"GPU": 1} if offers_gpu else {}
        lane = ClusterLane(self._client, address, resources, self._suite, self._topic)
        self._lanes[address] = lane
        return lane

    def _refuse(self, address: str, reason: str) -> None:
        self._faults[address] = reason
        self._on_fault(f"The worker {address} takes no part: {reason}")

    def wait_for_more(self, left: Sequence[Job]) -> bool:
        """Return whether to wait for a worker; EngineError once that was in vain for a minute."""
        if not left:
            return False
        if self._asked:
            self._alone_since = None
            return True
        self._alone_since = self._alone_since or time.monotonic()
        if time.monotonic() - self._alone_since > _PATIENCE:
            told = "".join(f"\n  {address}: {why}" for address, why in self._faults.items())
            raise EngineError(
                f"The Dask cluster at {self._address} has no worker that can do a run.{told}"
            )
        return True

    def check(self, lane: Lane) -> None:
        """Raise LaneLost where the engine of a worker is gone."""
        told = self._client.run(worker.check_engine, workers=[lane.name], on_error="return")
        fault = told.get(lane.name)
        if isinstance(fault, Told):
            self._lanes.pop(lane.name, None)
            self._refuse(lane.name, fault.message)
            raise LaneLost(f"The run of {lane.name} is done elsewhere.")

    def _hear(self, event: tuple[float, Mapping[str, Any]]) -> None:
        _, message = event
        lane = self._lanes.get(message["worker"])
        if lane is not None:
            lane.hear(message)


class ClusterLane:
    """One worker."""

    def __init__(
        self, client: Client, address: str, resources: Mapping[str, int], suite: str, topic: str
    ) -> None:
        self.name = address
        self._client = client
        self._resources = dict(resources)
        self._suite, self._topic = suite, topic
        self._watch: Watch | None = None
        self._reason: Exception | None = None
        self._lost = False
        self._changed = threading.Event()

    def measure(self, job: Job, watch: Watch, *, force: bool) -> None:
        """Have a run done by the worker, and write here what it measured."""
        if self._lost:
            raise self._tell_lost(job)
        sink = open_sink(job, force=force)
        self._watch = watch
        try:
            measured = self._wait_for(job)
        except BaseException:
            sink.drop()
            raise
        finally:
            self._watch = None
        _write(measured, sink)
        if measured.fault is not None:
            raise self._reason or _to_error(measured.fault)

    def stop(self, reason: Exception) -> None:
        """End the run at work."""
        self._reason = reason
        self._changed.set()

    def lose(self) -> None:
        """Take note that the worker is gone."""
        self._lost = True
        self._changed.set()

    def hear(self, message: Mapping[str, Any]) -> None:
        """Pass on what the worker tells of its run."""
        watch = self._watch
        if watch is None:
            return
        if "warning" in message:
            watch.warn(message["warning"])
        else:
            told = dict(message["progress"])
            sample = told.pop("sample")
            watch.progress(Progress(**told, sample=None if sample is None else Sample(*sample)))

    def _wait_for(self, job: Job) -> Measured:
        future = submit_to(
            self._client, self.name, self._resources, worker.measure_job, job, self._topic
        )
        self._changed.clear()
        future.add_done_callback(lambda _: self._changed.set())
        while not future.done():
            if self._lost:
                future.cancel()
                raise self._tell_lost(job)
            if self._reason is not None:
                self._client.run(
                    worker.break_off,
                    self._suite,
                    workers=[self.name],
                    wait=False,
                    on_error="ignore",
                )
            self._changed.wait(_POLL)
            self._changed.clear()
        try:
            measured: Measured = future.result()
        except (*_LOST, KilledWorker):
            raise self._tell_lost(job) from None
        return measured

    def _tell_lost(self, job: Job) -> LaneLost:
        return LaneLost(f"The worker {self.name} is lost; {job.label} is done elsewhere.")


def submit_to(
    client: Client,
    address: str,
    resources: Mapping[str, int],
    function: Callable[..., Any],
    *args: Any,
) -> Future[Any]:
    """Have a worker, and no other, call a function once."""
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


def _write(measured: Measured, sink: FileSink) -> None:
    if not measured.record:  # it failed before it began
        sink.drop()
        return
    for sample in measured.samples:
        sink.write(Sample(*sample))
    if measured.fault is None:
        sink.finish(measured.record)
    else:
        sink.fail(measured.record)


def _to_error(told: Told) -> MoroccoError:
    kind = getattr(errors, told.kind, TargetError)
    error: MoroccoError = (TargetError if kind is errors.Interrupted else kind)(told.message)
    error.cause = told.cause
    return error
