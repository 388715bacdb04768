"""The overhead of a suite, and what remains of it after many kills."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from random import Random

import docker

from engine import build_image
from figures import Figure
from random_kills import Victim, kill_suites
from speed import write_records

TASKS = ("one", "two")
_KILLS = 20
_LONGEST = 3.0
"""Seconds until a suite is killed: it takes 0.3 to load, then about 0.8 per run."""
_REPEATS = 3
_PLAN = len(TASKS) * 2 * _REPEATS


def measure_suite(folder: Path) -> Iterator[Figure]:
    """Yield the overhead of a run, and what remains after twenty kills."""
    write_data(folder)
    with tag_image("--rate 200 --hang 0.3") as target:
        yield _measure_overhead(target, folder)
        victim = Victim(suite_command(target, folder, _REPEATS), _PLAN, _LONGEST)
        harm = kill_suites(victim, folder / "killed", _KILLS, Random())
        yield show_harm("containers", harm, count_containers())


def write_data(folder: Path) -> None:
    """Write the data of both tasks."""
    for task in TASKS:
        write_records(folder / f"{task}.jsonl", 200)


def suite_command(target: str, folder: Path, repeats: int, *more: object) -> list[str]:
    """Return the command of a suite on that data."""
    command = [sys.executable, "-m", "morocco", "suite", target, str(folder), "--no-doctor", "-q"]
    sizes = ("--input-size", "100", "--repeats", str(repeats))
    return [*command, *sizes, "--tasks", ",".join(TASKS), *map(str, more)]


@contextmanager
def tag_image(arguments: str) -> Iterator[str]:
    """Yield a TARGET that is a metronome, whatever the task."""
    prefix = f"morocco-benchmark-{uuid.uuid4().hex[:8]}"
    client = docker.from_env()
    with build_image(arguments) as image:
        for task in TASKS:
            client.images.get(image).tag(f"{prefix}-{task}")
        yield f"{prefix}-{{task}}"
    client.close()


def _measure_overhead(target: str, folder: Path) -> Figure:
    logs = folder / "overhead"
    subprocess.run(suite_command(target, folder, 8, "--logs", logs), check=True)
    spans = sorted(_read_spans(logs))
    gaps = [start - end for (_, end), (start, _) in pairwise(spans)]
    median = statistics.median(gaps)
    return Figure(
        "suite: from the end of a container to the start of the next, median",
        *("-", "under 0.6 s", f"{median:.2f} s", median < 0.6),
    )


def _read_spans(logs: Path) -> Iterator[tuple[float, float]]:
    """Yield when each run started and ended."""
    for path in logs.glob("*/*.json"):
        record = json.loads(path.read_text())
        start, end = (datetime.fromisoformat(record[key]) for key in ("started", "ended"))
        yield start.timestamp(), end.timestamp()


def count_containers() -> int:
    """Return how many containers of suites are there."""
    client = docker.from_env()
    try:
        return len(client.containers.list(all=True, filters={"label": "morocco.suite"}))
    finally:
        client.close()


def show_harm(kind: str, harm: Counter[str], containers: int = 0) -> Figure:
    """Return what kills harmed, and how many containers they left."""
    found = [f"{count} {what}" for what, count in sorted(harm.items()) if what != "kills" and count]
    found += [f"{containers} containers"] if containers else []
    return Figure(
        f"suites of {kind}, killed {harm['kills']} times: harmed or left",
        *("-", "nothing", ", ".join(found) or "nothing", not found),
    )
