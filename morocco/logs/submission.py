"""Submissions: every run with its log and its record, and what of them cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from morocco.logs.discovery import MAX_RECORD, FoundLog, find_logs
from morocco.logs.log import Log, LogError, LogFault, LogPath
from morocco.logs.record import RunRecord, parse_record
from morocco.util.units import format_bytes


@dataclass(frozen=True)
class Entry:
    """One log, if it can be read, and the record beside it."""

    name: str
    """As messages name it: below the path that was given."""
    model: str
    path: LogPath
    log: Log | None
    """None if it cannot be read, or belongs to a failed run."""
    fault: LogFault | None
    """Why it cannot be read."""
    digest: str
    """SHA-256 of the bytes of the log; empty if not even they can be read."""
    record: RunRecord | None
    """The run record; None if there is none that can be read."""
    record_fault: str | None = None
    """Why the record beside the log cannot be read."""


@dataclass(frozen=True)
class Submission:
    """Everything below the paths that were given, sorted by model and path."""

    entries: tuple[Entry, ...]
    many_models: bool
    remarks: tuple[str, ...] = ()
    """Files that were skipped, one line each: failed runs, cut-off runs, foreign names."""
    failed: tuple[Entry, ...] = ()
    """The failed runs, their logs not read; zips have none."""


def load_submission(paths: Sequence[Path]) -> Submission:
    """Read every log below `paths` and the record beside it, as far as possible.

    DataError for a path that does not exist or holds no log, and for a zip that is refused.
    """
    with find_logs(paths) as found:
        entries = tuple(map(_load, found.logs))
        failed = tuple(map(_load, found.failed))
    return Submission(entries, found.many_models, found.remarks, failed)


def _load(found: FoundLog) -> Entry:
    log, fault, digest = (None, None, "") if found.failed else _load_log(found)
    record, record_fault = _load_record(found)
    if log is not None and record is not None:
        log = replace(log, recorded=record.peaks)
    return Entry(
        found.name, found.model, found.path, log, fault, digest, record, record_fault=record_fault
    )


def _load_log(found: FoundLog) -> tuple[Log | None, LogFault | None, str]:
    """Return the log or what is wrong with it, and its digest."""
    digest = sha256()
    lines = _digest(found.read_lines(), digest.update)
    try:
        try:
            samples = found.parse(lines)
        except LogError as error:
            for _ in lines:  # the digest is that of the whole file
                pass
            return None, error.fault, digest.hexdigest()
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        return None, LogFault("unreadable", message), ""
    return Log(found.name, found.model, found.path, samples), None, digest.hexdigest()


def _digest(lines: Iterator[bytes], update: Callable[[bytes], None]) -> Iterator[bytes]:
    for line in lines:
        update(line)
        yield line


def _load_record(found: FoundLog) -> tuple[RunRecord | None, str | None]:
    """Return the record beside a log, or what is wrong with it; neither if there is none."""
    try:
        content = found.read_record()
        if content is not None and len(content) > MAX_RECORD:
            return None, f"longer than {format_bytes(MAX_RECORD)}, too long for a record"
        return (None if content is None else parse_record(content)), None
    except OSError as error:
        return None, f"cannot be read: {error.strerror or error}"
    except ValueError as error:
        return None, str(error)
