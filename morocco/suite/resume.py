"""Which runs of a suite are done already, as their logs and records say."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from morocco.errors import DataError, OutputError
from morocco.logs.log import parse_samples
from morocco.logs.record import FORMAT, TIME_TOLERANCE, RunRecord, parse_record
from morocco.suite.plan import Job
from morocco.targets.options import CONDITIONS
from morocco.util.units import Seconds


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
        return Finished(run_time, record.target.image_id, tuple(_find_differences(job, record)))
    except DataError as error:
        return Doubtful(str(error).removesuffix("."))


def _read_record(path: Path) -> RunRecord:
    try:
        return parse_record(path.read_bytes())
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


def _find_doubts(job: Job, record: RunRecord, run_time: Seconds) -> Iterator[str]:
    """Yield why a record does not say that this log is of a good run of this job."""
    known = (record.format, record.task, record.target.target, record.data.sha256)
    if not all(known) or not record.arguments.keys() >= set(CONDITIONS) or record.run_time is None:
        yield "its record lacks what morocco writes"
        return
    if record.format != FORMAT:
        yield f"its record has format {record.format}"
    if record.failure is not None or record.exit_code != 0:
        yield "its record is one of a failed run"
    planned = (job.task, job.records.count, job.batch_size)
    if (record.task, record.input_size, record.batch_size) != planned:
        yield "its record is one of another run"
    if abs(record.run_time - run_time) > TIME_TOLERANCE:
        yield "log and record differ in the run time"


def _find_differences(job: Job, record: RunRecord) -> Iterator[str]:
    was, now = record.arguments, job.options.for_record()
    pairs = [("target", record.target.target, job.target)]
    pairs += [(f"--{name.replace('_', '-')}", was[name], now[name]) for name in CONDITIONS]
    for name, before, after in pairs:
        if before != after:
            yield f"{name} {before}, now {after}"
    if record.data.sha256 != job.records.sha256:
        yield "other records in its data file"


NAME = ".morocco-suite"


class SuiteFolder:
    """Holds a folder of logs for as long as the context lasts, whatever ends this process.

    The first line of the file is written once and names the folder; the second says who holds it.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME

    def __enter__(self) -> str:
        """Return what names the folder, on this machine and in a copy of it not the same.

        DataError where another suite holds it, OutputError where it cannot be written.
        """
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("a+b", buffering=0)
        except OSError as error:
            raise OutputError(f"Cannot write {self._path}: {error.strerror}.") from None
        try:
            self._claim()
            return self._sign()
        except OSError as error:
            self._file.close()
            raise OutputError(f"Cannot write {self._path}: {error.strerror}.") from None
        except DataError:
            self._file.close()
            raise

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _claim(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = self._read_lines()[1]
            raise DataError(
                f"Another suite is at work in {self._path.parent}: {_describe(holder)}. Wait for "
                "its end: two suites on one machine make each other slow."
            ) from None

    def _sign(self) -> str:
        name = self._read_lines()[0]
        holder = {
            "pid": os.getpid(),
            "host": platform.node(),
            "since": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        }
        if not name:
            name = uuid.uuid4().hex
            self._file.truncate(0)
            self._file.write(f"{name}\n".encode())
        self._file.truncate(len(name) + 1)  # it is opened for appending
        self._file.write(f"{json.dumps(holder)}\n".encode())
        # A copied folder has the same name but another file.
        return f"{name}-{os.fstat(self._file.fileno()).st_ino}"

    def _read_lines(self) -> tuple[str, str]:
        self._file.seek(0)
        name, _, holder = self._file.read().decode(errors="replace").partition("\n")
        return (name if _is_name(name) else ""), holder


def _is_name(text: str) -> bool:
    return len(text) == 32 and all(letter in "0123456789abcdef" for letter in text)


def _describe(holder: str) -> str:
    with suppress(ValueError, KeyError, TypeError):
        told = json.loads(holder)
        return f"process {told['pid']} on {told['host']}, since {told['since']}"
    return "who, it has not said yet"
