"""What a target is: the protocol, and the plain data that it reports."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from morocco.errors import DataError
from morocco.util.units import Bytes, Seconds

Channel = Literal["stdout", "stderr"]
EXEC_PREFIX = "exec:"


def is_process(spec: str) -> bool:
    """Return whether the TARGET of the command line is a bare process rather than an image."""
    return spec.startswith(EXEC_PREFIX)


def check_target(spec: str) -> None:
    """Raise DataError for a TARGET that is empty."""
    if not spec.strip():
        raise DataError("The target is empty: name an image, or a command as 'exec:COMMAND'.")


@dataclass(frozen=True)
class Start:
    """How the main process of a target started."""

    moment: Seconds
    """On the monotonic clock."""
    pid: int | None
    """As seen from this machine; None while it is unknown: `find_pid` waits for it."""


@dataclass(frozen=True)
class Exit:
    """How the main process of a target ended."""

    code: int
    """As in a shell: 128 + signal for a process that was killed by a signal."""
    ended: Seconds
    """On the monotonic clock."""
    out_of_memory: bool = False
    """Whether the kernel killed one of its processes for lack of memory."""
    peak_ram: Bytes | None = None
    """The most that one of its processes held, where the kernel tells."""
    fed_late: Seconds = 0.0
    """How long it had run before that was known here, so that it could be fed."""


@dataclass(frozen=True)
class Identity:
    """What ran, as it stands in the run record."""

    target: str
    """As given on the command line."""
    command: tuple[str, ...] = ()
    """The command of a bare process, or the arguments of a container."""
    image_id: str | None = None
    image_digests: tuple[str, ...] = ()
    engine: str | None = None
    """Name and version."""
    limits: Mapping[str, str] = field(default_factory=dict)
    """What a container may use: memory, CPUs, cores, processes, capabilities and others."""


@dataclass(frozen=True)
class PullEvent:
    """One step of pulling an image."""

    layer: str
    status: str
    current: int
    """Bytes so far; 0 if the engine does not report them."""
    total: int


OnPull = Callable[[PullEvent], None]


class Target(Protocol):
    """A target is entered, prepared, started once, fed and drained, and left."""

    def __enter__(self) -> Target:
        """Do nothing yet: `prepare` acquires what `__exit__` releases."""

    def __exit__(self, *_: object) -> None:
        """Leave nothing behind, whatever happened."""

    @property
    def identity(self) -> Identity:
        """What runs; complete after `prepare`."""

    def prepare(self) -> None:
        """Do everything that can be done before the clock starts; may take long."""

    def start(self) -> Start:
        """Start the main process; return as soon as it is known to run, to feed it."""

    def find_pid(self) -> int | None:
        """Return the main process, None if it has ended; wait until that is known."""

    def find_adopted(self) -> Collection[int]:
        """Return processes of the target that are no descendants of the main process any more."""

    def write(self, data: bytes) -> None:
        """Feed all of `data`, however long it takes; raises OSError when nobody reads any more."""

    def close_input(self) -> None:
        """End the input of the target."""

    def output(self) -> Iterator[tuple[Channel, bytes]]:
        """Yield what the target prints, as it comes, until both streams end."""

    def unread_input(self) -> int:
        """Return how many bytes of the input are still unread, as far as is known."""

    def wait(self) -> Exit:
        """Wait for the main process to end."""

    def kill(self) -> None:
        """End the target at once; no error if it has ended already."""
