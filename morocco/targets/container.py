"""Containers as targets, fed and drained through one socket."""

from __future__ import annotations

import os
import re
import socket
import struct
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from docker import DockerClient
from docker.errors import APIError, NotFound
from docker.models.containers import Container
from docker.models.images import Image
from docker.types import DeviceRequest, LogConfig
from requests.exceptions import RequestException

from morocco.errors import EngineError, TargetError
from morocco.hardware.cgroup import is_named_in_cgroup
from morocco.hardware.host import created_at, name_pid_space, read_host_info
from morocco.targets.engine import (
    LABEL,
    SPACE_LABEL,
    SUITE_LABEL,
    connect,
    engine_errors,
    ensure_image,
    is_podman,
    read_engine_name,
    root_cause,
)
from morocco.targets.launch import ContainerState, Launch
from morocco.targets.options import (
    ContainerOptions,
    RunOptions,
    format_cores,
    limit_memory,
    parse_env,
)
from morocco.targets.patience import Limits, OnWait, patience
from morocco.targets.target import (
    Channel,
    Exit,
    Identity,
    OnPull,
    PullEvent,
    Start,
)
from morocco.util.units import Seconds

_READ_SIZE = 1024 * 1024
_HEADER = struct.Struct(">BxxxL")  # of a frame: channel, length of the payload
_ENGINE_TIME = re.compile(r"([\d-]+T[\d:]+)(\.\d+)?(Z|[+-]\d\d:\d\d)")
_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER")
"""What root needs to use and unpack files of other owners inside the container; no others."""
_TMPFS = "rw,exec,nosuid,nodev,mode=1777"  # some libraries compile and load code there
_KILL = Limits(usual=10, stopped=5)
_REMOVE = Limits(usual=600, stopped=20)
"""A healthy engine takes a second; one with a slow disk, half a minute."""
_BAD_COMMAND = re.compile(r"\bexec(utable|: )")
"""In what runc and crun say of a command that cannot be run."""
_LIMITS = {
    "memory": "Memory",
    "cpus": "NanoCpus",
    "cpuset": "CpusetCpus",
    "pids": "PidsLimit",
}
"""Limits by their names in the record, and in the engine's answers."""
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
        on_wait: OnWait = lambda _: None,
        connection: tuple[DockerClient, str] | None = None,
    ) -> None:
        """`gpus` are the (index, UUID) of the GPUs that are handed to the container.

        `connection` is a client and the name of its engine, if they are known already.
        """
        self._image = image
        self._arguments = list(arguments)
        self._options = options
        self._gpus = list(gpus)
        self._on_pull, self._on_wait = on_pull, on_wait
        self._memory = _limit_memory(options.container.memory)
        # Chosen here, so that the container can be removed even if `create` never answers.
        self._name = f"morocco-{uuid.uuid4().hex[:12]}"
        self._connection = connection
        self._connected: DockerClient | None = None
        self._attached: AttachedStreams | None = None
        self._launched: Launch | None = None
        self._killed = threading.Event()
        self._silent = False
        """Whether the engine left a request to end the container unanswered."""
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
        engine = self._connect()
        image = ensure_image(
            self._client, self._image, self._options.container.pull, self._show_pull
        )
        self.identity = Identity(
            self._image,
            tuple(self._arguments),
            image.id,
            tuple(image.attrs.get("RepoDigests") or ()),
            engine,
            _list_limits(self._options, self._memory.get("mem_limit")),
        )
        prepared = time.monotonic()
        with engine_errors(f"Cannot create a container of {self._image}"):
            self._check_killed()
            container: Container = self._client.containers.create(
                image, self._arguments, **self._build_settings(engine, _find_home(image))
            )
        self._attached = AttachedStreams(self._attach())
        self._launched = Launch(str(container.id), self._ask_to_start, self._inspect, prepared)
        if is_podman(engine):
            self._look_at_podman(str(container.id), self._launched)

    def _attach(self) -> socket.socket:
        """Return the socket of the container's streams; Podman already makes its process."""
        streams = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        failed = f"Cannot create a container of {self._image}"
        with engine_errors(failed):
            try:
                attached: socket.socket = self._client.api.attach_socket(self._name, streams)._sock
            except APIError as error:
                if _BAD_COMMAND.search(root_cause(error)):
                    raise self._explain(f"{failed}: {root_cause(error)}") from None
                raise
        return attached

    def _look_at_podman(self, container: str, launch: Launch) -> None:
        """Find the process that Podman has made, and the limits that are in force."""
        with engine_errors("Cannot query the container's limits"):
            attrs = self._client.api.inspect_container(self._name)
        pid = int(attrs["State"]["Pid"])
        launch.look(pid)
        grouped = is_named_in_cgroup(pid, container) or created_at(pid) is None
        set_limits = attrs["HostConfig"] if grouped else {}
        self._keep_limits({name for name, key in _LIMITS.items() if not set_limits.get(key)})

    def _keep_limits(self, ignored: Collection[str]) -> None:
        """Drop the limits that the engine ignores; raises EngineError if they were asked for."""
        if asked := [name for name in _list_asked(self._options) if name in ignored]:
            raise EngineError(
                f"The engine does not enforce {', '.join(asked)}: Podman of an ordinary user sets "
                "limits only where control groups of version 2 are delegated to that user. Omit "
                "them, or use the engine of root."
            )
        limits = self.identity.limits.items()
        kept = {name: limit for name, limit in limits if name not in ignored}
        self.identity = replace(self.identity, limits=kept)

    def _connect(self) -> str:
        """Connect to the engine and return its name and version."""
        if self._connection is not None:
            self._connected = self._connection[0]
            return self._connection[1]
        self._connected = connect()
        with engine_errors("Cannot query the engine's version"):
            return read_engine_name(self._client)

    def _show_pull(self, event: PullEvent) -> None:
        self._check_killed()
        self._on_pull(event)

    def _check_killed(self) -> None:
        if self._killed.is_set():
            raise EngineError("The preparation was cancelled.")

    def _build_settings(self, engine: str, home: str) -> dict[str, Any]:
        options, container = self._options, self._options.container
        labels = {LABEL: str(os.getpid())}
        if (space := name_pid_space()) is not None:
            labels[SPACE_LABEL] = space
        if options.suite is not None:
            labels[SUITE_LABEL] = options.suite
        return {
            "name": self._name,
            "labels": labels,
            "stdin_open": True,
            "environment": {**self._hide_gpus(), **parse_env(options.env)},
            "network_mode": container.network,
            "shm_size": container.shm_size,
            **self._memory,
            "nano_cpus": None if container.cpus is None else int(container.cpus * 1e9),
            "cpuset_cpus": format_cores(options.cores) or None,
            "security_opt": ["no-new-privileges"],
            "cap_drop": ["ALL"],
            "cap_add": _list_capabilities(container),
            "pids_limit": container.pids_limit or -1,
            "oom_score_adj": options.oom_score_adj,
            "read_only": container.read_only,
            "tmpfs": dict.fromkeys(["/tmp", home], _TMPFS) if container.read_only else None,
            # The default driver would write every prediction to the engine's disk as well.
            "log_config": LogConfig(type="none"),
            "device_requests": self._build_device_requests(engine),
        }

    def _hide_gpus(self) -> dict[str, str]:
        """Return what keeps NVIDIA's runtime, where it is the default, from adding all GPUs."""
        return {} if self._gpus else {"NVIDIA_VISIBLE_DEVICES": "void"}

    def _build_device_requests(self, engine: str) -> list[DeviceRequest]:
        if not self._gpus:
            return []
        if is_podman(engine):  # it silently ignores the other form
            names = [f"nvidia.com/gpu={index}" for index, _ in self._gpus]
            return [DeviceRequest(driver="cdi", device_ids=names)]
        uuids = [uuid for _, uuid in self._gpus]
        return [DeviceRequest(device_ids=uuids, capabilities=[["gpu"]])]

    def start(self) -> Start:
        """Start the container; return as soon as the engine shows that it runs."""
        return self._launch.begin()

    def _ask_to_start(self) -> None:
        failed = f"Cannot start {self._image}"
        with engine_errors(failed):
            try:
                self._client.api.start(self._name)
            except APIError as error:
                raise self._explain(f"{failed}: {root_cause(error)}") from None

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
        """Return the main process, None if it ended unseen; wait until that is known.

        Raises EngineError if the engine's processes are not visible from here.
        """
        return self._launch.find_pid()

    def _inspect(self) -> ContainerState:
        with engine_errors("Cannot query the container's state"):
            state = self._client.api.inspect_container(self._name)["State"]
        return ContainerState(
            state["Status"],
            int(state["Pid"]),
            _to_monotonic(state["StartedAt"]),
            None if state["Pid"] else _to_monotonic(state["FinishedAt"]),
            bool(state.get("OOMKilled")),
        )

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
        state = self._inspect()
        ended = self._launch.find_end(state)
        late = self._launch.lateness
        killed = state.out_of_memory or self._launch.killed_for_memory
        return Exit(int(status["StatusCode"]), ended, killed, fed_late=late)

    def kill(self) -> None:
        """Kill all processes of the container, or cancel its preparation."""
        self._killed.set()
        if self._connected is None:
            return
        if self._launched is not None:
            self._launched.cancel()
        if not self._silent:  # or it would be waited for again
            self._silent = not self._wait_for("kill", self._send_kill, _KILL)

    def _send_kill(self) -> None:
        with suppress(APIError, RequestException):
            self._client.api.kill(self._name)

    def _wait_for(self, what: str, call: Callable[[], None], limits: Limits) -> bool:
        """Call the engine and return whether it has answered in time."""
        thread = threading.Thread(target=call, name=what, daemon=True)
        thread.start()
        waiting = f"Waiting for the engine to {what} the container {self._name}"
        return patience.wait_for(thread, limits, lambda left: self._on_wait(f"{waiting}{left}."))

    @property
    def _streams(self) -> AttachedStreams:
        if self._attached is None:
            raise RuntimeError("call prepare() first")
        return self._attached

    @property
    def _launch(self) -> Launch:
        if self._launched is None:
            raise RuntimeError("call prepare() first")
        return self._launched

    @property
    def _client(self) -> DockerClient:
        if self._connected is None:
            raise RuntimeError("call prepare() first")
        return self._connected

    def _remove(self, client: DockerClient) -> None:
        failed: list[EngineError] = []

        def remove() -> None:
            try:
                remove_container(client, self._name)
            except EngineError as error:
                failed.append(error)
            finally:
                client.close()

        if not self._wait_for("remove", remove, _REMOVE):
            failed.append(
                EngineError(
                    "The engine does not answer. The container may still exist; once the engine is "
                    f"running again, remove it with: docker rm -f {self._name} (or podman)"
                )
            )
        if failed:
            raise failed[0]


