"""What a target is: the protocol, and the plain data that it reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from morocco.util.units import Seconds

Channel = Literal["stdout", "stderr"]
EXEC_PREFIX = "exec:"


def is_process(spec: str) -> bool:
    """Return whether the TARGET of the command line is a bare process rather than an image."""
    return spec.startswith(EXEC_PREFIX)


@dataclass(frozen=True)
class Exit:
    """How the main process of a target ended."""

    code: int
    """As the shell tells it: 128 + signal for a process that was killed by a signal."""
    ended: Seconds
    """When, on the monotonic clock."""
    out_of_memory: bool = False
    """Whether the kernel killed a process of it for memory."""


@dataclass(frozen=True)
class Identity:
    """What ran, as it goes into the run record."""

    target: str
    """As it was given."""
    command: tuple[str, ...] = ()
    """What a bare process was started with, or a container was given as arguments."""
    image_id: str | None = None
    image_digests: tuple[str, ...] = ()
    engine: str | None = None
    """Name and version."""
    limits: Mapping[str, str] = field(default_factory=dict)
    """Memory, CPUs, shared memory and network, where they were set."""


@dataclass(frozen=True)
class PullEvent:
    """One step of a pull."""

    layer: str
    status: str
    current: int
    """Bytes so far; 0 where the engine does not tell."""
    total: int


OnPull = Callable[[PullEvent], None]


class Target(Protocol):
    """A target: entered, prepared, started once, fed and drained, and left."""

    def __enter__(self) -> Target:
        """Do nothing yet: what `prepare` begins, `__exit__` ends."""

    def __exit__(self, *_: object) -> None:
        """Leave nothing behind, whatever happened."""

    @property
    def identity(self) -> Identity:
        """What runs."""

    def prepare(self) -> None:
        """Do all that can be done before the clock starts; may take long."""

    def start(self) -> Seconds:
        """Start the main process and return when (monotonic clock)."""

    def find_pid(self) -> int | None:
        """Return the main process as this machine sees it; None if it has ended already."""

    def write(self, data: bytes) -> None:
        """Feed all of `data`, waiting as long as it takes; OSError when nobody reads any more."""

    def close_input(self) -> None:
        """Tell the target that its input ends here."""

    def output(self) -> Iterator[tuple[Channel, bytes]]:
        """Yield what the target prints, as it comes, until both streams end."""

    def unread_input(self) -> int:
        """Return how many bytes of the input still lie unread, as far as this can be told."""

    def wait(self) -> Exit:
        """Wait for the main process to end."""

    def kill(self) -> None:
        """End the target at once; no error if it has ended."""
