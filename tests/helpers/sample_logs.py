"""Made-up logs with their samples and records, in memory and on disk."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from morocco.logs.log import Log, LogPath
from morocco.logs.record import to_utc
from morocco.logs.samples import Sample
from morocco.util.units import GIB

Size = tuple[int, int]
Times = Mapping[Size, Sequence[float]]

MB = 2**20
INIT: Size = (1, 1)
LONG: Size = (2000, 32)
TIMES: Times = {INIT: (10.0,) * 5, LONG: (50.0,) * 5}
"""2000 records in 40 s beyond the start-up: 50 a second."""
BEGIN = 1_655_000_000.0
PERIOD = 1 / 3


# In memory


def make_samples(
    start: float, run_time: float, *, first_ram: int | None = 5 * MB, use: float | None = 0.9
) -> tuple[Sample, ...]:
    """Return a log as morocco writes it: 3 lines a second and a closing one.

    `use` is that of the GPU during the second half; None never sees one. `first_ram` None makes a
    log without any reading.
    """
    beats = int(run_time / PERIOD)
    lines = [
        Sample(
            timestamp=start + beat * PERIOD,
            cpu_usage=None if first_ram is None else 1 + (start + beat) % 7 / 10,
            ram=first_ram and (300 * MB + int(start) % 1009 + beat if beat else first_ram),
            gpu_usage=None if beat < beats / 2 else use,
            gpu_ram=None if beat < beats / 2 or use is None else 2 * GIB,
        )
        for beat in range(beats)
    ]
    return (*lines, Sample(start + run_time))


def make_log(
    size: Size = LONG,
    index: int = 1,
    run_time: float = 50.0,
    *,
    task: str = "parus",
    model: str = "rubert",
    samples: Sequence[Sample] | None = None,
) -> Log:
    """Return a log as read from the folder `logs`."""
    path = LogPath(task, *size, index)
    return Log(f"logs/{path}", model, path, tuple(samples or make_samples(BEGIN, run_time)))


def make_record(log: Log, **changes: Any) -> dict[str, Any]:
    """Return the record of a good run on the reference machine; None leaves a key out."""
    path = log.path
    record = {
        "format": 1,
        "target": {"target": f"rubert-{path.task}", "image_id": f"sha256:{path.task}"},
        "arguments": {"gpus": "auto", "rate": 3.0},
        "task": path.task,
        "input_size": path.input_size,
        "batch_size": path.batch_size,
        "data": {"path": "val.jsonl", "sha256": f"{path.task}1f"},
        "host": {"cpu": "Broadwell", "cores": 8, "ram": 94 * GIB, "name": "gpu-1"},
        "gpus": [make_gpu()],
        "gpus_before": {"used": [0], "processes": []},
        "started": to_utc(log.samples[0].timestamp),
        "run_time": log.run_time,
        "exit_code": 0,
        "records_fed": path.input_size,
        "predictions": {"count": path.input_size},
        "warnings": [],
        "failure": None,
        "machine": "3f0c",
    }
    return {key: value for key, value in (record | changes).items() if value is not None}


def make_gpu(**changes: Any) -> dict[str, Any]:
    gpu = {
        "uuid": "GPU-1",
        "name": "Tesla V100-SXM2-32GB",
        "memory": 32 * GIB,
        "driver": "470.57",
        "power_limit": 300.0,
    }
    return gpu | changes


def on_gpu(name: str, uuid: str = "GPU-1", machine: str = "3f0c") -> dict[str, Any]:
    """Return the keys that the record of a run on this GPU has."""
    return {"gpus": [make_gpu(name=name, uuid=uuid)], "machine": machine}


# On disk


def write_runs(
    folder: Path, task: str = "parus", times: Times = TIMES, **record: Any
) -> list[LogPath]:
    """Write the logs of one task of the model `folder`, and their records; return their paths.

    `record` changes keys of the records; energy grows by 10 joules a second.
    """
    written = []
    for size, run_times in times.items():
        for index, run_time in enumerate(run_times, 1):
            path = LogPath(task, *size, index)
            log = Log(str(path), folder.name, path, make_samples(BEGIN + 100 * index, run_time))
            file = write_samples(folder / str(path), log.samples)
            write_record(file, make_record(log, **{"energy": 10 * run_time, **record}))
            written.append(path)
    return written


def write_quick_model(folder: Path) -> Path:
    """Write logs, without records, of a model that starts in 4 s and then does 20 records a second.

    Each log has only two lines, so it is read quickly.
    """
    for name, run_time in (("1_1_01", 4.0), ("200_2_01", 14.0)):
        samples = (Sample(BEGIN, 1.0, 5), Sample(BEGIN + run_time, 1.0, 5))
        write_samples(folder / "parus" / f"{name}.jsonl", samples)
    return folder


def write_samples(path: Path, samples: Iterable[Sample]) -> Path:
    """Write a log; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(to_text(samples))
    return path


def to_text(samples: Iterable[Sample]) -> str:
    """Return the lines of a log."""
    return "".join(sample.to_line() + "\n" for sample in samples)


def write_record(log: Path, record: Mapping[str, Any]) -> None:
    log.with_suffix(".json").write_text(json.dumps(record))


def write_failure(folder: Path, path: LogPath, kind: str = "OutOfMemory") -> None:
    """Write the files that a failed run leaves behind."""
    file = folder / str(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    Path(f"{file}.failed").write_text("")
    record = {"failure": {"kind": kind, "message": "…"}, "exit_code": 137}
    file.with_suffix(".failed.json").write_text(json.dumps(record))
