"""Logs and their records as one zip: the same bytes for the same logs, wherever they are."""

from __future__ import annotations

import stat
import zipfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path, PurePath
from typing import BinaryIO

from morocco.errors import DataError, OutputError
from morocco.logs.archive import MAX_UNPACKED, ArchiveRefused, open_archive
from morocco.logs.discovery import MAX_RECORD, FoundLog, FoundLogs, find_logs
from morocco.logs.log import MAX_LINE
from morocco.logs.redact import Redactor
from morocco.util.files import check_free, open_atomically
from morocco.util.units import format_bytes

_UNIX = 3
_ATTRIBUTES = (stat.S_IFREG | 0o644) << 16


@dataclass(frozen=True)
class Packed:
    """What was packed."""

    logs: int
    records: int
    remarks: tuple[str, ...]
    """Files that were skipped, one line each."""
    hidden: Mapping[str, int]
    """What the records do not tell any more: how many different things of each kind."""


def check_output(output: Path, *, replace: bool = False) -> None:
    """Raise DataError unless `output` can be written as a new zip, or may replace an old one."""
    if output.is_dir():
        raise DataError(f"{output} is a folder; name the zip, such as {output / 'logs.zip'}.")
    if not replace:
        check_free(output)


def pack_logs(paths: Sequence[Path], output: Path) -> Packed:
    """Write every log below `paths`, and the records beside them, to a zip.

    The records in it leave out what organisers need not know. Logs are named `<task>/<file>`, or
    `<model>/<task>/<file>` if there are several models.

    DataError if `check` would refuse the zip, OutputError if it cannot be written; after either,
    `output` is as it was before.
    """
    with find_logs(paths) as found:
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            with open_atomically(output) as draft:
                redactor = Redactor(filter(None, map(_read_record, found.logs)))
                records = _write(found, draft, redactor)
                draft.flush()
                _read_back(Path(draft.name), output)
        except ArchiveRefused as error:
            raise DataError(f"A zip of these logs would be refused:{error.faults}") from None
        except OSError as error:
            raise OutputError(f"Cannot write {output}: {error.strerror or error}.") from None
    return Packed(len(found.logs), records, found.remarks, redactor.hidden)


def _write(found: FoundLogs, draft: BinaryIO, redactor: Redactor) -> int:
    """Write the archive and return how many records it holds."""
    records, left = 0, MAX_UNPACKED
    with zipfile.ZipFile(draft, "w") as archive:
        for name, content in _list_contents(found, redactor):
            records += name.endswith(".json")
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system, info.external_attr = _UNIX, _ATTRIBUTES
            with archive.open(info, "w") as entry:
                for piece in content:
                    entry.write(piece)
                    left -= len(piece)
                    if left < 0:
                        limit = format_bytes(MAX_UNPACKED)
                        raise DataError(f"These logs exceed {limit}, the limit of a submission.")
    return records


def _list_contents(found: FoundLogs, redactor: Redactor) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Yield the entries of the archive, sorted by name."""
    named = {_name_entry(log, found.many_models): log for log in found.logs}
    for name, log in sorted(named.items(), key=itemgetter(0)):
        record = _read_record(log)
        if record is not None:
            yield name.removesuffix("l"), [redactor.redact(record)]
        yield name, _read_lines(log)


def _name_entry(log: FoundLog, many_models: bool) -> str:
    file = f"{log.path.task}/{PurePath(log.name).name}"
    name = f"{log.model}/{file}" if many_models else file
    if not name.isprintable():
        raise DataError(f"The name {log.name!a} cannot be printed; rename it to pack it.")
    return name


def _read_record(log: FoundLog) -> bytes | None:
    try:
        record = log.read_record()
    except OSError as error:
        raise DataError(f"Cannot read the record of {log.name}: {error}.") from None
    if record is not None and len(record) > MAX_RECORD:
        raise DataError(f"The record of {log.name} is longer than {format_bytes(MAX_RECORD)}.")
    return record


def _read_lines(log: FoundLog) -> Iterator[bytes]:
    try:
        for number, line in enumerate(log.read_lines(), start=1):
            if len(line) > MAX_LINE:
                raise DataError(f"{log.name}, line {number}: longer than 64 KB.")
            yield line
    except OSError as error:
        raise DataError(f"Cannot read {log.name}: {error}.") from None


def _read_back(draft: Path, output: Path) -> None:
    """Read what was written as `check` does; ArchiveRefused if it would refuse the zip."""
    with open_archive(draft, output) as archive:
        for name in archive.names:
            if name.endswith(".json"):
                archive.read(name, MAX_RECORD)
            else:
                deque(archive.read_lines(name), maxlen=0)
