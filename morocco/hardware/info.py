"""The machine and its GPUs as plain data, as they stand in the run record."""

from __future__ import annotations

from dataclasses import dataclass

from morocco.util.units import Bytes, Seconds

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
class GpuSettings:
    """How one GPU is set up, and its state now; None for what it does not tell."""

    info: GpuInfo
    persistence: bool | None
    """Whether the driver stays loaded while nobody uses the GPU."""
    memory_errors: int | None
    """That could not be corrected since the driver was loaded."""
    usual_power_limit: Watts | None
    """As the maker has set it."""
    slowed_by: tuple[str, ...] | None
    """What holds the clocks down now: "heat", "the power supply", "its hardware"."""
    temperature: int | None
    """Degrees Celsius."""


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


@dataclass(frozen=True)
class Pressure:
    """The share of a time in which some process of the machine had to wait; None if not counted."""

    cpu: float | None
    memory: float | None
    io: float | None


@dataclass(frozen=True)
class Throttling:
    """How often the CPU quota of a control group stopped its processes."""

    periods: int
    """In which the group had work to do."""
    throttled: int
    """In which its quota ran out."""
    time: Seconds
    """Stopped, summed over cores."""


_DOUBTFUL_CORES = 0.25
_DOUBTFUL_SHARE = 0.05
_DOUBTFUL_TIME: Seconds = 0.5
"""In short runs, less than this may be rounding."""
_DOUBTFUL_SWAP: Bytes = 100 * 2**20


@dataclass(frozen=True)
class Load:
    """What the machine did beside the target; None for what is not known."""

    cores: int | None = None
    """That the target may use; the next four are of these cores."""
    seconds: Seconds | None = None
    """How long they were watched."""
    foreign_cores: float | None = None
    """Kept busy by processes of others: the mean."""
    foreign_highest: float | None = None
    """Over three seconds; less in the first ones."""
    stolen_cores: float | None = None
    """Kept busy by other virtual machines: the mean."""
    swapped_in: Bytes | None = None
    """Read back from swap, by the whole machine."""
    swapped_out: Bytes | None = None
    pressure: Pressure | None = None
    throttling: Throttling | None = None
    """Of the target's control group; None without a quota."""
    other_runs: tuple[str, ...] = ()
    """Other morocco runs on the machine: what they measured, and their process."""

    @property
    def has_foreign_load(self) -> bool:
        """Whether others kept so many cores busy that the target may have been slowed down."""
        return self._matters(self.foreign_cores)

    @property
    def has_steal(self) -> bool:
        """Whether other virtual machines took as much."""
        return self._matters(self.stolen_cores)

    @property
    def has_swapping(self) -> bool:
        """Whether so much came back from swap that somebody waited for it."""
        return self.swapped_in is not None and self.swapped_in >= _DOUBTFUL_SWAP

    @property
    def has_throttling(self) -> bool:
        """Whether the quota stopped the target often."""
        counts = self.throttling
        return counts is not None and counts.throttled > _DOUBTFUL_SHARE * counts.periods

    def _matters(self, busy: float | None) -> bool:
        if busy is None or self.cores is None or self.seconds is None:
            return False
        limit = max(_DOUBTFUL_CORES, _DOUBTFUL_SHARE * self.cores)
        return busy >= limit and busy * self.seconds >= _DOUBTFUL_TIME
