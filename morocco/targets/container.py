"""Containers as targets, fed and drained through one socket."""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
import time
import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

from docker import DockerClient
from docker.errors import APIError, NotFound
from docker.models.containers import Container
from docker.types import DeviceRequest, LogConfig
from requests.exceptions import RequestException

from morocco.errors import EngineError, TargetError
from morocco.hardware.host import created_at
from morocco.targets.engine import (
    LABEL,
    SUITE_LABEL,
    connect,
    engine_errors,
    ensure_image,
    read_engine_name,
    root_cause,
)
from morocco.targets.options import RunOptions, format_cores, parse_env
from morocco.targets.target import (
    Channel,
    Exit,
    Identity,
    OnPull,
    PullEvent,
)
from morocco.util.units import Seconds

_READ_SIZE = 1024 * 1024
_HEADER = struct.Struct(">BxxxL")  # of a frame: channel, length of the payload
_WATCHER_TIMEOUT: Seconds = 1
_CHANNELS: dict[int, Channel] = {1: "stdout", 2: "stderr"}


class AttachedStreams:
    """The raw socket of the engine's attach call, written by one thread and read by another."""

    def __init__(self, attached: socket.socket) -> None:
        self._socket = attached
        self._socket.settimeout(None)  # a model may stay silent for any length of time

    def write(self, data: bytes) -> None:
        """Feed all of `data`; raises OSError when nobody reads any more."""
        self._socket.sendall(data)

    def close_input(self) -> None:
        """Shut down the write side, which ends the container's input."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def output(self) -> Iterator[tuple[Channel, bytes]]:
        """Yield what the container prints, as it comes, until both streams end."""
        return demultiplex(iter(lambda: self._socket.recv(_READ_SIZE), b""))

    def close(self) -> None:
        """Close the socket and wake the threads that wait on it."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def demultiplex(chunks: Iterator[bytes]) -> Iterator[tuple[Channel, bytes]]:
    """Yield the payloads of the engine's frames, however the stream is cut into chunks.

    The format is that of the Docker API's ContainerAttach: before each payload a header of 8 bytes
    (channel, 0, 0, 0, length as big-endian uint32).
    """
    header, channel, left = b"", 0, 0
    for chunk in chunks:
        position = 0
        while position < len(chunk):
            if left == 0:
                taken = chunk[position : position + _HEADER.size - len(header)]
                header, position = header + taken, position + len(taken)
                if len(header) == _HEADER.size:
                    (channel, left), header = _HEADER.unpack(header), b""
            else:
                payload = chunk[position : position + left]
                left, position = left - len(payload), position + len(payload)
                yield _CHANNELS.get(channel, "stderr"), payload


