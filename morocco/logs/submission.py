"""A submission as it was found: every run with its log, its record, and what could not be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from morocco.logs.discovery import MAX_RECORD, FoundLog, find_logs
from morocco.logs.log import Log, LogPath, read_samples
from morocco.logs.record import RunRecord, parse_record
from morocco.util.units import format_bytes


@dataclass(frozen=True)
class Entry:
    """One log, as far as it can be read, and the record beside it."""

    name: str
    """As messages name it: below the path that was given."""
    model: str
    path: LogPath
    log: Log | None
    """None where it cannot be read."""
    fault: str | None
    """Why it cannot be read: "line 12: …"."""
    digest: str
    """SHA-256 of the bytes of the log; empty where not even they can be read."""
    record: RunRecord | None
    """The run record; None where there is none that can be read."""
    record_fault: str | None = None
    """Why the record beside the log is of no use."""


@dataclass(frozen=True)
class FailedRun:
    """A run that failed, as its record tells."""

    name: str
    """What is left of its log, as messages name it."""
    model: str
    path: LogPath
    """Of the log that it would have been."""
    record: RunRecord | None
    """None where there is none that can be read."""


@dataclass(frozen=True)
class Submission:
    """Everything below the paths that were given, sorted by model and path."""

    entries: tuple[Entry, ...]
    many_models: bool
    remarks: tuple[str, ...] = ()
    """Files that were passed over, one line each: failed runs, cut-off runs, foreign names."""
    failed: tuple[FailedRun, ...] = ()
    """The failed runs among them; only folders keep these."""


def load_submission(paths: Sequence[Path]) -> Submission:
    """Read every log below `paths` and the records beside them, as far as they can be read.

    DataError for a path that is not there or holds no log, and for a zip that breaks a limit.
    """
    with find_logs(paths) as finding:
        entries = tuple(map(_load, finding.logs))
        failed = tuple(
            FailedRun(found.name, found.model, found.path, _load_record(found)[0])
            for found in finding.failed
        )
    return Submission(entries, finding.many_models, finding.remarks, failed)


def _load(found: FoundLog) -> Entry:
    log, fault, digest = _load_log(found)
    record, record_fault = _load_record(found)
    return Entry(
        found.name, found.model, found.path, log, fault, digest, record, record_fault=record_fault
    )


def _load_log(found: FoundLog) -> tuple[Log | None, str | None, str]:
    """Return the log or what is wrong with it, and its digest."""
    digest = sha256()
    lines = _digest(found.read_lines(), digest.update)
    try:
        try:
            samples = read_samples(lines)
        except ValueError as error:
            for _ in lines:  # the digest is that of the whole file
                pass
            return None, str(error), digest.hexdigest()
    except OSError as error:
        return None, f"cannot be read: {error.strerror or error}", ""
    return Log(found.name, found.model, found.path, samples), None, digest.hexdigest()


def _digest(lines: Iterator[bytes], update: Callable[[bytes], None]) -> Iterator[bytes]:
    for line in lines:
        update(line)
        yield line


def _load_record(found: FoundLog) -> tuple[RunRecord | None, str | None]:
    """Return the record beside a log, or what is wrong with it; neither where there is none."""
    try:
        content = found.read_record()
        return (None if content is None else _parse_record(content)), None
    except OSError as error:
        return None, f"cannot be read: {error.strerror or error}"
    except ValueError as error:
        return None, str(error)


def _parse_record(content: bytes) -> RunRecord:
    if len(content) > MAX_RECORD:
        raise ValueError(f"longer than {format_bytes(MAX_RECORD)}, so no record")
    return parse_record(content)
