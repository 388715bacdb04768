"""The workers of a Dask cluster as lanes: runs are sent there, logs and records come back."""

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
from distributed.security import Security

from morocco.bench.run import Progress, RunObserver
from morocco.bench.writers import FileWriter
from morocco.errors import EngineError, Interrupted
from morocco.logs.samples import Sample
from morocco.suite import dask_worker as worker
from morocco.suite.dask_worker import Measured, Ready
from morocco.suite.lanes import Lane, LaneLost, open_writer
from morocco.suite.plan import Job
from morocco.targets.options import RunOptions
from morocco.tasks import Records
from morocco.util.units import Seconds

_UNREACHABLE = (OSError, CancelledError, asyncio.CancelledError, TimeoutError, asyncio.TimeoutError)
"""What Dask raises if a worker or the scheduler is gone."""
_DASK_LOGGERS = ("distributed", "distributed.client", "distributed.gc", "tornado.application")
_CONNECT_TIMEOUT: Seconds = 5
_FETCH_TIMEOUT: Seconds = 120
"""For a result to be transferred."""
_CHECK_PERIOD: Seconds = 0.5
_STOP_TIMEOUT: Seconds = 30
"""For a stopped run to end; then the worker is left alone with it."""
_JOIN_TIMEOUT: Seconds = 60
"""For a worker to join while there is none."""
_JOIN_TIMEOUT_UNFIT: Seconds = 10
"""For a worker to join while there are only workers that cannot do the runs."""


class DaskLane:
    """One worker, until it is lost."""

    def __init__(
        self, client: Client, address: str, number: int, topic: str, *, has_gpu: bool
    ) -> None:
        """`number` tells it from earlier workers at this address; no topic means no progress."""
        self.name = f"{address} ({number})"
        self.address = address
        self.is_lost = False
        self._client, self._topic = client, topic or None
        self._resources = {"GPU": 1} if has_gpu else {}
        self._run_id = ""
        self._observer: RunObserver | None = None
        self._reason: Exception | None = None
        self._changed = threading.Event()

    def measure(self, job: Job, observer: RunObserver, *, force: bool) -> None:
        """Have the worker do a run, and write its log and record here."""
        if self._reason is not None:
            raise self._reason
        if self.is_lost:
            raise self._lose(job)
        writer = open_writer(job, force=force)
        try:
            measured = self._measure(job, observer)
        except BaseException:
            writer.drop()
            raise
        _write(measured, writer)
        for message in measured.record.get("warnings", ()):
            observer.warn(message)
        if measured.error is not None:
            raise self._reason or measured.error

    def stop(self, reason: Exception) -> None:
        """End the current run."""
        self._reason = reason
        self._changed.set()

    def mark_lost(self) -> None:
        """Note that the worker is gone."""
        self.is_lost = True
        self._changed.set()

    def show_progress(self, run_id: str, facts: Mapping[str, Any]) -> None:
        """Pass the progress of a run on, if it is the current one of this worker."""
        observer = self._observer
        if observer is not None and run_id == self._run_id:
            sample = None if facts["sample"] is None else Sample(*facts["sample"])
            observer.progress(Progress(**{**facts, "sample": sample}))

    def check_engine(self) -> EngineError | None:
        """Return what is wrong with the engine of the worker; LaneLost if it does not answer."""
        if self.is_lost:
            raise LaneLost(f"The worker {self.address} is lost.")
        future = _submit(self._client, self.address, {}, worker.check_engine)
        try:
            error: EngineError | None = future.result(timeout=_FETCH_TIMEOUT)
        except (*_UNREACHABLE, KilledWorker):
            self.is_lost = True
            raise LaneLost(f"The worker {self.address} is lost.") from None
        return error

    def _measure(self, job: Job, observer: RunObserver) -> Measured:
        self._run_id, self._observer = uuid.uuid4().hex, observer
        self._changed.clear()
        arguments = (self._run_id, job, self._topic)
        future = _submit(
            self._client, self.address, self._resources, worker.measure_job, *arguments
        )
        future.add_done_callback(lambda _: self._changed.set())
        try:
            self._wait_for(future, job)
            measured = self._fetch(future, job)
        finally:
            self._observer = None
            if not future.done():
                with suppress(*_UNREACHABLE):
                    future.cancel()
        if isinstance(measured.error, Interrupted) and self._reason is None:
            raise self._lose(job)
        return measured

    def _wait_for(self, future: Future[Any], job: Job) -> None:
        deadline = None
        while not future.done():
            if self.is_lost:
                raise self._lose(job)
            if self._reason is not None:
                deadline = deadline or time.monotonic() + _STOP_TIMEOUT
                if not self._end_run() or time.monotonic() > deadline:
                    raise self._reason
            self._changed.wait(_CHECK_PERIOD)
            self._changed.clear()

    def _end_run(self) -> bool:
        """Return whether the worker has the run, and so will end it."""
        answers: dict[str, bool] = {}
        with suppress(*_UNREACHABLE):
            answers = self._client.run(
                worker.end_run, self._run_id, workers=[self.address], on_error="ignore"
            )
        return answers.get(self.address, False)

    def _fetch(self, future: Future[Any], job: Job) -> Measured:
        try:
            measured: Measured = future.result(timeout=_FETCH_TIMEOUT)
        except (*_UNREACHABLE, KilledWorker) as error:
            if future.status == "error" and not isinstance(error, KilledWorker):
                raise  # raised by the function on the worker
            _check_scheduler(self._client)
            raise self._lose(job) from None
        return measured

    def _lose(self, job: Job) -> LaneLost:
        self.is_lost = True
        return LaneLost(f"The worker {self.address} is lost; {job.label} is done elsewhere.")


