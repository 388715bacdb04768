"""Logs of several models on the disk, with records, for reports."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from morocco.logs.log import Log, LogPath
from submissions import BEGIN, INIT, LONG, make_gpu, make_record, make_samples

Size = tuple[int, int]
Times = Mapping[Size, Sequence[float]]
TIMES: Times = {INIT: (10.0,) * 5, LONG: (50.0,) * 5}
"""2000 records in 40 s beyond the start-up: 50 a second."""


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
            write_log(folder, log)
            changes = {"energy": 10 * run_time, **record}
            write_record(folder / str(path), make_record(log, **changes))
            written.append(path)
    return written


def write_log(folder: Path, log: Log) -> None:
    file = folder / str(log.path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(sample.to_line() + "\n" for sample in log.samples))


def write_record(log: Path, record: Mapping[str, Any]) -> None:
    log.with_suffix(".json").write_text(json.dumps(record))


def write_failure(folder: Path, path: LogPath, kind: str = "OutOfMemory") -> None:
    """Write what a failed run leaves."""
    file = folder / str(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    Path(f"{file}.failed").write_text("")
    record = {"failure": {"kind": kind, "message": "…"}, "exit_code": 137}
    file.with_suffix(".failed.json").write_text(json.dumps(record))


def on_gpu(name: str, uuid: str = "GPU-1", machine: str = "3f0c") -> dict[str, Any]:
    """Return the keys of a record of a run on this GPU."""
    return {"gpus": [make_gpu(name=name, uuid=uuid)], "machine": machine}
