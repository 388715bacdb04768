"""The cost of feeding and draining a gigabyte, compared with a bare loop."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import docker
from docker.types import LogConfig

from figures import Figure
from speed import write_records

_RECORD = 1000
_RECORDS = 1_000_000
_TOTAL = _RECORD * _RECORDS
_REPEATS = 3
_COPY = 'FROM python:3.11-slim\nENTRYPOINT ["sh", "-c", "exec cat"]\n'


def measure_throughput(folder: Path) -> Iterator[Figure]:
    """Yield the growth of morocco's memory, and its speed as a share of the bare loop's."""
    write_records(folder / "copy.jsonl", _RECORD)
    client = docker.from_env()
    context = folder / "image"
    context.mkdir()
    (context / "Dockerfile").write_text(_COPY)
    image, _ = client.images.build(path=str(context), rm=True)
    try:
        small, _ = _run_morocco(str(image.id), folder, 1)
        runs = [(_run_morocco(str(image.id), folder, _RECORDS), _run_bare(client, str(image.id)))
                for _ in range(_REPEATS)]  # fmt: skip
    finally:
        client.images.remove(str(image.id), force=True)
        client.close()
    growth = max(peak for (peak, _), _ in runs) - small
    share = statistics.median(bare / seconds for (_, seconds), bare in runs)
    speeds = [_TOTAL / 1e6 / statistics.median(times) for times in zip(
        *((seconds, bare) for (_, seconds), bare in runs), strict=True)]  # fmt: skip
    yield Figure(
        "1 GB in, 1 GB out: growth of RSS", "-", "under 50 MB", f"{growth:.1f} MB", growth < 50
    )
    yield Figure(
        "same: speed against a bare loop",
        "-",
        "at least 0.7",
        f"{share:.2f} ({speeds[0]:.0f} of {speeds[1]:.0f} MB/s)",
        share >= 0.7,
    )


def _run_morocco(image: str, folder: Path, records: int) -> tuple[float, float]:
    """Return morocco's peak RSS in MB and the target's run time."""
    with tempfile.TemporaryDirectory(dir=folder) as logs:
        log = Path(logs) / "copy" / f"{records}_1_01.jsonl"
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "morocco", "bench", image, str(folder), "copy", "-q"),
                *("--input-size", str(records), "--batch-size", "1", "-o", str(log)),
            ]
        )
        peak = 0.0
        while process.poll() is None:
            peak = max(peak, _peak_rss(process.pid))
            time.sleep(0.02)
        if process.returncode != 0:
            raise SystemExit("morocco failed: see above")
        return peak, json.loads(log.with_suffix(".json").read_text())["run_time"]


def _peak_rss(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return max((int(line.split()[1]) / 1024 for line in lines if "VmHWM" in line), default=0.0)


def _run_bare(client: docker.DockerClient, image: str) -> float:
    """Return how long it takes to move the same bytes without looking at them."""
    container = client.containers.create(
        image, stdin_open=True, network_mode="none", log_config=LogConfig(type="none")
    )
    streams = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
    attached = client.api.attach_socket(str(container.id), params=streams)._sock
    chunk = b"x" * 128_000

    def feed() -> None:
        for _ in range(_TOTAL // len(chunk)):
            attached.sendall(chunk)
        attached.shutdown(1)

    try:
        container.start()
        start = time.monotonic()
        feeder = threading.Thread(target=feed)
        feeder.start()
        while attached.recv(2**20):
            pass
        feeder.join()
        return time.monotonic() - start
    finally:
        attached.close()
        container.remove(force=True)