def _submit(
    client: Client,
    address: str,
    resources: Mapping[str, int],
    function: Callable[..., Any],
    *args: Any,
) -> Future[Any]:
    """Have one worker, and no other, call a function once; EngineError without a scheduler."""
    _check_scheduler(client)
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


def _check_scheduler(client: Client) -> None:
    """Raise EngineError if the connection to the scheduler is lost."""
    if client.status != "running":
        raise _scheduler_lost()


def _scheduler_lost() -> EngineError:
    return EngineError("The Dask scheduler is gone: restart it and its workers.")


def _write(measured: Measured, writer: FileWriter) -> None:
    if not measured.record:  # it failed before it started
        writer.drop()
        return
    for sample in measured.samples:
        writer.write(sample)
    if measured.error is None:
        writer.finish(measured.record)
    else:
        writer.fail(measured.record)


class DaskPool:
    """The workers of a cluster, including those that join later; a context manager.

    If some workers offer the resource `GPU`, only these are used.
    """

    def __init__(
        self,
        address: str,
        needs: tuple[Sequence[str], Sequence[Records], RunOptions],
        on_images: Callable[[Mapping[str, str | None]], None],
        warn: Callable[[str], None],
        *,
        live: bool,
        tls: Mapping[str, str],
    ) -> None:
        """`needs` is what a worker must have: targets, data, options.

        `on_images` gets the image ids of the first worker, `warn` a message for each worker that
        is not used; `live` asks for the progress of runs; `tls` has the files that TLS asks for,
        if they are not in Dask's own settings. EngineError if no scheduler answers.
        """
        self._address = address
        self._needs = needs
        self._on_images, self._warn = on_images, warn
        self._workers: dict[str, Future[Any] | DaskLane | None] = {}
        """By address: the answer to come, the lane, or None if it cannot do the runs."""
        self._images: Mapping[str, str | None] | None = None
        self._alone_since: Seconds | None = None
        self._numbers = itertools.count(1)
        self._topic = f"morocco-{uuid.uuid4().hex}" if live else ""
        self._client = _connect(address, tls)
        if live:
            self._client.subscribe_topic(self._topic, self._show_progress)

    def __enter__(self) -> DaskPool:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(*_UNREACHABLE):
            self._client.close()

    def join(self) -> list[Lane]:
        """Return the workers that have become ready since the last call."""
        try:
            return self._join()
        except _UNREACHABLE:
            raise _scheduler_lost() from None

    def _join(self) -> list[Lane]:
        available = self._list_workers()
        for address, known in list(self._workers.items()):
            lane = known if isinstance(known, DaskLane) else None
            if lane and address not in available:
                lane.mark_lost()
            if address not in available or (lane and lane.is_lost):  # it may have been restarted
                del self._workers[address]
        for address in available:
            if address not in self._workers:
                self._ask(address)
        lanes = [
            self._add(address, known, has_gpu=available[address])
            for address, known in list(self._workers.items())
            if isinstance(known, Future) and known.done()
        ]
        return [lane for lane in lanes if lane is not None]

    def _list_workers(self) -> dict[str, bool]:
        """Return the workers that may be used, and whether each offers a GPU."""
        _check_scheduler(self._client)
        workers = self._client.scheduler_info(n_workers=-1).get("workers", {})
        _check_scheduler(self._client)  # without it the list is empty, which is no error to Dask
        gpus = {
            address: bool((facts.get("resources") or {}).get("GPU"))
            for address, facts in workers.items()
        }
        return {address: gpu for address, gpu in gpus.items() if gpu or not any(gpus.values())}

    def _ask(self, address: str) -> None:
        """Ask a worker whether it can do the runs, if it has the same versions."""
        answers: dict[str, str | Exception] = self._client.run(
            worker.describe, workers=[address], on_error="return"
        )
        own, other = worker.describe(), answers.get(address)
        if other == own:
            self._workers[address] = _submit(
                self._client, address, {}, worker.get_ready, *self._needs
            )
        elif isinstance(other, str):
            self._refuse(address, f"it has {other}, the suite {own}.")
        elif not isinstance(other, OSError | None):  # else it is leaving, or is asked again
            self._refuse(address, f"it cannot run {own}: {other}.")

    def _add(self, address: str, answer: Future[Any], *, has_gpu: bool) -> DaskLane | None:
        """Return the lane of a worker that has answered, if it can do the runs."""
        try:
            ready: Ready = answer.result(timeout=_FETCH_TIMEOUT)
        except _UNREACHABLE:  # it is leaving, or is asked again
            del self._workers[address]
            return None
        except KilledWorker as error:
            self._refuse(address, f"it died while it got ready: {error}")
            return None
        if ready.error is not None:
            self._refuse(address, str(ready.error))
            return None
        if self._images is None:
            self._on_images(ready.images)
            self._images = ready.images
        others = [target for target, image in ready.images.items() if self._images[target] != image]
        if others:
            self._refuse(address, f"its image {others[0]} differs from that of the first worker.")
            return None
        number = next(self._numbers)
        lane = DaskLane(self._client, address, number, self._topic, has_gpu=has_gpu)
        self._workers[address] = lane
        self._alone_since = None
        return lane

    def _refuse(self, address: str, reason: str) -> None:
        self._workers[address] = None
        self._warn(f"The worker {address} is not used: {reason}")

    def wait_for_more(self, left: Sequence[Job]) -> bool:
        """Return whether to wait for a worker; EngineError once the time to wait is over."""
        if not left:
            return False
        if any(known is not None for known in self._workers.values()):
            self._alone_since = None
            return True
        if self._alone_since is None:
            self._alone_since = time.monotonic()
            if not self._workers:
                self._warn(f"{self._address} has no worker; waiting {_JOIN_TIMEOUT:.0f} s for one.")
        waited = time.monotonic() - self._alone_since
        if self._workers and waited > _JOIN_TIMEOUT_UNFIT:
            raise EngineError(
                f"No worker of the Dask cluster at {self._address} can be used, for the reasons "
                "above."
            )
        if waited > _JOIN_TIMEOUT:
            raise EngineError(
                f"The Dask cluster at {self._address} has no worker. Start one on every machine: "
                f"dask worker {self._address} --nthreads 1."
            )
        return True

    def check(self, lane: Lane) -> None:
        """Raise LaneLost if the engine of a worker is gone, EngineError for the scheduler."""
        _check_scheduler(self._client)
        assert isinstance(lane, DaskLane)
        error = lane.check_engine()
        if error is not None:
            self._refuse(lane.address, str(error))
            raise LaneLost(f"The run of {lane.address} is done elsewhere.")

    def _show_progress(self, event: tuple[float, Mapping[str, Any]]) -> None:
        _, message = event
        for lane in list(self._workers.values()):
            if isinstance(lane, DaskLane):
                lane.show_progress(message["run"], message["progress"])