def remove_container(client: DockerClient, name: str) -> None:
    """Kill and remove a container, if it exists; raises EngineError, which tells how to do it."""
    try:
        client.api.remove_container(name, v=True, force=True)
    except NotFound:
        pass
    except APIError as error:
        raise EngineError(
            f"Cannot remove the container: {root_cause(error).rstrip('.')}. Remove it with: "
            f"docker rm -f {name} (or podman)"
        ) from None
    except RequestException as error:
        raise EngineError(
            f"The connection to the container engine is lost ({root_cause(error)}). The container "
            "may still exist; once the engine is running again, remove it with: "
            f"docker rm -f {name} (or podman)"
        ) from None


def _limit_memory(given: str | None) -> dict[str, Any]:
    """Return the engine's settings; with a limit that was asked for there is no swap to hide it."""
    if given is None:
        return {"mem_limit": limit_memory(read_host_info().ram), "memswap_limit": -1}
    return {} if given == "none" else {"mem_limit": given, "memswap_limit": given}


def _list_capabilities(container: ContainerOptions) -> list[str]:
    return sorted({*_CAPABILITIES, *(name.upper() for name in container.cap_add)})


def _find_home(image: Image) -> str:
    """Return the home folder of an image's user, as far as its settings tell."""
    config = image.attrs.get("Config") or {}
    env = dict(setting.partition("=")[::2] for setting in config.get("Env") or ())
    user = (config.get("User") or "root").partition(":")[0]
    usual = "/root" if user in ("root", "0") else f"/home/{user}"
    return env.get("HOME") or usual


