"""The GPUs of this machine, one by one, and the choice among them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

from morocco.errors import GpuError
from morocco.hardware.info import GpuInfo, GpuProcess, Joules
from morocco.hardware.nvml import Nvml, NvmlError, ProcessMemory
from morocco.util.units import Bytes

_ENTRY = re.compile(r"[0-9]+|(GPU|MIG)-[0-9A-Za-z./-]+")


class GpuDevice:
    """One GPU during a session; every method raises NvmlError when the GPU is lost."""

    def __init__(self, nvml: Nvml, index: int) -> None:
        self._nvml = nvml
        self._handle = nvml.call("nvmlDeviceGetHandleByIndex", index)
        self.info = self._describe(index)
        self.baseline: Bytes | None = None
        self.failed = False

    def __str__(self) -> str:
        return f"GPU {self.info.index} ({self.info.uuid})"

    def used(self) -> Bytes | None:
        """Return the memory in use now, by anyone."""
        memory = self._nvml.ask("nvmlDeviceGetMemoryInfo", self._handle)
        return None if memory is None else int(memory.used)

    def growth(self) -> Bytes | None:
        """Return the memory in use beyond the baseline, None where either is unknown."""
        used = self.used()
        return None if used is None or self.baseline is None else max(0, used - self.baseline)

    def use(self) -> float | None:
        """Return the share of time with work on the GPU, 0 to 1, as the driver averages it."""
        if self.info.mig:  # NVML counts it for whole GPUs only
            return None
        rates = self._nvml.ask("nvmlDeviceGetUtilizationRates", self._handle)
        return None if rates is None else rates.gpu / 100

    def energy(self) -> Joules | None:
        """Return the energy spent since the driver was loaded; None before Volta."""
        return _thousandth(self._nvml.ask("nvmlDeviceGetTotalEnergyConsumption", self._handle))

    def compute(self) -> list[ProcessMemory] | None:
        """Return the processes that compute here now, None where they are not told."""
        return self._nvml.processes(self._handle, "Compute")

    def everyone(self) -> list[ProcessMemory]:
        """Return the processes that compute or draw here now, each once."""
        listed = (self._nvml.processes(self._handle, "Graphics") or []) + (self.compute() or [])
        return list({process.pid: process for process in listed}.values())

    def _describe(self, index: int) -> GpuInfo:
        ask, call, handle = self._nvml.ask, self._nvml.call, self._handle
        memory, mig = ask("nvmlDeviceGetMemoryInfo", handle), ask("nvmlDeviceGetMigMode", handle)
        return GpuInfo(
            index=index,
            uuid=call("nvmlDeviceGetUUID", handle),
            name=call("nvmlDeviceGetName", handle),
            memory=None if memory is None else memory.total,
            driver=call("nvmlSystemGetDriverVersion"),
            cuda=_cuda_version(ask("nvmlSystemGetCudaDriverVersion")),
            mig=None if mig is None else mig[0] == 1,
            power_limit=_thousandth(ask("nvmlDeviceGetEnforcedPowerLimit", handle)),
        )


def open_devices(choice: str) -> tuple[Nvml | None, list[GpuDevice], list[str]]:
    """Return the library, the chosen GPUs and, for "auto", messages of what failed.

    Raises GpuError for a choice that is malformed or, "auto" apart, cannot be had.
    """
    entries = _parse(choice)
    if choice == "none":
        return None, [], []
    try:
        nvml = Nvml()
    except NvmlError as error:
        if choice != "auto":
            raise _refusal(choice, f"NVML cannot be used here: {error}") from None
        return None, [], [] if error.no_driver else [f"NVML: {error}"]
    cards, failures = _open_all(nvml)
    if choice == "auto":
        return nvml, cards, failures
    try:
        return nvml, _pick(choice, entries, cards, failures), []
    except GpuError:
        nvml.close()
        raise


def _parse(choice: str) -> tuple[str, ...]:
    """Return the indices and UUIDs of a choice, none for a word; raises GpuError."""
    if choice in ("auto", "all", "none"):
        return ()
    entries = tuple(entry.strip() for entry in choice.split(","))
    for entry in entries:
        if not _ENTRY.fullmatch(entry):
            raise _refusal(choice, f"{entry!r} is neither an index nor a UUID of a GPU")
    return tuple(str(int(entry)) if entry.isdigit() else entry for entry in entries)


def _open_all(nvml: Nvml) -> tuple[list[GpuDevice], list[str]]:
    """Return the GPUs that answer, and messages of those that do not."""
    try:
        count = nvml.call("nvmlDeviceGetCount")
    except NvmlError as error:
        return [], [f"NVML: {error}"]
    opened = [_open(nvml, index) for index in range(count)]
    cards = [card for card in opened if isinstance(card, GpuDevice)]
    return cards, [failure for failure in opened if isinstance(failure, str)]


def _open(nvml: Nvml, index: int) -> GpuDevice | str:
    try:
        return GpuDevice(nvml, index)
    except NvmlError as error:
        return f"GPU {index}: {error}"


def _pick(
    choice: str, entries: tuple[str, ...], cards: list[GpuDevice], failures: list[str]
) -> list[GpuDevice]:
    """Return the GPUs that the entries name, all for no entries; raises GpuError."""
    found = {name: card for card in cards for name in (str(card.info.index), card.info.uuid)}
    satisfied = set(entries) <= set(found) if entries else cards and not failures
    if not satisfied:
        seen = ", ".join([*map(str, cards), *failures]) or "no GPU"
        raise _refusal(choice, f"NVML sees {seen}")
    return list(dict.fromkeys(found[entry] for entry in entries or found))


def _refusal(choice: str, reason: str) -> GpuError:
    return GpuError(
        f"--gpus {choice}: {reason}. Give indices or UUIDs as `nvidia-smi -L` lists them, "
        "`auto` for whatever there is, or `none` to measure without GPUs"
    )


def _thousandth(value: int | None) -> float | None:
    return None if value is None else value / 1000


def _cuda_version(version: int | None) -> str | None:
    return None if version is None else f"{version // 1000}.{version % 1000 // 10}"


Source = Literal["process", "device"]
_Number = TypeVar("_Number", int, float)
_Answer = TypeVar("_Answer")

_HOST_PIDS = "pid:[4026531836]"
"""What the kernel calls its first PID namespace."""
_NOISE: Bytes = 2**20
"""What an idle GPU holds moves by less than this."""


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
        self, nvml: Nvml | None, cards: Sequence[GpuDevice], lost: Sequence[str], foreign_pids: bool
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
        return cls(*open_devices(choice), foreign_pids)

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
            for found in self._ask(card, GpuDevice.everyone) or ()
        )

    def used(self) -> tuple[Bytes | None, ...]:
        """Return the memory in use now on each selected GPU, None where it is not told."""
        return tuple(self._ask(card, GpuDevice.used) for card in self._cards)

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
        return _sum([self._ask(card, GpuDevice.energy) for card in self._cards])

    def read(self, pids: Collection[int]) -> GpuReading:
        """Take one beat of the task that has these processes."""
        share = partial(self._share, pids=frozenset(pids))
        shares = [found for card in self._cards if (found := self._ask(card, share))]
        use = _sum([share.use for share in shares])
        return GpuReading(
            use=None if use is None else round(use / len(shares), 4),
            ram=_sum([share.ram for share in shares]),
        )

    def _share(self, card: GpuDevice, pids: frozenset[int]) -> GpuReading | None:
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

    def _ask(self, card: GpuDevice, question: Callable[[GpuDevice], _Answer]) -> _Answer | None:
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