def _connect(address: str, tls: Mapping[str, str]) -> Client:
    """Return a client of a scheduler that has the same versions."""
    for name in _DASK_LOGGERS:  # what the user must know is reported by morocco, once
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        resolve_address(address)  # a client that gets a malformed address does not end cleanly
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="distributed")
            client = Client(
                address,
                timeout=_CONNECT_TIMEOUT,
                set_as_default=False,
                security=_build_security(address, tls),
            )
    except (*_UNREACHABLE, ImportError, ValueError) as error:
        remedy = "Start one, with a worker on every machine: dask ssh host1 host2."
        if address.startswith("tls://"):
            remedy = (
                "It must run with --protocol tls, and its certificate must have the same signer as "
                "that of --tls-cert."
            )
        raise EngineError(f"No Dask scheduler answers at {address} ({error}). {remedy}") from None
    own, other = worker.describe(), _describe_scheduler(client)
    if other != own:
        client.close()
        raise EngineError(
            f"The Dask scheduler at {address} has {other}, this machine has {own}: install the "
            "same versions everywhere, with 'morocco[dask]'."
        )
    return client


def _build_security(address: str, files: Mapping[str, str]) -> Security:
    """Return the settings for TLS, from files or from Dask's own settings.

    EngineError if neither has certificates for an address that needs them, OSError for bad ones.
    """
    security = Security()
    if files:
        security = Security(
            require_encryption=True,
            tls_ca_file=files["tls_ca_file"],
            tls_client_cert=files["tls_cert"],
            tls_client_key=files["tls_key"],
        )
    context = security.get_connection_args("client").get("ssl_context")
    if address.startswith("tls://") and context is None:
        raise EngineError(
            f"A certificate is needed for {address}: give --tls-ca-file, --tls-cert and --tls-key."
        )
    return security


def _describe_scheduler(client: Client) -> str:
    try:
        return str(client.run_on_scheduler(worker.describe))
    except (ImportError, AttributeError) as error:
        return f"no such morocco ({error})"
