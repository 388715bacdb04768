"""The overhead of a suite, and what remains of it after many kills."""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import docker

from engine import build_image
from figures import Figure
from program import morocco
from speed import write_records

TASKS = ("one", "two")
_KILLS = 20
_LONGEST = 3.0
"""Seconds until a suite is killed: it takes 0.3 to load, then about 0.8 per run."""
_REPEATS = 3
_PLAN = len(TASKS) * 2 * _REPEATS
_PROFILE = f"name = 'benchmark'\ntasks = {list(TASKS)}\nruns = {_REPEATS}\n"


def measure_suite(folder: Path) -> Iterator[Figure]:
    """Yield the overhead of a run, and what remains after twenty kills."""
    write_data(folder)
    with _tagged_image("--rate 2000 --hang 0.3") as target:
        yield _measure_overhead(target, folder)
        yield _measure_kills(target, folder)


def write_data(folder: Path) -> None:
    """Write the data of both tasks."""
    for task in TASKS:
        write_records(folder / f"{task}.jsonl", 200)


def suite_command(target: str, folder: Path, logs: Path, repeats: int, *more: str) -> list[str]:
    """Return the command of a suite on that data."""
    command = [sys.executable, "-m", "morocco", "suite", target, str(folder), "--logs", str(logs)]
    sizes = ("--input-size", "100", "--repeats", str(repeats))
    return [*command, "--no-doctor", *sizes, "--tasks", ",".join(TASKS), *more]


@contextmanager
def _tagged_image(arguments: str) -> Iterator[str]:
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
    subprocess.run([*suite_command(target, folder, logs, 8), "--quiet"], check=True)
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


def _measure_kills(target: str, folder: Path) -> Figure:
    logs = folder / "killed"
    command = [*suite_command(target, folder, logs, _REPEATS), "--quiet"]
    redone = 0
    finished: dict[Path, bytes] = {}
    for _ in range(_KILLS):
        suite = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        time.sleep(random.uniform(0, _LONGEST))
        suite.kill()
        suite.wait()
        redone += _count_changed(finished)
        for log in logs.glob("*/*.jsonl"):
            finished |= {path: path.read_bytes() for path in (log, log.with_suffix(".json"))}
    subprocess.run(command, check=True)
    redone += _count_changed(finished)
    return _tell_kills(logs, redone, _list_containers())


def _count_changed(finished: dict[Path, bytes]) -> int:
    return sum(path.read_bytes() != content for path, content in finished.items())


def _tell_kills(logs: Path, redone: int, containers: int) -> Figure:
    profile = logs.parent / "profile.toml"
    profile.write_text(_PROFILE)
    valid = morocco("check", str(logs), "--profile", str(profile)).splitlines()[-1] == "VALID"
    count = len(list(logs.glob("*/*.jsonl")))
    measured = f"{count} logs{', VALID' if valid else ''}, {redone} redone, {containers} left"
    reached = valid and (count, redone, containers) == (_PLAN, 0, 0)
    target = f"{_PLAN} logs, VALID, 0 redone, 0 left"
    return Figure(f"suite killed {_KILLS} times: logs, containers", "-", target, measured, reached)


def _list_containers() -> int:
    client = docker.from_env()
    try:
        return len(client.containers.list(all=True, filters={"label": "morocco.suite"}))
    finally:
        client.close()
