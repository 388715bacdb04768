"""Logs and their records as one zip: the same bytes for the same logs, wherever they lie."""

from __future__ import annotations

import stat
import zipfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path, PurePath
from typing import BinaryIO

from morocco.errors import DataError, OutputError
from morocco.logs.archive import MAX_UNPACKED, Refused, open_archive
from morocco.logs.discovery import MAX_RECORD, FoundLog, FoundLogs, find_logs
from morocco.logs.log import MAX_LINE
from morocco.util.files import open_atomically
from morocco.util.units import format_bytes

_ATTRIBUTES = (stat.S_IFREG | 0o644) << 16
_UNIX = 3


@dataclass(frozen=True)
class Packed:
    """What was packed."""

    logs: int
    records: int
    remarks: tuple[str, ...]
    """Files that were passed over, one line each."""


def check_output(output: Path, *, replace: bool = False) -> None:
    """DataError where `output` cannot be a new zip, or one in the place of an old one."""
    if output.is_dir():
        raise DataError(f"{output} is a folder; name the zip, such as {output / 'logs.zip'}.")
    if output.exists() and not output.is_file():  # a device would be lost, not written to
        raise DataError(f"{output} is no file; name the zip, such as logs.zip.")
    if output.exists() and not replace:
        raise DataError(
            f"{output} is there already. Choose another name, or replace it with --force."
        )


def pack_logs(paths: Sequence[Path], output: Path) -> Packed:
    """Write every log below `paths`, and the records beside them, to a zip; return what it holds.

    Logs are named `<task>/<file>`, and `<model>/<task>/<file>` where there are several models.
    DataError where `check` would refuse the zip, OutputError where it cannot be written; neither
    leaves a zip, nor touches the one there was.
    """
    with find_logs(paths) as finding:
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            with open_atomically(output) as draft:
                records = _write(finding, draft)
                draft.flush()
                _read_back(Path(draft.name), output)
        except Refused as error:
            raise DataError(f"A zip of these logs would be refused:{error.faults}") from None
        except OSError as error:
            raise OutputError(f"Cannot write {output}: {error.strerror or error}.") from None
    return Packed(len(finding.logs), records, finding.remarks)


def _write(finding: FoundLogs, draft: BinaryIO) -> int:
    """Write the archive and return how many records it holds."""
    records, left = 0, MAX_UNPACKED
    with zipfile.ZipFile(draft, "w") as archive:
        for name, content in _list_contents(finding):
            records += name.endswith(".json")
            with archive.open(_make_entry(name), "w") as entry:
                for piece in content:
                    entry.write(piece)
                    left -= len(piece)
                    if left < 0:
                        raise DataError(
                            f"These logs take more than {format_bytes(MAX_UNPACKED)}, the most "
                            "that a submission may unpack to."
                        )
    return records


def _make_entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = _UNIX
    entry.external_attr = _ATTRIBUTES
    return entry


def _list_contents(finding: FoundLogs) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Yield the entries of the archive, sorted by name."""
    named = {_name(found, finding.many_models): found for found in finding.logs}
    for name, found in sorted(named.items(), key=itemgetter(0)):
        record = _read_record(found)
        if record is not None:
            yield name.removesuffix("l"), [record]
        yield name, _read_lines(found)


def _name(found: FoundLog, many_models: bool) -> str:
    file = f"{found.path.task}/{PurePath(found.name).name}"
    name = f"{found.model}/{file}" if many_models else file
    if not name.isprintable():
        raise DataError(f"{found.name!a} cannot be printed, so it cannot be packed; rename it.")
    return name


def _read_record(found: FoundLog) -> bytes | None:
    try:
        record = found.read_record()
    except OSError as error:
        raise DataError(f"Cannot read the record of {found.name}: {error}.") from None
    if record is not None and len(record) > MAX_RECORD:
        most = format_bytes(MAX_RECORD)
        raise DataError(f"The record of {found.name} is longer than {most}, so it is none.")
    return record


def _read_lines(found: FoundLog) -> Iterator[bytes]:
    try:
        for number, line in enumerate(found.read_lines(), start=1):
            if len(line) > MAX_LINE:
                raise DataError(f"{found.name}, line {number}: longer than 64 KB.")
            yield line
    except OSError as error:
        raise DataError(f"Cannot read {found.name}: {error}.") from None


def _read_back(draft: Path, output: Path) -> None:
    """Read what was written as `check` does: what it would refuse is not handed out."""
    with open_archive(draft, output) as archive:
        for name in archive.names:
            if name.endswith(".json"):
                archive.read(name, MAX_RECORD)
            else:
                deque(archive.read_lines(name), maxlen=0)
