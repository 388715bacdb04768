"""How this machine is set up: clocks of the CPU, clock of the kernel, memory, cards on the bus."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from morocco.util.units import Bytes

_MEMORY = re.compile(r"^(\w+):\s+(\d+) kB$", re.MULTILINE)
_NVIDIA = "0x10de"
_DISPLAY = "0x03"
"""The class of graphics cards and of cards that only compute."""


@dataclass(frozen=True)
class Governors:
    """Who chooses the clocks of some cores."""

    by_name: Mapping[str, int]
    """The number of cores of each governor: `performance`, `powersave`."""
    driver: str
    """`intel_pstate`, `acpi-cpufreq`; empty if it is not told."""


def read_governors(cores: Collection[int], sys: Path = Path("/sys")) -> Governors | None:
    """Return the governors of cores; None if the kernel does not choose their clocks."""
    folders = [sys / f"devices/system/cpu/cpu{core}/cpufreq" for core in cores]
    names = [name for folder in folders if (name := _read(folder / "scaling_governor"))]
    drivers = (driver for folder in folders if (driver := _read(folder / "scaling_driver")))
    return Governors(Counter(names), next(drivers, "")) if names else None


def read_clock_source(sys: Path = Path("/sys")) -> str | None:
    """Return where the kernel reads the time from: `tsc`, `hpet`; None if it does not tell."""
    file = sys / "devices/system/clocksource/clocksource0/current_clocksource"
    return _read(file) or None


@dataclass(frozen=True)
class Memory:
    """The memory of the machine."""

    total: Bytes
    available: Bytes
    """That programs can have without swapping."""
    swapped: Bytes
    """Swap in use."""


def read_memory(proc: Path = Path("/proc")) -> Memory | None:
    """Return the memory of the machine; None if the kernel does not tell."""
    sizes = {name: int(size) * 1024 for name, size in _MEMORY.findall(_read(proc / "meminfo"))}
    try:
        swapped = sizes.get("SwapTotal", 0) - sizes.get("SwapFree", 0)
        return Memory(sizes["MemTotal"], sizes["MemAvailable"], swapped)
    except KeyError:
        return None


def count_nvidia_cards(sys: Path = Path("/sys")) -> int:
    """Return how many GPUs of NVIDIA are plugged in, with or without a driver."""
    return sum(
        _read(card / "vendor") == _NVIDIA and _read(card / "class").startswith(_DISPLAY)
        for card in (sys / "bus/pci/devices").glob("*")
    )


def _read(file: Path) -> str:
    """Return the content of a small file, empty if it cannot be read."""
    try:
        return file.read_text(errors="replace").strip()
    except OSError:
        return ""
