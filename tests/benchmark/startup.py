"""How long people wait for the quick commands."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from figures import Figure
from morocco.logs.log import LogPath
from morocco.logs.samples import Sample
from paths import PUBLISHED
from sample_logs import write_samples

_REPEATS = 21


def measure_startup(folder: Path) -> Iterator[Figure]:
    """Yield wall times of the commands, as ratios to importing click where the machine is noisy."""
    few, many = folder / "few", folder / "many"
    write_logs(few, tasks=1, runs=5)
    write_logs(many, tasks=100, runs=5)
    python = sys.executable
    bare = (python, "-c", "import click")
    program = (python, "-m", "morocco")
    click, help_, stats = _wall_times(bare, (*program, "--help"), (*program, "stats", str(few)))
    yield _ratio("morocco --help", help_ / click, 2)
    yield _ratio("morocco stats of 10 logs", stats / click, 2.5)
    stats, check = _wall_times(
        (*program, "stats", str(many)), (*program, "check", str(many)), repeats=3
    )
    yield _seconds("stats over 1000 logs of 100 lines", stats, 1.5)
    yield _seconds("check of 1000 logs of 100 lines", check, 3)
    if PUBLISHED.is_dir():
        models = [str(PUBLISHED / model) for model in ("rubert", "rubert-conversational")]
        (check,) = _wall_times((*program, "check", *models), repeats=5)
        yield _seconds("check of the 261 published logs", check, 1.5)


def write_logs(folder: Path, tasks: int, runs: int, lines: int = 100) -> None:
    """Write runs of both sizes, of `lines` lines each, for made-up tasks."""
    for task in range(tasks):
        for size, batch, period in ((1, 1, 0.1), (2000, 32, 1 / 3)):
            for index in range(1, runs + 1):
                samples = (
                    Sample(1.7e9 + k * period * (1 + index / 1000), 1.0, 2**30, 0.9, 2**31 + k)
                    for k in range(lines)
                )
                write_samples(folder / str(LogPath(f"task{task}", size, batch, index)), samples)


def _wall_times(*commands: Sequence[str], repeats: int = _REPEATS) -> list[float]:
    """Return the median wall time of each command, run in turn so that noise hits all alike."""
    times: list[list[float]] = [[] for _ in commands]
    for _ in range(repeats):
        for command, collected in zip(commands, times, strict=True):
            start = time.perf_counter()
            done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
            assert done.returncode in (0, 1), command  # 1: the submission is incomplete
            collected.append(time.perf_counter() - start)
    return [statistics.median(collected) for collected in times]


def _seconds(name: str, measured: float, target: float) -> Figure:
    return Figure(name, "-", f"under {target} s", f"{measured:.2f} s", measured < target)


def _ratio(name: str, ratio: float, target: float) -> Figure:
    return Figure(
        f"{name}, against importing click", "-", f"under {target}", f"{ratio:.2f}", ratio < target
    )
