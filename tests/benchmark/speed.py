"""Whether a container of known speed is measured at that speed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from engine import build_image
from figures import Figure
from program import morocco

RATE = 400
_REPEATS = 3


@dataclass(frozen=True)
class _Case:
    name: str
    arguments: str
    record_size: int
    before: tuple[str, str]
    """What the first tool reports for 800 and for 2000 records."""


_CASES = (
    _Case(
        "imports 3 s, then reads; 1.5 KB",
        f"--rate {RATE} --start-up 3 --read late",
        1500,
        ("-837", "1044"),
    ),
    _Case(
        "reads, then starts up 3 s; 220 B",
        f"--rate {RATE} --start-up 3 --read early",
        220,
        ("358", "392"),
    ),
)


def measure_speed(folder: Path) -> Iterator[Figure]:
    """Yield the speed that `stats` computes, for both ways to start and two input sizes."""
    for number, case in enumerate(_CASES):
        data, logs = folder / f"data{number}", folder / f"model{number}"
        write_records(data / "metronome.jsonl", case.record_size)
        with build_image(case.arguments) as image:
            for size in (1, 800, 2000):
                for index in range(1, _REPEATS + 1):
                    _bench(image, data, logs, size, index)
        for line in morocco("stats", str(logs)).splitlines():
            estimate = json.loads(line)
            yield _figure(case, estimate["input_size"], estimate["rps"])
    yield from _measure_podman(folder / "podman")


def _measure_podman(folder: Path) -> Iterator[Figure]:
    """Yield the speed of the first case on Podman; 2000 records only."""
    case, address = _CASES[0], os.environ.get("TEST_PODMAN_HOST")
    if not address:
        name = f"rps of {RATE} records/s on Podman"
        yield Figure(name, "-", f"{RATE} within 0.5 %", "not measured: no TEST_PODMAN_HOST", True)
        return
    write_records(folder / "data" / "metronome.jsonl", case.record_size)
    logs = folder / "model"
    with build_image(case.arguments, address) as image:
        for size in (1, 2000):
            for index in range(1, _REPEATS + 1):
                _bench(image, folder / "data", logs, size, index, DOCKER_HOST=address)
    (line,) = morocco("stats", str(logs)).splitlines()
    on_podman = replace(case, name=f"on Podman, {case.name}", before=("-", "-"))
    yield _figure(on_podman, 2000, json.loads(line)["rps"])


def write_records(path: Path, size: int, count: int = 100) -> None:
    """Write records of `size` bytes each, including the newline."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        for idx in range(count):
            record = json.dumps({"idx": idx, "text": ""})
            filler = "x" * (size - 1 - len(record))
            file.write(json.dumps({"idx": idx, "text": filler}) + "\n")


def _bench(image: str, data: Path, logs: Path, size: int, index: int, **env: str) -> None:
    batch = 1 if size == 1 else 128
    output = logs / "metronome" / f"{size}_{batch}_{index:02d}.jsonl"
    morocco(
        *("bench", image, str(data), "metronome", "-q"),
        *("--input-size", str(size), "--batch-size", str(batch), "-o", str(output)),
        **env,
    )


def _figure(case: _Case, size: int, rps: float) -> Figure:
    return Figure(
        f"rps of {RATE} records/s: {case.name}; {size} records",
        case.before[0 if size == 800 else 1],
        f"{RATE} within 0.5 %",
        f"{rps:.2f} ({(rps / RATE - 1) * 100:+.2f} %)",
        abs(rps / RATE - 1) <= 0.005,
    )