class ContainerTarget:
    """A container of an image; leaving the context removes it, whatever happened."""

    def __init__(
        self,
        image: str,
        arguments: Sequence[str],
        options: RunOptions,
        gpus: Sequence[tuple[int, str]],
        on_pull: OnPull,
    ) -> None:
        """`gpus` are the (index, UUID) of the GPUs that are handed to the container."""
        self._image = image
        self._arguments = list(arguments)
        self._options = options
        self._gpus = list(gpus)
        self._on_pull = on_pull
        # Chosen here, so that the container can be removed even if `create` never answers.
        self._name = f"morocco-{uuid.uuid4().hex[:12]}"
        self._connected: DockerClient | None = None
        self._attached: AttachedStreams | None = None
        self._watcher: threading.Thread | None = None
        self._killed = threading.Event()
        self._started: Seconds = 0.0
        self._ended: Seconds | None = None
        self.identity = Identity(image)

    def __enter__(self) -> ContainerTarget:
        return self

    def __exit__(self, *_: object) -> None:
        if self._attached is not None:
            self._attached.close()
        if self._connected is not None:
            self._remove(self._connected)

    def prepare(self) -> None:
        """Pull the image if necessary, create the container and attach to its streams."""
        self._connected = connect()
        with engine_errors("Cannot query the engine's version"):
            engine = read_engine_name(self._client)
        image = ensure_image(
            self._client, self._image, self._options.container.pull, self._show_pull
        )
        self.identity = Identity(
            self._image,
            tuple(self._arguments),
            image.id,
            tuple(image.attrs.get("RepoDigests") or ()),
            engine,
            _list_limits(self._options),
        )
        with engine_errors(f"Cannot create a container of {self._image}"):
            self._check_killed()
            self._container: Container = self._client.containers.create(
                image, self._arguments, **self._build_settings(engine)
            )
            attached = self._client.api.attach_socket(
                self._name, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            )
        self._attached = AttachedStreams(attached._sock)

    def _show_pull(self, event: PullEvent) -> None:
        self._check_killed()
        self._on_pull(event)

    def _check_killed(self) -> None:
        if self._killed.is_set():
            raise EngineError("The preparation was cancelled.")

    def _build_settings(self, engine: str) -> dict[str, Any]:
        options, container = self._options, self._options.container
        labels = {LABEL: str(os.getpid())}
        if options.suite is not None:
            labels[SUITE_LABEL] = options.suite
        return {
            "name": self._name,
            "labels": labels,
            "stdin_open": True,
            "environment": parse_env(options.env),
            "network_mode": container.network,
            "shm_size": container.shm_size,
            "mem_limit": container.memory,
            "memswap_limit": container.memory,  # no swap: it would hide the limit
            "nano_cpus": None if container.cpus is None else int(container.cpus * 1e9),
            "cpuset_cpus": format_cores(options.cores) or None,
            "security_opt": ["no-new-privileges"],
            # The default driver would write every prediction to the engine's disk as well.
            "log_config": LogConfig(type="none"),
            "device_requests": self._build_device_requests(engine),
        }

    def _build_device_requests(self, engine: str) -> list[DeviceRequest]:
        if not self._gpus:
            return []
        if engine.startswith("Podman"):  # it silently ignores the other form
            names = [f"nvidia.com/gpu={index}" for index, _ in self._gpus]
            return [DeviceRequest(driver="cdi", device_ids=names)]
        uuids = [uuid for _, uuid in self._gpus]
        return [DeviceRequest(device_ids=uuids, capabilities=[["gpu"]])]

    def start(self) -> Seconds:
        """Start the container; the engine answers a few ms after the program was loaded."""
        self._start_asked = time.time()
        failed = f"Cannot start {self._image}"
        with engine_errors(failed):
            try:
                self._container.start()
            except APIError as error:
                raise self._explain(f"{failed}: {root_cause(error)}") from None
        self._started = time.monotonic()
        return self._started

    def _explain(self, message: str) -> EngineError | TargetError:
        if "could not select device driver" in message or "nvidia-container" in message:
            return EngineError(
                f"{message}. Docker cannot give GPUs to containers: install the NVIDIA Container "
                "Toolkit and restart the engine, or measure on the CPU with --gpus none."
            )
        if "network" in message and "not found" in message:
            return EngineError(
                f"{message}. List networks with `docker network ls`, or omit --network."
            )
        return TargetError(
            f"{message}. The container's command cannot be run: check the image's ENTRYPOINT and "
            "CMD."
        )

    def find_pid(self) -> int | None:
        """Return the main process as seen from this machine, None if it has ended.

        Raises EngineError if the engine's processes are not visible from here.
        """
        state = self._read_state()
        while state["Pid"] == 0 and state["Status"] in ("created", "running"):
            time.sleep(0.01)
            state = self._read_state()
        pid = int(state["Pid"])
        if pid == 0:
            return None
        created = created_at(pid)
        if created is not None and created < self._start_asked - 10:
            raise EngineError(
                "The container's processes are not visible from here: run morocco on the engine's "
                "host, or in a container with --pid=host."
            )
        self._watch_end(pid)
        return pid

    def _read_state(self) -> dict[str, Any]:
        with engine_errors("Cannot query the container's state"):
            self._container.reload()
        state: dict[str, Any] = self._container.attrs["State"]
        return state

    def _watch_end(self, pid: int) -> None:
        """Note the moment the process ends, which the engine reports some 25 ms later."""
        try:
            handle = os.pidfd_open(pid)
        except OSError:  # an old kernel or a sandbox: `wait` then takes the engine's time
            return

        def watch() -> None:
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            poll.poll()
            self._ended = time.monotonic()
            os.close(handle)

        self._watcher = threading.Thread(target=watch, name="watcher", daemon=True)
        self._watcher.start()

    def find_adopted(self) -> Collection[int]:
        """Return nothing: no process leaves the control group of a container."""
        return ()

    def write(self, data: bytes) -> None:
        """Feed all of `data`."""
        self._streams.write(data)

    def close_input(self) -> None:
        """Shut down the write side, which ends the container's input."""
        self._streams.close_input()

    def unread_input(self) -> int:
        """Return 0: what the engine still buffers cannot be known."""
        return 0

    def output(self) -> Iterator[tuple[Channel, bytes]]:
        """Yield stdout and stderr as they come."""
        return self._streams.output()

    def wait(self) -> Exit:
        """Wait for the end; raises EngineError if the engine goes away first."""
        with engine_errors(f"While {self._image} was running"):
            status = self._client.api.wait(self._name, timeout=None)
        state = self._read_state()
        if self._watcher is not None:
            self._watcher.join(_WATCHER_TIMEOUT)
        if self._ended is None:
            self._ended = _to_monotonic(state["FinishedAt"])
        # The main process may have ended before the engine reported that it runs.
        ended = max(self._ended, self._started)
        return Exit(int(status["StatusCode"]), ended, bool(state.get("OOMKilled")))

    def kill(self) -> None:
        """Kill all processes of the container, or cancel its preparation."""
        self._killed.set()
        if self._connected is None:
            return
        with suppress(APIError, RequestException):
            self._client.api.kill(self._name)

    @property
    def _streams(self) -> AttachedStreams:
        if self._attached is None:
            raise RuntimeError("call prepare() first")
        return self._attached

    @property
    def _client(self) -> DockerClient:
        if self._connected is None:
            raise RuntimeError("call prepare() first")
        return self._connected

    def _remove(self, client: DockerClient) -> None:
        try:
            client.api.remove_container(self._name, v=True, force=True)
        except NotFound:
            pass
        except APIError as error:
            raise EngineError(
                f"Cannot remove the container: {root_cause(error).rstrip('.')}. Remove it with: "
                f"docker rm -f {self._name}"
            ) from None
        except RequestException as error:
            raise EngineError(
                f"The connection to the Docker engine is lost ({root_cause(error)}). The container "
                "may still exist; once the engine is running again, remove it with: "
                f"docker rm -f {self._name}"
            ) from None
        finally:
            client.close()


def _list_limits(options: RunOptions) -> dict[str, str]:
    """Return the limits that were set, for the run record."""
    container = options.container
    limits = {
        "network": container.network,
        "shm_size": container.shm_size,
        "memory": container.memory,
        "cpus": None if container.cpus is None else str(container.cpus),
        "cpuset": format_cores(options.cores) or None,
    }
    return {name: limit for name, limit in limits.items() if limit is not None}


def _to_monotonic(engine_time: str) -> Seconds:
    """Return a time of the engine (RFC 3339, nanoseconds, UTC) on the monotonic clock."""
    seconds, _, fraction = engine_time.rstrip("Z").partition(".")
    whole = datetime.fromisoformat(seconds).replace(tzinfo=timezone.utc).timestamp()
    return whole + float(f"0.{fraction or 0}") - time.time() + time.monotonic()
