"""Engines that misbehave: one that answers slowly, and one that can be killed safely."""

from __future__ import annotations

import fcntl
import json
import os
import re
import select
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any, Literal

import pytest
from docker import DockerClient

from morocco.targets.probe import pack_programs
from runs import TIMEOUT, until

SOCKET = "/var/run/docker.sock"


def as_root() -> list[str] | None:
    """Return the prefix of a command that only root may run, or None if root is out of reach."""
    if os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    asked = sudo and subprocess.run([sudo, "-n", "true"], capture_output=True, check=False)
    return [sudo, "-n"] if sudo and asked and asked.returncode == 0 else None


def require_podman() -> str:
    """Return the address of the Podman service for tests; without one, skip, or fail in CI."""
    address = os.environ.get("TEST_PODMAN_HOST")
    if not address:
        stop = pytest.fail if os.environ.get("CI") else pytest.skip
        stop(
            "NOT TESTED: NO PODMAN. Start it (podman system service --time=0 unix:///tmp/podman &) "
            "and tell the tests: TEST_PODMAN_HOST=unix:///tmp/podman"
        )
    return address


on_both_engines = pytest.mark.parametrize(
    "engine_name", ["docker", pytest.param("podman", marks=pytest.mark.podman)], indirect=True
)
"""Run a test of containers on Docker and on Podman."""

on_every_engine = pytest.mark.parametrize(
    "kind",
    [
        "process",
        pytest.param("container", marks=pytest.mark.docker),
        pytest.param("podman", marks=[pytest.mark.docker, pytest.mark.podman]),
    ],
    indirect=True,
)
"""Run a test of any kind of target as a process, on Docker and on Podman."""


