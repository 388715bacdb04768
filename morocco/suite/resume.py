"""Which runs of a suite are already done, according to their logs and records."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import count
from pathlib import Path
from typing import IO

from morocco.errors import DataError, OutputError
from morocco.logs.log import parse_samples
from morocco.logs.record import FORMAT, TIME_TOLERANCE, RunRecord, parse_record
from morocco.suite.plan import Job
from morocco.targets.options import CONDITIONS, RunOptions, may_be_digest_of
from morocco.util.units import Seconds


@dataclass(frozen=True)
class Finished:
    """A run that is done."""

    run_time: Seconds
    image_id: str | None
    differences: tuple[str, ...]
    """How it differs from the run that is planned now: `target x, now y`."""


@dataclass(frozen=True)
class Doubtful:
    """A log that does not prove that its run ended well."""

    reason: str


def read_state(job: Job) -> Finished | Doubtful | None:
    """Return what the log and the record of a job show; None if there is no log."""
    if not job.path.is_file():
        return None
    try:
        record = _read_record(job.path.with_suffix(".json"))
        run_time = _read_run_time(job.path)
        reason = next(_list_doubts(job, record, run_time), None)
        if reason is not None:
            return Doubtful(reason)
        return Finished(run_time, record.target.image_id, tuple(_list_differences(job, record)))
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


def _list_doubts(job: Job, record: RunRecord, run_time: Seconds) -> Iterator[str]:
    """Yield why a record does not prove that the log is of a good run of this job."""
    target, data = record.target.target, record.data.sha256
    known = (record.format, record.task, target, data, record.arguments)
    if not all(known) or record.run_time is None:
        yield "its record is incomplete"
        return
    if record.format != FORMAT:
        yield f"its record has format {record.format}"
    if record.failure is not None or record.exit_code != 0:
        yield "its record is of a failed run"
    planned = (job.task, job.records.count, job.batch_size)
    if (record.task, record.input_size, record.batch_size) != planned:
        yield "its record is of another run"
    if abs(record.run_time - run_time) > TIME_TOLERANCE:
        yield "log and record differ in the run time"


def _list_differences(job: Job, record: RunRecord) -> Iterator[str]:
    # A record that was written before there was an option is of a run with its default.
    then = {**RunOptions().for_record(), **record.arguments}
    now = job.options.for_record()
    pairs = [("target", record.target.target, job.target)]
    pairs += [(f"--{name.replace('_', '-')}", then[name], now[name]) for name in CONDITIONS]
    for name, before, after in pairs:
        if before != after:
            yield f"{name} {before}, now {after}"
    same_names = then["env"] == now["env"]
    if same_names and not may_be_digest_of(record.env_digest, job.options.env):
        yield f"other values of --env {', '.join(now['env'])}"
    if record.data.sha256 != job.records.sha256:
        yield "its data file had other records"


def set_aside(doubtful: Mapping[Job, Doubtful], warn: Callable[[Job | None, str], None]) -> None:
    """Rename logs that cannot be trusted, and their records: their runs are measured again."""
    for job, doubt in doubtful.items():
        endings = (".old" if number == 1 else f".old-{number}" for number in count(1))
        ending = next(ending for ending in endings if not _append(job.path, ending).exists())
        for path in (job.path.with_suffix(".json"), job.path):
            _rename(path, _append(path, ending))
        kept = _append(job.path, ending)
        warn(job, f"{doubt.reason}. It is measured again; the old log is now {kept}.")


def remove_failed_warm_ups(folder: Path) -> None:
    """Remove what failed warm-ups left; once all runs are done, nothing depends on them."""
    for path in folder.glob("warm-up*.failed*"):
        with suppress(OSError):
            path.unlink()


def _append(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _rename(path: Path, new: Path) -> None:
    try:
        path.replace(new)
    except FileNotFoundError:  # the record may be missing
        pass
    except OSError as error:
        raise OutputError(f"Cannot rename {path} to {new}: {error.strerror}.") from None


MARKER = ".morocco-suite"


@contextmanager
def hold_folder(folder: Path) -> Iterator[str]:
    """Hold a folder of logs until the context ends, however this process ends; yield its name.

    The folder keeps its name when it is moved; a copy of it has another one. The first line of
    the marker file is written once and names the folder; the second says which process holds it.
    DataError if another suite holds it, OutputError if it cannot be written.
    """
    path = folder / MARKER
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(path.open("a+b", buffering=0))
            _lock(file, folder)
            name = _sign(file)
        except OSError as error:
            raise OutputError(f"Cannot write {path}: {error.strerror}.") from None
        yield name


def _lock(file: IO[bytes], folder: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DataError(
            f"Another suite is running in {folder}: {_describe(_read_lines(file)[1])}. Wait until "
            "it ends: two suites on one machine slow each other down."
        ) from None


def _sign(file: IO[bytes]) -> str:
    name = _read_lines(file)[0]
    holder = {
        "pid": os.getpid(),
        "host": platform.node(),
        "since": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }
    if not re.fullmatch("[0-9a-f]{32}", name):
        name = uuid.uuid4().hex
        file.truncate(0)
        file.write(f"{name}\n".encode())
    file.truncate(len(name) + 1)  # the file is open for appending
    file.write(f"{json.dumps(holder)}\n".encode())
    return f"{name}-{os.fstat(file.fileno()).st_ino}"  # a copy has the same first line


def _read_lines(file: IO[bytes]) -> tuple[str, str]:
    file.seek(0)
    name, _, holder = file.read().decode(errors="replace").partition("\n")
    return name, holder


def _describe(holder: str) -> str:
    try:
        facts = json.loads(holder)
        return f"process {facts['pid']} on {facts['host']}, since {facts['since']}"
    except (ValueError, KeyError, TypeError):
        return "a process that has just started"
