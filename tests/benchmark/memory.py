"""How near the measured RAM comes to the truth."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

from engine import build_toy_image
from figures import Figure
from program import morocco
from speed import write_records

_TOY = Path(__file__).parents[1] / "helpers" / "memory_toy.py"
_CASES = {"forks": 200, "mapped": 200, "shared": 200, "threads": 200, "spike": 300}
"""Megabytes that the target is known to hold."""
_SECONDS = 2


def measure_memory(folder: Path) -> Iterator[Figure]:
    """Yield how far the peak RAM is from what the target holds, as a process and a container."""
    data, log = folder / "data", folder / "metronome" / "1_1_01.jsonl"
    write_records(data / "metronome.jsonl", 1)
    for case, size in _CASES.items():
        errors = []
        for kind in ("process", "container"):
            without, peak = (_measure(kind, case, held, data, log) for held in (0, size))
            errors.append(f"{kind} {(peak - without) / size - 1:+.1%}")
        reached = all(abs(float(error.split()[1].rstrip("%"))) <= 5 for error in errors)
        name = f"RAM, {size} MB: {case}"
        yield Figure(name, "up to 5 times too much", "within 5 %", ", ".join(errors), reached)


def _measure(kind: str, case: str, megabytes: int, data: Path, log: Path) -> float:
    """Return the peak RAM in MB of a target that holds so much."""
    arguments = (case, str(megabytes), str(_SECONDS))
    if kind == "process":
        _run(f"exec:{shlex.join([sys.executable, str(_TOY), *arguments])}", data, log)
    else:
        with build_toy_image(_TOY, arguments) as image:
            _run(image, data, log)
    return float(json.loads(log.with_suffix(".json").read_text())["peaks"]["ram"]) / 2**20


def _run(target: str, data: Path, log: Path) -> None:
    sizes = ("--input-size", "1", "--batch-size", "1")
    morocco("bench", target, str(data), "metronome", "-q", *sizes, "--force", "-o", str(log))
