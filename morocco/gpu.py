"""GPU use and memory of a set of processes.

A reading is None where nothing can be known, never 0. The memory of a task is what the driver
tells of its processes; where it tells nothing, what the GPU holds beyond the baseline that was
taken before the start.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

from morocco.cards import Card, GpuInfo, Joules, open_cards
from morocco.nvml import Nvml, NvmlError
from morocco.units import Bytes

__all__ = ["GpuInfo", "GpuProcess", "GpuReading", "Gpus", "Source"]

Source = Literal["process", "device"]
_Number = TypeVar("_Number", int, float)
_Answer = TypeVar("_Answer")

_HOST_PIDS = "pid:[4026531836]"
"""What the kernel calls its first PID namespace."""
_NOISE: Bytes = 2**20
"""What an idle GPU holds moves by less than this."""


@dataclass(frozen=True)
class GpuProcess:
    """One process on one GPU, whoever owns it."""

    gpu: int
    """The index of the GPU."""
    pid: int
    """As the driver counts processes."""
    name: str | None
    """None where the process is hidden from us."""
    memory: Bytes | None
    """None where the driver does not tell."""


@dataclass(frozen=True)
class GpuReading:
    """What the task has of its GPUs in one beat; both None while it is on none."""

    use: float | None = None
    """0 to 1, averaged over the GPUs the task is on."""
    ram: Bytes | None = None
    """Summed over the processes of the task and their GPUs."""


class Gpus:
    """The selected GPUs for the length of a run: a context manager, opened once.

    Nothing raises after `open`: a GPU that fails is asked no more and is named in `lost`.
    """

    source: Source | None = None
    """Where memory came from so far: "device" as soon as one reading had to stand in."""

    def __init__(
        self, nvml: Nvml | None, cards: Sequence[Card], lost: Sequence[str], foreign_pids: bool
    ) -> None:
        self.infos = tuple(card.info for card in cards)
        self._nvml = nvml
        self._cards = tuple(cards)
        self._lost = list(lost)
        self._foreign_pids = foreign_pids

    @classmethod
    def open(cls, choice: str = "auto", *, foreign_pids: bool | None = None) -> Gpus:
        """Select GPUs: "auto" (whatever there is), "all", "none", or indices and UUIDs: "0,1".

        `foreign_pids` says that the driver counts processes otherwise than we do, as in a rented
        pod; None finds out. Raises GpuError for a choice that is malformed or cannot be had.
        """
        if foreign_pids is None:
            foreign_pids = str(Path("/proc/self/ns/pid").readlink()) != _HOST_PIDS
        return cls(*open_cards(choice), foreign_pids)

    def __enter__(self) -> Gpus:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of NVML; a second time does nothing."""
        nvml, self._nvml, self._cards = self._nvml, None, ()
        if nvml is not None:
            with suppress(NvmlError):
                nvml.close()

    @property
    def lost(self) -> tuple[str, ...]:
        """What stopped answering, and why: "GPU 1 (UUID): GPU is lost"; each once."""
        return tuple(self._lost)

    def processes(self) -> tuple[GpuProcess, ...]:
        """Return everyone on the selected GPUs now, computing or drawing."""
        return tuple(
            GpuProcess(card.info.index, found.pid, self._name(found.pid), found.memory)
            for card in self._cards
            for found in self._ask(card, Card.everyone) or ()
        )

    def used(self) -> tuple[Bytes | None, ...]:
        """Return the memory in use now on each selected GPU, None where it is not told."""
        return tuple(self._ask(card, Card.used) for card in self._cards)

    def mark_baseline(self) -> tuple[Bytes | None, ...]:
        """Return what is in use before the start; it stands in for what is not told later."""
        baselines = self.used()
        for card, baseline in zip(self._cards, baselines, strict=True):
            card.baseline = baseline
        return baselines

    def energy(self) -> Joules | None:
        """Return what the GPUs spent since the driver was loaded, None where one does not count.

        The energy of a run is the difference of two calls.
        """
        return _sum([self._ask(card, Card.energy) for card in self._cards])

    def read(self, pids: Collection[int]) -> GpuReading:
        """Take one beat of the task that has these processes."""
        share = partial(self._share, pids=frozenset(pids))
        shares = [found for card in self._cards if (found := self._ask(card, share))]
        use = _sum([share.use for share in shares])
        return GpuReading(
            use=None if use is None else round(use / len(shares), 4),
            ram=_sum([share.ram for share in shares]),
        )

    def _share(self, card: Card, pids: frozenset[int]) -> GpuReading | None:
        """Return what the task has of one GPU, None where it is not on it."""
        listed = card.compute()
        held = [process.memory for process in listed or () if process.pid in pids]
        told = _sum(held)
        if told is not None:
            self.source = self.source or "process"
            return GpuReading(card.use(), told)
        growth = card.growth()
        incomparable = listed is None or self._foreign_pids
        if held or (incomparable and growth is not None and growth > _NOISE):
            self.source = "device"
            return GpuReading(card.use(), growth)
        return None

    def _ask(self, card: Card, question: Callable[[Card], _Answer]) -> _Answer | None:
        """Put a question to a GPU, unless it failed before."""
        if card.failed:
            return None
        try:
            return question(card)
        except NvmlError as error:
            card.failed = True
            self._lost.append(f"{card}: {error}")
            return None

    def _name(self, pid: int) -> str | None:
        """Return the name of a process, unless that pid is another process here."""
        if self._foreign_pids:
            return None
        try:
            return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
        except OSError:
            return None


def _sum(values: Sequence[_Number | None]) -> _Number | None:
    """Add up, None where nothing is known or a part is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if values and len(known) == len(values) else None
