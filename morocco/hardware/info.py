"""The machine and its GPUs as plain data, as they stand in the run record."""

from __future__ import annotations

from dataclasses import dataclass

from morocco.util.units import Bytes

Joules = float
Watts = float


@dataclass(frozen=True)
class HostInfo:
    """The machine."""

    cpu: str
    cores: int
    """Logical cores, as the scheduler counts them."""
    ram: Bytes
    kernel: str
    name: str = ""
    """The host name, to tell equal machines apart."""


@dataclass(frozen=True)
class GpuInfo:
    """One GPU."""

    index: int
    """As NVML numbers GPUs; may change with a restart."""
    uuid: str
    """Never changes."""
    name: str
    """The product: "NVIDIA A100-SXM4-80GB"."""
    memory: Bytes | None
    """In total; None if the GPU shares the memory of the host."""
    driver: str
    """The version: "550.54.15"."""
    cuda: str | None
    """The newest version that the driver supports: "12.4"."""
    mig: bool | None
    """Whether the GPU is split into instances; None if it cannot be."""
    power_limit: Watts | None
    """The lowest of all limits in force."""


@dataclass(frozen=True)
class GpuProcess:
    """One process on one GPU, whoever owns it."""

    gpu: int
    """The index of the GPU."""
    pid: int
    """As the driver numbers processes."""
    name: str | None
    """None if the process is not visible from here."""
    memory: Bytes | None
    """None if the driver does not report it."""
