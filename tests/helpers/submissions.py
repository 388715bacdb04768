"""Submissions made in memory: a valid one, and ways to spoil it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import count
from typing import Any

from morocco.check.check import check
from morocco.check.profile import RUSSIAN_SUPERGLUE, Profile
from morocco.check.rule import CheckResult, RuleResult
from morocco.logs.log import Log, LogPath
from morocco.logs.record import parse_record, to_utc
from morocco.logs.samples import Sample
from morocco.logs.submission import Entry, Submission
from morocco.tasks import TASKS
from morocco.util.units import GIB

MB = 2**20
INIT = (1, 1)
LONG = (2000, 32)
NINE = tuple(TASKS)
BEGIN = 1_655_000_000.0
PERIOD = 1 / 3


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


def make_record(log: Log, **changes: Any) -> dict[str, Any]:
    """Return the record of a good run on the reference machine; a None leaves a key out."""
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


def make_entry(path: LogPath, samples: tuple[Sample, ...], model: str = "rubert") -> Entry:
    """Return a log that was read, and the record of a good run."""
    name = f"{model}/{path}"
    log = Log(name, model, path, samples)
    digest = sha256(repr(samples).encode()).hexdigest()
    return Entry(name, model, path, log, None, digest, parse_record(make_record(log)))


def make_submission(
    tasks: Sequence[str] = NINE,
    models: Sequence[str] = ("rubert",),
    *,
    runs: int = 5,
    long: Sequence[tuple[int, int]] = (LONG,),
) -> Submission:
    """Return a valid submission: start-up takes 10 s, the work 40 s."""
    serial = count()
    entries = [
        make_entry(
            LogPath(task, *size, index),
            make_samples(BEGIN + 100.7 * next(serial), 10.0 if size == INIT else 50.0),
            model,
        )
        for model in models
        for task in tasks
        for size in (INIT, *long)
        for index in range(1, runs + 1)
    ]
    return Submission(tuple(entries), len(models) > 1)


def change(
    submission: Submission, files: Sequence[str], spoil: Callable[[Entry], Entry]
) -> Submission:
    """Return the submission with some of its entries, as `parus/1_1_01.jsonl`, changed."""
    there = {str(entry.path) for entry in submission.entries}
    assert set(files) <= there, set(files) - there
    entries = [spoil(entry) if str(entry.path) in files else entry for entry in submission.entries]
    return replace(submission, entries=tuple(entries))


def drop(submission: Submission, *files: str) -> Submission:
    """Return the submission without the logs whose names start with `files`."""
    kept = [entry for entry in submission.entries if not str(entry.path).startswith(files)]
    assert len(kept) < len(submission.entries)
    return replace(submission, entries=tuple(kept))


def with_samples(
    make: Callable[[Log], tuple[Sample, ...]], *, record: bool = True
) -> Callable[[Entry], Entry]:
    """Spoil the samples of an entry; its record fits them, or is left out."""

    def spoil(entry: Entry) -> Entry:
        assert entry.log
        spoilt = make_entry(entry.path, make(entry.log), entry.model)
        return spoilt if record else replace(spoilt, record=None)

    return spoil


def lasting(run_time: float, **how: Any) -> Callable[[Entry], Entry]:
    """Make runs that take this many seconds."""
    return with_samples(lambda log: make_samples(log.samples[0].timestamp, run_time, **how))


def with_record(**changes: Any) -> Callable[[Entry], Entry]:
    """Change keys of the record."""

    def spoil(entry: Entry) -> Entry:
        assert entry.log
        return replace(entry, record=parse_record(make_record(entry.log, **changes)))

    return spoil


def without_records(submission: Submission) -> Submission:
    entries = [replace(entry, record=None) for entry in submission.entries]
    return replace(submission, entries=tuple(entries))


def find(checked: CheckResult, rule: str) -> RuleResult:
    (result,) = [result for result in checked.results if result.rule == rule]
    return result


def ask(
    submission: Submission, rule: str, profile: Profile = RUSSIAN_SUPERGLUE
) -> dict[tuple[str, ...] | str, str]:
    """Return the details of one rule: the log, or the logs, and the text about them."""
    details = find(check(submission, profile), rule).details
    return {
        detail.files[0] if len(detail.files) == 1 else detail.files: detail.what
        for detail in details
    }
