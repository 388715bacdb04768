"""The GPUs: how they are set up, who else uses them, and what slows them down."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from morocco.doctor.finding import Finding, State
from morocco.hardware.gpu import Gpus
from morocco.hardware.info import GpuInfo, GpuProcess, GpuSettings
from morocco.hardware.settings import count_nvidia_cards
from morocco.util.units import format_bytes, plural

_LOWERED = 0.95
"""Share of the usual power limit below which somebody has lowered it."""


def look_at_gpus(gpus: Gpus, choice: str) -> Iterator[Finding]:
    """Look at everything about the GPUs that were chosen."""
    settings = gpus.settings()
    if not settings and not gpus.lost:
        yield judge_absence(choice, count_nvidia_cards())
        return
    yield judge_choice(gpus.infos, gpus.lost)
    if settings:
        yield judge_users(gpus.processes())
        yield from (trait.judge(settings) for trait in TRAITS)


def judge_absence(choice: str, cards: int) -> Finding:
    """Judge that there is no GPU; `cards` are those that are plugged in all the same."""
    if choice == "none":
        return Finding("gpus", "good", "none is used: --gpus none")
    if cards:
        found = f"{plural(cards, 'NVIDIA GPU')} plugged in, but the driver does not show any"
        return Finding("gpus", "bad", found, "see nvidia-smi; install the driver, or restart")
    return Finding("gpus", "good", "no NVIDIA GPU here, so the CPU is measured")


def judge_choice(infos: Sequence[GpuInfo], lost: Sequence[str]) -> Finding:
    """Judge which GPUs there are."""
    if lost:
        todo = "see nvidia-smi and `sudo dmesg`; restart, or choose others with --gpus"
        return Finding("gpus", "bad", "; ".join(lost), todo)
    models = ", ".join(dict.fromkeys(info.name for info in infos))
    driver, cuda = infos[0].driver, infos[0].cuda or "unknown"
    found = f"{plural(len(infos), 'GPU')}: {models}, driver {driver}, CUDA {cuda}"
    return Finding("gpus", "good", found)


def judge_users(processes: Sequence[GpuProcess]) -> Finding:
    """Judge who uses the GPUs now."""
    if not processes:
        return Finding("gpu-users", "good", "nobody uses the GPUs")
    users = "; ".join(map(_describe_user, processes))
    return Finding("gpu-users", "doubtful", users, "end it, or choose other GPUs with --gpus")


def _describe_user(process: GpuProcess) -> str:
    name = process.name or "a hidden process"
    memory = "" if process.memory is None else f", {format_bytes(process.memory)}"
    return f"GPU {process.gpu} is used by {name} (pid {process.pid}{memory})"


@dataclass(frozen=True)
class _Trait:
    """One thing about each GPU: what is wrong with it, and how that is judged."""

    name: str
    is_told: Callable[[GpuSettings], bool]
    describe: Callable[[GpuSettings], str]
    """Return what is wrong with a GPU, empty if nothing is."""
    good: str
    state: State
    todo: str

    def judge(self, gpus: Sequence[GpuSettings]) -> Finding:
        """Judge all GPUs at once."""
        wrong = [f"GPU {gpu.info.index} {text}" for gpu in gpus if (text := self.describe(gpu))]
        if wrong:
            return Finding(self.name, self.state, "; ".join(wrong), self.todo)
        if not any(map(self.is_told, gpus)):
            return Finding(self.name, "unknown", "the driver does not tell")
        return Finding(self.name, "good", self.good)


def _describe_slowdown(gpu: GpuSettings) -> str:
    if not gpu.slowed_by:
        return ""
    heat = "" if gpu.temperature is None else f", at {gpu.temperature} °C"
    return f"is slowed down by {' and '.join(gpu.slowed_by)}{heat}"


def _describe_power(gpu: GpuSettings) -> str:
    limit, usual = gpu.info.power_limit, gpu.usual_power_limit
    if limit is None or usual is None or limit >= _LOWERED * usual:
        return ""
    return f"may use {limit:.0f} W, usual are {usual:.0f} W"


TRAITS = (
    _Trait(
        "persistence",
        lambda gpu: gpu.persistence is not None,
        lambda gpu: "loads its driver anew for each user" if gpu.persistence is False else "",
        good="the driver stays loaded",
        state="doubtful",
        todo="sudo nvidia-smi -pm 1: a cold start takes seconds longer",
    ),
    _Trait(
        "mig",
        lambda _: True,  # most kinds of GPU cannot be split
        lambda gpu: "is split into instances, so its use is not counted" if gpu.info.mig else "",
        good="no GPU is split into instances",
        state="doubtful",
        todo="sudo nvidia-smi -mig 0, or compare only with runs on the same kind of instance",
    ),
    _Trait(
        "ecc",
        lambda gpu: gpu.memory_errors is not None,
        lambda gpu: (
            f"had {plural(gpu.memory_errors, 'memory error')} that could not be corrected"
            if gpu.memory_errors
            else ""
        ),
        good="no memory error that could not be corrected",
        state="bad",
        todo="restart the machine; if errors come again, rent another one",
    ),
    _Trait(
        "gpu-clocks",
        lambda gpu: gpu.slowed_by is not None,
        _describe_slowdown,
        good="nothing slows the GPUs down",
        state="bad",
        todo="improve the cooling or the power supply, or rent another machine",
    ),
    _Trait(
        "gpu-power",
        lambda gpu: gpu.usual_power_limit is not None,
        _describe_power,
        good="the power limit is the usual one",
        state="doubtful",
        todo="sudo nvidia-smi -pl WATTS",
    ),
)