def _list_asked(options: RunOptions) -> list[str]:
    """Return the limits that change what is measured, where they are no defaults."""
    memory, cpus = options.container.memory, options.container.cpus
    asked = {"memory": memory not in (None, "none"), "cpus": cpus, "cpuset": options.cores}
    return [name for name, value in asked.items() if value]


def _list_limits(options: RunOptions, memory: str | None) -> dict[str, str]:
    """Return the limits of a container, for the run record."""
    container = options.container
    limits = {
        "network": container.network,
        "shm_size": container.shm_size,
        "memory": memory,
        "cpus": None if container.cpus is None else str(container.cpus),
        "cpuset": format_cores(options.cores) or None,
        "pids": None if container.pids_limit is None else str(container.pids_limit),
        "capabilities": ",".join(_list_capabilities(container)),
        "oom_score_adj": str(options.oom_score_adj),
        "read_only": "yes" if container.read_only else None,
    }
    return {name: limit for name, limit in limits.items() if limit is not None}


def parse_engine_time(text: str) -> Seconds | None:
    """Return a time of the engine in seconds since the epoch, None if it is not set.

    The format is RFC 3339 with up to nine digits; Docker gives UTC, Podman the local time.
    """
    found = _ENGINE_TIME.fullmatch(text)
    if found is None or text.startswith("0001-"):
        return None
    second, fraction, zone = found.groups()
    whole = datetime.fromisoformat(second + ("+00:00" if zone == "Z" else zone))
    return whole.timestamp() + float(f"0{fraction or ''}")


def _to_monotonic(text: str) -> Seconds | None:
    moment = parse_engine_time(text)
    return None if moment is None else moment - time.time() + time.monotonic()
