"""Whether the run time of a container depends on how fast the engine answers."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args

from engine import build_image
from engines import SlowEngine
from figures import Figure
from program import morocco
from speed import write_records

_DELAY = 2.0
_TARGET_MS = 10
_REPEATS = 3
_Late = Literal["request", "answer"]
_CALLS = ("/containers/create", "/attach", "/start", "/json", "/wait", "?v=True")
"""Parts of the paths: create, attach, start, inspect, wait and remove."""


def measure_delays(folder: Path) -> Iterator[Figure]:
    """Yield by how much late requests or late answers of one kind change the run time at most."""
    write_records(folder / "data" / "metronome.jsonl", 200)
    with build_image("--read early --start-up 1") as image:
        usual = _measure(image, folder)
        changes = {
            f"{late} of {call}": _measure_slow(image, folder, call, late) - usual
            for call in _CALLS
            for late in get_args(_Late)
        }
    worst = max(changes, key=lambda case: abs(changes[case]))
    yield Figure(
        f"change of run time, engine calls {_DELAY:g} s late",
        "-",
        f"under {_TARGET_MS} ms",
        f"{changes[worst] * 1000:+.1f} ms ({worst})",
        abs(changes[worst]) * 1000 < _TARGET_MS,
    )


def _measure_slow(image: str, folder: Path, call: str, late: _Late) -> float:
    with (
        tempfile.TemporaryDirectory() as place,
        SlowEngine(Path(place), call, _DELAY, late=late) as engine,
    ):
        return _measure(image, folder, DOCKER_HOST=engine.address)


def _measure(image: str, folder: Path, **env: str) -> float:
    """Return the median run time with these variables set."""
    log = folder / "metronome" / "1_1_01.jsonl"
    sizes = ("--input-size", "1", "--batch-size", "1")
    command = ("bench", image, str(folder / "data"), "metronome", "-q", *sizes)
    times = []
    for _ in range(_REPEATS):
        morocco(*command, "--force", "-o", str(log), **env)
        times.append(float(json.loads(log.with_suffix(".json").read_text())["run_time"]))
    return statistics.median(times)
