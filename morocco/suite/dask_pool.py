"""A worker of a Dask cluster as a lane: runs go there, logs and records come back."""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any

from distributed import Client, Future, KilledWorker
from distributed.comm.addressing import resolve_address

from morocco import errors
from morocco.bench.run import Progress, RunObserver
from morocco.bench.writers import FileWriter
from morocco.errors import EngineError, Interrupted, MoroccoError, TargetError
from morocco.logs.samples import Sample
from morocco.suite import dask_worker as worker
from morocco.suite.dask_worker import Fault, Measured, Ready
from morocco.suite.lanes import Lane, LaneLost, open_writer
from morocco.suite.plan import Job
from morocco.targets.options import RunOptions
from morocco.tasks import Records
from morocco.util.units import Seconds

UNREACHABLE = (OSError, CancelledError, asyncio.CancelledError, TimeoutError, asyncio.TimeoutError)
"""What Dask raises where somebody is gone."""
FETCH: Seconds = 120
"""For an answer that is there to arrive."""
_POLL: Seconds = 0.5
_FAREWELL: Seconds = 30
"""For a run that was broken off to end: then its worker is left alone with it."""


class DaskLane:
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
        self._watch: RunObserver | None = None
        self._reason: Exception | None = None
        self._changed = threading.Event()

    def measure(self, job: Job, watch: RunObserver, *, force: bool) -> None:
        """Have a run done by the worker, and write here what it measured."""
        if self._reason is not None:
            raise self._reason
        if self.is_lost:
            raise self._lost(job)
        sink = open_writer(job, force=force)
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

    def find_fault(self) -> Fault | None:
        """Return what is wrong with the engine of the worker; LaneLost if it does not answer."""
        future = submit_to(self._client, self._address, {}, worker.check_engine)
        try:
            fault: Fault | None = future.result(timeout=FETCH)
        except (*UNREACHABLE, KilledWorker):
            self.is_lost = True
            raise LaneLost(f"The worker {self._address} is lost.") from None
        return fault

    def _measure(self, job: Job, watch: RunObserver) -> Measured:
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


def _write(measured: Measured, sink: FileWriter) -> None:
    if not measured.record:  # it failed before it began
        sink.drop()
        return
    for sample in measured.samples:
        sink.write(sample)
    if measured.fault is None:
        sink.finish(measured.record)
    else:
        sink.fail(measured.record)


def _to_error(told: Fault) -> MoroccoError:
    error: MoroccoError = getattr(errors, told.kind, TargetError)(told.message)
    error.cause = told.cause
    return error


_CONNECT: Seconds = 5
_PATIENCE: Seconds = 60
"""For a worker to come while there is none."""
_PATIENCE_WITH_UNFIT: Seconds = 10
"""While all that are there cannot take part."""


