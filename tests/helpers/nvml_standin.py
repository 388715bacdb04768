"""Builds and controls the stand-in for NVML (`nvml/nvml.c`), which shows any GPUs to a program.

A program started with `environment(...)` loads the stand-in instead of the driver's library and
sees the GPUs of the last `write_state`, even one made while it runs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

Driver = Literal["new", "old", "wide"]
"""`new`: current; `old`: before R450; `wide`: 535.43 to 535.86, with wider process lists."""

SOURCE = Path(__file__).parent / "nvml" / "nvml.c"
FLAGS: dict[Driver, list[str]] = {"new": [], "old": ["-DOLD_DRIVER"], "wide": ["-DWIDE_ENTRIES"]}

NOT_SUPPORTED, NO_PERMISSION, DRIVER_NOT_LOADED, FUNCTION_NOT_FOUND = 3, 4, 9, 13
GPU_IS_LOST, VERSION_MISMATCH, UNKNOWN = 15, 18, 999


@dataclass(frozen=True)
class Process:
    """A process on a GPU."""

    pid: int | str
    """A PID, or "match:TEXT": every process with TEXT in its command line at each call.

    "top:TEXT" leaves out children of such processes: a fork has the command line of its parent.
    """
    memory: int | None
    """Bytes; None if the driver reports none."""
    kind: Literal["compute", "graphics"] = "compute"


@dataclass(frozen=True)
class Gpu:
    """One GPU, whose index is its place in the list; None means "not supported"."""

    uuid: str = "GPU-0"
    used: int | None = 0
    """Bytes."""
    percent: int | None = 0
    processes: Sequence[Process] = ()
    name: str = "NVIDIA A100-SXM4-80GB"
    total: int = 80 * 2**30
    """Bytes."""
    energy: int | None = 0
    """Millijoules."""
    power_limit: int | None = 400_000
    """Milliwatts."""
    mig: bool | None = False
    sm: int | None = 1410
    """Megahertz, as the other clocks."""
    highest_sm: int | None = 1410
    memory_clock: int = 1593
    celsius: int | None = 60
    draw: int | None = 250_000
    """Milliwatts."""
    reasons: int | None = 0
    """Why the clocks are not higher, as a bit mask."""
    slowed_by_heat: int | None = 0
    """Nanoseconds so far."""
    slowed_by_power: int = 0
    persistence: bool | None = True
    memory_errors: int | None = 0
    usual_power_limit: int | None = 400_000
    """Milliwatts."""
    errors: Mapping[str, int] = field(default_factory=dict)
    """Return codes by function; wildcards such as "*" work."""
    lost: bool = False
    """Fallen off the bus."""


def build(folder: Path, driver: Driver = "new") -> Path:
    """Return a folder below `folder` with libnvidia-ml.so.1, which the first call compiles.

    Without a C compiler, skip the test, or fail in CI.
    """
    library = folder / driver / "libnvidia-ml.so.1"
    if library.exists():
        return library.parent
    compiler = shutil.which("cc")
    if compiler is None:
        stop = pytest.fail if os.environ.get("CI") else pytest.skip
        stop("no C compiler (cc) to build the stand-in for NVML")
    library.parent.mkdir(parents=True, exist_ok=True)
    command = [compiler, "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"]
    subprocess.run([*command, *FLAGS[driver], str(SOURCE), "-o", str(library)], check=True)
    return library.parent


def environment(library: Path, state: Path) -> dict[str, str]:
    """Return the environment in which a program sees the GPUs of `state`."""
    return {**os.environ, "LD_LIBRARY_PATH": str(library), "FAKE_NVML_STATE": str(state)}


def write_state(
    path: Path,
    gpus: Sequence[Gpu] = (),
    *,
    errors: Mapping[str, int] | None = None,
    delays: Mapping[str, int] | None = None,
    driver: str = "550.54.15",
    cuda: int = 12040,
) -> None:
    """Replace the GPUs for every program that reads `path`, effective immediately.

    `errors` are return codes and `delays` microseconds, by function, for all GPUs.
    """
    lines = [f"driver {driver}", f"cuda {cuda}", *_faults("error", errors or {})]
    lines += _faults("delay", delays or {})
    for gpu in gpus:
        lines += _gpu(gpu)
    draft = path.with_suffix(".draft")
    draft.write_text("\n".join(lines) + "\n")
    draft.replace(path)


def _gpu(gpu: Gpu) -> list[str]:
    clocks = (gpu.sm, gpu.highest_sm, gpu.memory_clock, gpu.celsius, gpu.draw)
    slowed = (gpu.reasons, gpu.slowed_by_heat, gpu.slowed_by_power)
    settings = (gpu.persistence, gpu.memory_errors, gpu.usual_power_limit)
    numbers = [gpu.total, gpu.used, gpu.percent, gpu.power_limit, gpu.energy, gpu.mig]
    untold = {
        "nvmlDeviceGetMemoryInfo": gpu.used,
        "nvmlDeviceGetUtilizationRates": gpu.percent,
        "nvmlDeviceGetEnforcedPowerLimit": gpu.power_limit,
        "nvmlDeviceGetTotalEnergyConsumption": gpu.energy,
        "nvmlDeviceGetMigMode": gpu.mig,
        "nvmlDeviceGetClockInfo": gpu.sm,
        "nvmlDeviceGetMaxClockInfo": gpu.highest_sm,
        "nvmlDeviceGetTemperature": gpu.celsius,
        "nvmlDeviceGetPowerUsage": gpu.draw,
        "nvmlDeviceGetCurrentClocks*Reasons": gpu.reasons,
        "nvmlDeviceGetViolationStatus": gpu.slowed_by_heat,
        "nvmlDeviceGetPersistenceMode": gpu.persistence,
        "nvmlDeviceGetTotalEccErrors": gpu.memory_errors,
        "nvmlDeviceGetPowerManagementDefaultLimit": gpu.usual_power_limit,
    }
    return [
        " ".join(["gpu", gpu.uuid, *(str(int(number or 0)) for number in numbers), gpu.name]),
        " ".join(["clocks", *(str(number or 0) for number in (*clocks, *slowed))]),
        " ".join(["settings", *(str(int(number or 0)) for number in settings)]),
        *(_process(process) for process in gpu.processes),
        *_faults("error", {call: NOT_SUPPORTED for call, told in untold.items() if told is None}),
        *_faults("error", gpu.errors),
        *_faults("error", {"*": GPU_IS_LOST} if gpu.lost else {}),
    ]


def _process(process: Process) -> str:
    memory = "unknown" if process.memory is None else process.memory
    return f"process {process.kind} {process.pid} {memory}"


def _faults(what: str, by_function: Mapping[str, int]) -> list[str]:
    return [f"{what} {function} {value}" for function, value in by_function.items()]
