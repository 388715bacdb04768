"""Whether honest runs on a quiet machine are left without a warning."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from engine import build_image
from figures import Figure
from program import morocco
from speed import write_records

_RUNS = 20
_RECORDS = 2000


def measure_quiet(folder: Path) -> Iterator[Figure]:
    """Yield how many of twenty runs are warned of; the machine must do nothing else."""
    write_records(folder / "data" / "metronome.jsonl", 220)
    with build_image("--rate 400 --start-up 1") as image:
        records = [_run(image, folder, index) for index in range(1, _RUNS + 1)]
    codes = Counter(code for path in records for code in _read_codes(path))
    told = ", ".join(f"{code} {count}" for code, count in codes.items()) or "none"
    yield Figure(f"warnings of {_RUNS} honest runs", "-", "none", told, not codes)


def _run(image: str, folder: Path, index: int) -> Path:
    """Measure once and return the record: a start-up run and a long one in turn."""
    size, batch = (1, 1) if index % 2 else (_RECORDS, 32)
    log = folder / "metronome" / f"{size}_{batch}_{index:02d}.jsonl"
    sizes = ("--input-size", str(size), "--batch-size", str(batch))
    morocco("bench", image, str(folder / "data"), "metronome", "-q", *sizes, "-o", str(log))
    return log.with_suffix(".json")


def _read_codes(record: Path) -> list[str]:
    codes: list[str] = json.loads(record.read_text())["warning_codes"]
    return codes