class DaskPool:
    """The workers of a cluster, those that come later included; a context manager.

    Where workers offer `GPU`, only those take part.
    """

    def __init__(
        self,
        address: str,
        question: tuple[Sequence[str], Sequence[Records], RunOptions],
        on_images: Callable[[Mapping[str, str | None]], None],
        warn: Callable[[str], None],
        *,
        live: bool,
    ) -> None:
        """`question` is what a worker has to have: targets, data, options.

        `on_images` is told once what images there are, `warn` who takes no part; `live` asks how
        far the runs are. EngineError where no scheduler answers.
        """
        self._address = address
        self._question = question
        self._on_images, self._warn = on_images, warn
        self._asked: dict[str, Future[Any]] = {}
        self._lanes: dict[str, DaskLane] = {}
        self._faults: dict[str, str] = {}
        self._images: Mapping[str, str | None] | None = None
        self._alone_since: Seconds | None = None
        self._numbers = itertools.count(1)
        self._topic = f"morocco-{uuid.uuid4().hex}" if live else ""
        self._client = _connect(address)
        if live:
            self._client.subscribe_topic(self._topic, self._hear)

    def __enter__(self) -> DaskPool:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(*UNREACHABLE):
            self._client.close()

    def join(self) -> list[Lane]:
        """Return the workers that have got ready since the last call."""
        try:
            return self._join()
        except UNREACHABLE:
            raise lost_scheduler() from None

    def _join(self) -> list[Lane]:
        offers = self._find_workers()
        for address in {*self._asked, *self._lanes, *self._faults}:
            if address not in offers or self._is_lost(address):
                self._forget(address)
        for address in offers:
            if address not in {*self._asked, *self._lanes, *self._faults}:
                self._ask(address)
        ready = [address for address, future in self._asked.items() if future.done()]
        lanes = [self._take_in(address, offers_gpu=offers[address]) for address in ready]
        return [lane for lane in lanes if lane is not None]

    def _find_workers(self) -> dict[str, bool]:
        """Return the workers that may take part, and whether each offers a GPU."""
        refuse_lost_scheduler(self._client)
        workers = self._client.scheduler_info(n_workers=-1).get("workers", {})
        refuse_lost_scheduler(self._client)  # which is not told otherwise
        offers = {
            address: bool((facts.get("resources") or {}).get("GPU"))
            for address, facts in workers.items()
        }
        return {address: gpu for address, gpu in offers.items() if gpu or not any(offers.values())}

    def _is_lost(self, address: str) -> bool:
        """Return whether a worker was lost; it may be back under the same address."""
        return address in self._lanes and self._lanes[address].is_lost

    def _forget(self, address: str) -> None:
        self._asked.pop(address, None)
        self._faults.pop(address, None)
        lane = self._lanes.pop(address, None)
        if lane is not None:
            lane.lose()

    def _ask(self, address: str) -> None:
        """Ask a worker whether it can take part, if it understands the question."""
        told: dict[str, str | Exception] = self._client.run(
            worker.describe, workers=[address], on_error="return"
        )
        own, found = worker.describe(), told.get(address)
        if found == own:
            self._asked[address] = submit_to(
                self._client, address, {}, worker.get_ready, *self._question
            )
        elif isinstance(found, str):
            self._refuse(address, f"it has {found}, the suite {own}.")
        elif not isinstance(found, OSError | None):  # else it goes, or is asked again
            self._refuse(address, f"it cannot run {own}: {found}.")

    def _take_in(self, address: str, *, offers_gpu: bool) -> DaskLane | None:
        """Return the lane of a worker that has answered, unless it cannot take part."""
        try:
            ready: Ready = self._asked.pop(address).result(timeout=FETCH)
        except UNREACHABLE:  # it goes; if not, it is asked again
            return None
        except KilledWorker as error:
            self._refuse(address, f"it ended when it was asked: {error}")
            return None
        if ready.fault is not None:
            self._refuse(address, ready.fault.message)
            return None
        if self._images is None:
            self._on_images(ready.images)
            self._images = ready.images
        others = [name for name, found in ready.images.items() if self._images[name] != found]
        if others:
            self._refuse(address, f"{others[0]} is another image there than on the first worker")
            return None
        resources = {"GPU": 1} if offers_gpu else {}
        number = next(self._numbers)
        lane = DaskLane(self._client, address, number, resources, self._topic)
        self._lanes[address] = lane
        self._alone_since = None
        return lane

    def _refuse(self, address: str, reason: str) -> None:
        self._faults[address] = reason
        self._warn(f"The worker {address} takes no part: {reason}")

    def wait_for_more(self, left: Sequence[Job]) -> bool:
        """Return whether to wait for a worker; EngineError once that was in vain for a while."""
        if not left:
            return False
        if self._asked or self._lanes:
            self._alone_since = None
            return True
        if self._alone_since is None:
            self._alone_since = time.monotonic()
            if not self._faults:
                self._warn(f"{self._address} has no worker; waiting {_PATIENCE:.0f} s for one.")
        waited = time.monotonic() - self._alone_since
        if waited > (_PATIENCE_WITH_UNFIT if self._faults else _PATIENCE):
            raise EngineError(self._tell_nobody())
        return True

    def _tell_nobody(self) -> str:
        if self._faults:
            return (
                f"No worker of the Dask cluster at {self._address} can take part. What each lacks "
                "is said above."
            )
        return (
            f"The Dask cluster at {self._address} has no worker. Start one on every machine: "
            f"dask worker {self._address} --nthreads 1."
        )

    def check(self, lane: Lane) -> None:
        """Raise LaneLost where the engine of a worker is gone, EngineError for the scheduler."""
        refuse_lost_scheduler(self._client)
        found = [(at, known) for at, known in self._lanes.items() if known.name == lane.name]
        if not found:
            raise LaneLost(f"The worker of {lane.name} is lost.")
        [(address, known)] = found
        fault = known.find_fault()
        if fault is not None:
            self._lanes.pop(address, None)
            self._refuse(address, fault.message)
            raise LaneLost(f"The run of {address} is done elsewhere.")

    def _hear(self, event: tuple[float, Mapping[str, Any]]) -> None:
        _, message = event
        for lane in list(self._lanes.values()):
            lane.hear(message["name"], message["progress"])


def _connect(address: str) -> Client:
    """Return a client of a scheduler that understands it."""
    logging.disable()  # what matters is said here, once
    warnings.filterwarnings("ignore", module="distributed")
    try:
        resolve_address(address)  # a client that was given nonsense does not end well
        client = Client(address, timeout=_CONNECT, set_as_default=False)
    except (*UNREACHABLE, ImportError, ValueError) as error:
        raise EngineError(
            f"No Dask scheduler answers at {address} ({error}). Start one, with a worker on every "
            "machine: dask ssh host1 host2."
        ) from None
    own, found = worker.describe(), _describe_scheduler(client)
    if found != own:
        client.close()
        raise EngineError(
            f"The Dask scheduler at {address} has {found}, this machine has {own}: install the "
            "same everywhere, with 'morocco[dask]'."
        )
    return client


def _describe_scheduler(client: Client) -> str:
    try:
        return str(client.run_on_scheduler(worker.describe))
    except (ImportError, AttributeError) as error:
        return f"no such morocco ({error})"
