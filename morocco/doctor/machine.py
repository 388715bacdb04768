"""The machine beside its GPUs: what else is at work on it, and how it is set up."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from morocco.doctor.finding import Finding, State
from morocco.hardware.info import Load
from morocco.hardware.load import BusyProcess, BusyProcesses, LoadMeter
from morocco.hardware.settings import Governors, Memory
from morocco.util.units import Bytes, Seconds, format_bytes, plural

_MANY_CORES = 0.25
"""Share of the cores at work for others beyond which a measurement is worth nothing."""
_LITTLE_MEMORY = 0.1
"""Share of the memory that should be left."""
_SWAPPING: Bytes = 2**20
_SLOW_CLOCKS = ("acpi_pm", "hpet", "jiffies", "pit", "refined-jiffies")
_ADJUSTING = ("amd-pstate", "amd-pstate-epp", "amd_pstate", "intel_pstate")
"""Drivers whose `powersave` means that the clock follows the load."""
_LOGS: tuple[Bytes, Bytes] = 100 * 2**20, 2**30
"""With less than the first a disk is bad, with less than the second doubtful."""
_IMAGES: tuple[Bytes, Bytes] = 2**30, 10 * 2**30
_MOST_NAMED = 3


@dataclass(frozen=True)
class Watched:
    """What was at work on the machine for some time."""

    load: Load
    busiest: Sequence[BusyProcess] = ()


class Watch:
    """Watches the machine while the context lasts; this process does not count."""

    def __enter__(self) -> Watch:
        self._load, self._processes = LoadMeter(), BusyProcesses()
        self._load.pid = os.getpid()
        self._load.prepare()
        for _ in range(2):  # the meter leaves out the first
            self._load.read(time.monotonic(), 0.0)
        return self

    def __exit__(self, *_: object) -> None:
        self._load.read(time.monotonic(), 0.0)
        self.watched = Watched(self._load.finish(), self._processes.list_busiest(_MOST_NAMED))


def watch_idle(seconds: Seconds) -> Watched:
    """Return what is at work while this process does nothing."""
    with Watch() as watch:
        time.sleep(seconds)
    return watch.watched


def judge_other_runs(runs: Collection[str]) -> Finding:
    """Judge the other morocco runs on the machine."""
    if not runs:
        return Finding("other-runs", "good", "no other morocco run is at work here")
    found = f"morocco measures {'; '.join(runs)}"
    return Finding("other-runs", "bad", found, "wait until it is done: runs slow each other down")


def judge_load(watched: Watched) -> Finding:
    """Judge what other processes do."""
    load = watched.load
    if load.foreign_cores is None or not load.cores:
        return Finding("load", "unknown", "the kernel does not count CPU time here")
    found = f"others keep {load.foreign_cores:.1f} of {plural(load.cores, 'core')} busy"
    if not load.has_foreign_load:
        return Finding("load", "good", found)
    busiest = ", ".join(f"{it.name} (pid {it.pid}) {it.cores:.1f}" for it in watched.busiest)
    state: State = "bad" if load.foreign_cores > _MANY_CORES * load.cores else "doubtful"
    return Finding("load", state, found + (f": {busiest}" if busiest else ""), "stop them")


def judge_steal(load: Load) -> Finding:
    """Judge what the hypervisor takes away while all cores are wanted."""
    if load.stolen_cores is None or not load.cores:
        return Finding("steal", "unknown", "the kernel does not count CPU time here")
    share = load.stolen_cores / load.cores
    found = f"the hypervisor gives {share:.1%} of the cores to other machines"
    if not load.has_steal:
        return Finding("steal", "good", found)
    state: State = "bad" if share > _MANY_CORES else "doubtful"
    return Finding("steal", state, found, "rent a machine whose cores are not shared")


def judge_governors(governors: Governors | None) -> Finding:
    """Judge who chooses the clocks of the CPU."""
    if governors is None:
        found = "the machine does not tell, as is usual in a virtual one"
        return Finding("governor", "unknown", found)
    names = sorted(governors.by_name)
    found = ", ".join(f"{name} on {plural(governors.by_name[name], 'core')}" for name in names)
    if names == ["performance"]:
        return Finding("governor", "good", found)
    lowest = "powersave" in names and not governors.driver.startswith(_ADJUSTING)
    meaning = "the lowest clock" if lowest else "the clock follows the load"
    todo = "sudo cpupower frequency-set -g performance"
    return Finding("governor", "bad" if lowest else "doubtful", f"{found}: {meaning}", todo)


def judge_quota(quota: float | None, cores: int, machine: int, load: Load) -> Finding:
    """Judge how much CPU this process may use; `load` is that of a time with much to do."""
    if load.throttling is not None and load.has_throttling:
        counts = load.throttling
        found = f"the CPU quota ran out in {counts.throttled} of {counts.periods} periods"
        return Finding("quota", "bad", found, "raise it, or measure outside this container")
    if quota is not None and quota < cores:
        found = f"a CPU quota of {quota:.3g} for {plural(cores, 'core')}"
        return Finding("quota", "doubtful", found, "raise it, or measure outside this container")
    if cores < machine:
        return Finding("quota", "good", f"no CPU quota; {cores} of {machine} cores may be used")
    return Finding("quota", "good", f"no CPU quota on {plural(cores, 'core')}")


def judge_memory(memory: Memory | None, load: Load) -> Finding:
    """Judge how much memory is left, and whether the machine swaps."""
    if memory is None:
        return Finding("memory", "unknown", "the kernel does not tell how much is free")
    free = f"{format_bytes(memory.available)} of {format_bytes(memory.total)} are free"
    if load.swapped_in and load.swapped_in >= _SWAPPING:
        found = f"{free}, {format_bytes(load.swapped_in)} came back from swap just now"
        state: State = "bad" if load.has_swapping else "doubtful"
        return Finding("memory", state, found, "end what uses the memory")
    found = f"{free}, {format_bytes(memory.swapped)} are swapped out" if memory.swapped else free
    if memory.available < _LITTLE_MEMORY * memory.total:
        return Finding("memory", "doubtful", found, "end what uses the memory")
    return Finding("memory", "good", found)


def judge_clock(source: str | None) -> Finding:
    """Judge where the kernel reads the time from."""
    if source is None:
        return Finding("clock", "unknown", "the kernel does not tell its clock source")
    if source not in _SLOW_CLOCKS:
        return Finding("clock", "good", f"the kernel reads the time from {source}")
    found = f"the kernel reads the time from {source}, which is slow"
    return Finding(
        "clock", "doubtful", found, "boot with clocksource=tsc, or rent another kind of machine"
    )


def judge_disk(name: str, folder: Path, *, images: bool = False) -> Finding:
    """Judge the disk of a folder, which need not exist yet."""
    place = next((path for path in (folder, *folder.absolute().parents) if path.exists()), None)
    try:
        free = shutil.disk_usage(place or folder).free
    except OSError as error:
        return Finding(name, "unknown", f"{folder} cannot be looked at: {error.strerror}")
    what = "images are" if images else "logs go"
    found = f"{format_bytes(free)} are free where the {what}: {folder}"
    if not images and not os.access(place or folder, os.W_OK | os.X_OK):
        return Finding(name, "bad", f"{folder} cannot be written", "give another folder: --logs")
    bad, doubtful = _IMAGES if images else _LOGS
    if free >= doubtful:
        return Finding(name, "good", found)
    todo = "remove images: docker system df" if images else "free some, or give another folder"
    return Finding(name, "bad" if free < bad else "doubtful", found, todo)