def copy_image(name: str, source: DockerClient, target: DockerClient) -> None:
    """Copy an image from one engine to another that lacks it; one test process at a time."""
    with (Path(tempfile.gettempdir()) / f"copy-{os.getuid()}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.images.list(name):
            return
        saved: Any = source.images.get(name).save(named=True)  # docker-py takes what it gives
        (copy,) = target.images.load(saved)
        repository, _, tag = name.partition(":")
        copy.tag(repository, tag)


class SlowEngine:
    """A proxy that delays one kind of request to the engine, or the answers to it."""

    def __init__(
        self,
        folder: Path,
        request: str,
        delay: float,
        *,
        late: Literal["request", "answer"] = "request",
    ) -> None:
        """Delay what has `request`, or one of several with | between, in its path.

        A stream passes freely once it is open.
        """
        self.address = f"unix://{folder}/slow.sock"
        self.asked = threading.Event()
        """Set once the request has arrived."""
        names = "|".join(map(re.escape, request.split("|")))
        self._request = re.compile(rf"(?:GET|POST|DELETE) \S*(?:{names})".encode())
        self._delay, self._late = delay, late
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(f"{folder}/slow.sock")
        self._server.listen()
        self._threads = [threading.Thread(target=self._serve)]

    def __enter__(self) -> SlowEngine:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        """Wait until all requests are answered."""
        self._server.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._server.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                self._threads.append(threading.Thread(target=self._pass_on, args=(client,)))
                self._threads[-1].start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as engine:
            engine.connect(SOCKET)
            hold_answer = threading.Event()
            answers = threading.Thread(target=self._answer, args=(engine, client, hold_answer))
            answers.start()
            with suppress(OSError):
                self._ask(client, engine, hold_answer)
            self._end_input(engine)
            while answers.is_alive() and not _has_hung_up(client):
                answers.join(0.05)
            with suppress(OSError):
                engine.shutdown(socket.SHUT_RDWR)
            answers.join()

    def _end_input(self, engine: socket.socket) -> None:
        with suppress(OSError):
            engine.shutdown(socket.SHUT_WR)  # an attached stream goes on: its input has ended

    def _ask(self, client: socket.socket, engine: socket.socket, hold: threading.Event) -> None:
        while data := client.recv(65536):
            held_back = self._request.match(data) is not None
            if held_back:
                self.asked.set()
            if held_back and self._late == "answer":
                hold.set()
            elif held_back:
                time.sleep(self._delay)
            engine.sendall(data)
            if held_back and self._late == "request" and b"Upgrade" not in data:
                time.sleep(self._delay)  # it takes effect even if nobody waits

    def _answer(self, engine: socket.socket, client: socket.socket, hold: threading.Event) -> None:
        with suppress(OSError):
            while data := engine.recv(65536):
                if hold.is_set():
                    hold.clear()
                    time.sleep(self._delay)
                client.sendall(data)
            client.shutdown(socket.SHUT_WR)


class DeafEngine(SlowEngine):
    """A proxy that does not pass on that the input of a container has ended."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "nothing", 0)

    def _end_input(self, engine: socket.socket) -> None:
        pass


def _has_hung_up(peer: socket.socket) -> bool:
    """Return whether nobody reads at the other end; one that has only ended its input does."""
    poll = select.poll()
    poll.register(peer, 0)  # which reports POLLHUP alone
    return bool(poll.poll(0))


class SecondEngine:
    """A separate Docker engine; leaving the context removes it, even after `kill`."""

    image = "sleeper"
    """Its only image at first: it prints its input, then sleeps."""

    def __init__(self, root: Sequence[str]) -> None:
        """`root` is the prefix of a command that only root may run."""
        self._root = root
        self._folder = Path(tempfile.mkdtemp(prefix="engine-"))  # short, as it has to hold sockets
        self._engine: subprocess.Popen[bytes] | None = None
        self._came_up = False
        self._orphans: list[int] = []
        self._path = os.environ["PATH"]
        """Where the engine looks for its helpers."""
        self.address = f"unix://{self._folder}/sock"

    def __enter__(self) -> SecondEngine:
        with ExitStack() as stack:
            stack.callback(self._clean_up)
            self._start().close()
            self.make_image(self.image, "/bin/sh", "-c", "cat; sleep 600")
            stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._clean_up()

    def make_image(self, name: str, *entrypoint: str) -> None:
        """Make an image that contains only sh, cat and sleep."""
        with closing(DockerClient(self.address)) as client:
            client.api.import_image_from_data(
                pack_programs("/bin/sh", "/bin/cat", "/bin/sleep"),
                repository=name,
                changes=[f"ENTRYPOINT {json.dumps(entrypoint)}"],
            )

    def kill(self) -> None:
        """End the engine as a crash would: its containers keep running."""
        with closing(DockerClient(self.address)) as client:
            self._orphans = [box.attrs["State"]["Pid"] for box in client.containers.list()]
        self._stop("KILL")

    def _start(self) -> DockerClient:
        folder = self._folder
        # The old containerd ends a moment after its engine; the new engine would wait for it.
        self._run("rm", "-f", f"{folder}/pid", f"{folder}/exec/containerd/containerd.pid")
        command = [
            # In its own network: an engine without a bridge removes the bridge of the other one.
            *(*self._root, "unshare", "--net", "env", f"PATH={self._path}", "dockerd"),
            *("--host", self.address, "--pidfile", f"{folder}/pid"),
            *("--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec"),
            *("--bridge=none", "--iptables=false", "--ip-forward=false", "--ip-masq=false"),
        ]
        with (folder / "log").open("a") as log:
            # In its own session: on Ctrl-C the tests still need the engine to clean up.
            self._engine = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        until(self._answers)
        self._came_up = True
        return DockerClient(self.address)

    def _answers(self) -> bool:
        assert self._engine
        assert self._engine.poll() is None, (self._folder / "log").read_text()
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(f"{self._folder}/sock") == 0

    def _stop(self, how: str) -> None:
        if self._engine is not None and self._engine.poll() is None:
            pid = self._folder / "pid"  # of the engine itself: ours may be sudo's
            self._run("kill", f"-{how}", pid.read_text() if pid.exists() else str(self._engine.pid))
            self._engine.wait(TIMEOUT)

    def _clean_up(self) -> None:
        """Remove everything; the other steps are taken even if one fails."""
        with ExitStack() as steps:  # the last one first
            steps.callback(self._run, "rm", "-r", str(self._folder))
            steps.callback(self._unmount)
            steps.callback(self._stop, "TERM")
            steps.callback(self._remove_containers)

    def _remove_containers(self) -> None:
        """Remove all containers; a dead engine has to be started again for that."""
        for pid in self._orphans:
            self._run("kill", "-KILL", str(pid))
        if not self._came_up:
            return
        dead = self._engine is None or self._engine.poll() is not None
        with closing(self._start() if dead else DockerClient(self.address)) as client:
            for box in client.containers.list(all=True):
                box.remove(force=True)

    def _unmount(self) -> None:
        mounted = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for place in reversed(mounted):
            if place.startswith(f"{self._folder}/"):
                self._run("umount", place)

    def _run(self, *command: str) -> None:
        subprocess.run([*self._root, *command], check=True)
