"""The GPUs of this machine, one by one, and the choice among them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from morocco.errors import GpuError
from morocco.nvml import Nvml, NvmlError, ProcessMemory
from morocco.units import Bytes

Joules = float
Watts = float

_ENTRY = re.compile(r"[0-9]+|(GPU|MIG)-[0-9A-Za-z./-]+")


@dataclass(frozen=True)
class GpuInfo:
    """One GPU, as it goes into the run record."""

    index: int
    """As NVML counts; may change with a restart."""
    uuid: str
    """Never changes."""
    name: str
    """The product: "NVIDIA A100-SXM4-80GB"."""
    memory: Bytes | None
    """In all; None where the GPU shares the host's memory."""
    driver: str
    """The version: "550.54.15"."""
    cuda: str | None
    """The newest version that the driver supports: "12.4"."""
    mig: bool | None
    """Whether the GPU is split into instances; None where it cannot be."""
    power_limit: Watts | None
    """The lowest of all limits that are set."""


class Card:
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


def open_cards(choice: str) -> tuple[Nvml | None, list[Card], list[str]]:
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


def _open_all(nvml: Nvml) -> tuple[list[Card], list[str]]:
    """Return the GPUs that answer, and messages of those that do not."""
    try:
        count = nvml.call("nvmlDeviceGetCount")
    except NvmlError as error:
        return [], [f"NVML: {error}"]
    opened = [_open(nvml, index) for index in range(count)]
    cards = [card for card in opened if isinstance(card, Card)]
    return cards, [failure for failure in opened if isinstance(failure, str)]


def _open(nvml: Nvml, index: int) -> Card | str:
    try:
        return Card(nvml, index)
    except NvmlError as error:
        return f"GPU {index}: {error}"


def _pick(
    choice: str, entries: tuple[str, ...], cards: list[Card], failures: list[str]
) -> list[Card]:
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
