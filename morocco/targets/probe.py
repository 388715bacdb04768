"""A probe: a tiny container that shows whether an engine can do what a run needs of it."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tarfile
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from morocco.errors import EngineError, MoroccoError
from morocco.targets.container import ContainerTarget
from morocco.targets.engine import imported_image, remove_containers, remove_imported_images
from morocco.targets.options import ContainerOptions, RunOptions
from morocco.util.units import Seconds

if TYPE_CHECKING:
    from docker import DockerClient

_SUITE = "doctor"
"""In place of a suite: the label by which the containers of killed probes are found."""
_LINE = b"probe\n"
_LIBRARY = re.compile(r"(/\S+) \(0x")
_UUID = re.compile(r"(?:GPU|MIG)-[0-9A-Za-z./-]+")
_LDD_TIMEOUT: Seconds = 5
_END_TIMEOUT: Seconds = 1
"""For a probe that was given up to clean up after itself."""

Stage = Literal["create", "start", "end", "done"]


@dataclass
class Probe:
    """A container of `cat`, and how far it came; `run` does it in a thread of its own."""

    connection: tuple[DockerClient, str]
    """A client, and the name of its engine."""
    image: str
    gpus: Sequence[tuple[int, str]] = ()
    """The (index, UUID) of the GPUs that it is given."""
    stage: Stage = "create"
    """What it does or failed to do; `end` means that its input has ended and it has not."""
    output: bytes = b""
    """What it was fed, then the variables of its environment and its mounts."""
    failure: Exception | None = None
    hidden: EngineError | None = None
    """Why its process cannot be seen from here."""

    def run(self, timeout: Seconds) -> None:
        """Do all that can be done within `timeout`; raises nothing."""
        options = RunOptions(container=ContainerOptions(pull="never"), suite=_SUITE)
        arguments = ["-", "/proc/self/environ", "/proc/self/mountinfo"]
        target = ContainerTarget(
            self.image,
            arguments,
            options,
            self.gpus,
            on_pull=lambda _: None,
            connection=self.connection,
        )
        thread = threading.Thread(target=self._work, args=(target,), name="probe", daemon=True)
        thread.start()
        try:
            thread.join(timeout)
        finally:
            reached = self.stage
            if thread.is_alive():
                threading.Thread(target=target.kill, name="kill", daemon=True).start()
                thread.join(_END_TIMEOUT)
            self.stage = reached

    def _work(self, target: ContainerTarget) -> None:
        try:
            with target:
                self._pass_through(target)
        except (MoroccoError, OSError, LookupError, ValueError) as error:
            self.failure = error

    def _pass_through(self, target: ContainerTarget) -> None:
        target.prepare()
        self.stage = "start"
        target.start()
        try:
            target.find_pid()
        except EngineError as error:
            self.hidden = error
        self.stage = "end"
        target.write(_LINE)
        target.close_input()
        self.output = b"".join(data for channel, data in target.output() if channel == "stdout")
        self.stage = "done"

    @property
    def started(self) -> bool:
        """Whether it ran."""
        return self.stage in ("end", "done")

    @property
    def was_given_up(self) -> bool:
        """Whether the engine took too long."""
        if self.failure is not None:
            return "timed out" in str(self.failure)
        return self.stage != "done"

    @property
    def passed(self) -> bool:
        """Whether it ended because its input did, after it had read it all."""
        return self.stage == "done" and self.output.startswith(_LINE)

    @property
    def gpus_given(self) -> set[str]:
        """The UUIDs of the GPUs that its environment names."""
        return set(_UUID.findall(self.output.decode(errors="replace")))

    @property
    def has_driver(self) -> bool:
        """Whether files of NVIDIA's driver are mounted in it."""
        return b"nvidia" in self.output


@contextmanager
def probe_image(client: DockerClient) -> Iterator[str]:
    """Yield the name of an image for probes, made of this machine's own `cat`.

    What killed probes left behind is removed before, the image after. Raises EngineError, and
    OSError if this machine has nothing to make it of.
    """
    remove_containers(client, _SUITE)
    remove_imported_images(client)
    program = shutil.which("cat")
    if program is None:
        raise FileNotFoundError("no program `cat`")
    name = f"morocco-probe-{uuid.uuid4().hex[:12]}"
    with imported_image(client, name, pack_programs(program), [program]) as image:
        yield image


def pack_programs(*programs: str) -> bytes:
    """Return a tar of programs and the libraries that they are linked with."""
    files = {*programs, *(library for program in programs for library in _list_libraries(program))}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for file in files:
            tar.add(Path(file).resolve(), file)
    return packed.getvalue()


def _list_libraries(program: str) -> list[str]:
    """Return the libraries of a program; none if it is linked with none."""
    listed = subprocess.run(
        ["ldd", program], capture_output=True, text=True, check=False, timeout=_LDD_TIMEOUT
    )
    return _LIBRARY.findall(listed.stdout)
