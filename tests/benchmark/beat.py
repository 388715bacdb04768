"""Whether samples are taken on time, and what that costs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from engine import build_image
from figures import Figure
from program import morocco
from runs import beside
from speed import write_records

SECONDS = 60
_RATE = 3
_IDLE_PROCESSES = 500


def measure_beat(folder: Path) -> Iterator[Figure]:
    """Yield how late the samples of a minute are, and the monitor's own CPU time."""
    data = folder / "data"
    write_records(data / "metronome.jsonl", 200)
    with build_image(f"--hang {SECONDS}") as image, beside(["sleep", "600"], _IDLE_PROCESSES):
        idle = _run(image, data, folder / "idle" / "metronome" / "1_1_01.jsonl")
        yield _idle_figure(idle)
        yield _cost_figure(folder / "idle" / "metronome" / "1_1_01.json")
        spin = [sys.executable, "-c", "while True: pass"]
        with beside(spin, os.cpu_count() or 1):
            yield _busy_figure(_run(image, data, folder / "busy" / "metronome" / "1_1_01.jsonl"))


def _run(image: str, data: Path, log: Path) -> list[float]:
    """Return how late each sample was, in ms, without the closing line."""
    morocco("bench", image, str(data), "metronome", "-q", *_sizes(), "-o", str(log))
    times = [json.loads(line)["timestamp"] for line in log.read_text().splitlines()]
    return [(time - times[0] - k / _RATE) * 1000 for k, time in enumerate(times[:-1])]


def _sizes() -> tuple[str, ...]:
    return "--input-size", "1", "--batch-size", "1"


def _idle_figure(lateness: list[float]) -> Figure:
    worst, missed = max(map(abs, lateness)), _missed(lateness)
    return Figure(
        f"beat over {SECONDS} s, {_IDLE_PROCESSES} idle processes",
        "drifts, 3.1 a second",
        "every beat within 10 ms, none missed",
        f"worst {worst:.1f} ms, {missed} missed",
        worst <= 10 and not missed,
    )


def _busy_figure(lateness: list[float]) -> Figure:
    share = sum(abs(late) <= 20 for late in lateness) / (SECONDS * _RATE + 1)
    return Figure(
        "same, all cores busy as well",
        "-",
        "99 % within 20 ms",
        f"{min(share, 1) * 100:.1f} % (worst {max(map(abs, lateness)):.1f} ms)",
        share >= 0.99,
    )


def _missed(lateness: list[float]) -> int:
    return max(0, SECONDS * _RATE + 1 - len(lateness))


def _cost_figure(record: Path) -> Figure:
    run = json.loads(record.read_text())
    cost = run["monitor"]["cpu_time"] * 60 / run["run_time"]
    return Figure(
        "monitor's own CPU time a minute", "2.3 s and more", "under 0.15 s", f"{cost:.3f} s",
        cost < 0.15,
    )  # fmt: skip
