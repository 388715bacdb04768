"""Which runs of a suite are done already, as their logs and records say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from morocco.errors import DataError
from morocco.logs import parse_samples
from morocco.plan import Job
from morocco.record import FORMAT
from morocco.recorded import AGREEMENT
from morocco.strict_json import parse_object
from morocco.units import Seconds

_SAME = ("network", "memory", "cpus", "shm_size", "env")
"""Options that make a run another one."""


@dataclass(frozen=True)
class Finished:
    """A run that is done."""

    run_time: Seconds
    image_id: str | None
    differences: tuple[str, ...]
    """In what it is not the run that is planned now: `target x, now y`."""


@dataclass(frozen=True)
class Doubtful:
    """A log that is there, though not all of it says that its run came to a good end."""

    reason: str


def look_up(job: Job) -> Finished | Doubtful | None:
    """Return what the log and the record of a job say; None where there is no log."""
    if not job.path.is_file():
        return None
    try:
        record = _read_record(job.path.with_suffix(".json"))
        run_time = _read_run_time(job.path)
        reason = next(_find_doubts(job, record, run_time), None)
        if reason is not None:
            return Doubtful(reason)
        image_id = record["target"]["image_id"]
        return Finished(run_time, image_id, tuple(_find_differences(job, record)))
    except DataError as error:
        return Doubtful(str(error).removesuffix("."))
    except (KeyError, TypeError, AttributeError):
        return Doubtful("its record is none of morocco")


def _read_record(path: Path) -> dict[str, Any]:
    try:
        return parse_object(path.read_bytes())
    except FileNotFoundError:
        raise DataError("its record is missing") from None
    except (OSError, ValueError):
        raise DataError("its record cannot be read") from None


def _read_run_time(path: Path) -> Seconds:
    try:
        with path.open("rb") as file:
            samples = parse_samples(file, path.name)
    except OSError as error:
        raise DataError(f"it cannot be read: {error.strerror}") from None
    if not samples[-1].is_closing:
        raise DataError("it has no closing line")
    return samples[-1].timestamp - samples[0].timestamp


def _find_doubts(job: Job, record: Mapping[str, Any], run_time: Seconds) -> Iterator[str]:
    """Yield why a record does not say that this log is of a good run of this job."""
    if record["format"] != FORMAT:
        yield f"its record has format {record['format']}"
    if record["failure"] is not None or record["exit_code"] != 0:
        yield "its record is one of a failed run"
    said = (record["task"], record["input_size"], record["batch_size"])
    if said != (job.task, job.records.count, job.batch_size):
        yield "its record is one of another run"
    if abs(record["run_time"] - run_time) > AGREEMENT:
        yield "log and record differ in the run time"


def _find_differences(job: Job, record: Mapping[str, Any]) -> Iterator[str]:
    was, now = record["arguments"], job.options.for_record()
    pairs = [("target", record["target"]["target"], job.target)]
    pairs += [(f"--{name.replace('_', '-')}", was[name], now[name]) for name in _SAME]
    for name, before, after in pairs:
        if before != after:
            yield f"{name} {before}, now {after}"
    if record["data"]["sha256"] != job.records.sha256:
        yield "other records in its data file"
