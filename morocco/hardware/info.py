"""What machine this is and which GPUs it has: plain data, as it goes into the run record."""

from __future__ import annotations

from dataclasses import dataclass

from morocco.util.units import Bytes

Joules = float
Watts = float


@dataclass(frozen=True)
class HostInfo:
    """The machine, as it goes into the run record."""

    cpu: str
    cores: int
    """As the scheduler sees them."""
    ram: Bytes
    kernel: str
    name: str = ""
    """What the machine calls itself, to tell equal ones apart."""


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
