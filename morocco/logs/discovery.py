"""From the paths a user gives to the logs below them: files, folders, zips, several models."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePath

from morocco.errors import DataError
from morocco.logs.archive import Archive, is_archive, open_archive
from morocco.logs.log import Log, LogPath, parse_samples, read_lines
from morocco.util.units import Bytes

PATTERN = "<task>/<input>_<batch>_<index>.jsonl, such as parus/2000_32_01.jsonl"
FAILED = ".failed"
"""What the log of a failed run ends in."""
MAX_RECORD: Bytes = 2**20
"""A record is 3 KB long; more than this is no record."""


@dataclass(frozen=True)
class FoundLog:
    """A log that was found and not read yet."""

    name: str
    """As messages name it: below the path that was given."""
    place: Path
    """The same from the root, so that a log reached by two paths counts once."""
    path: LogPath
    read_lines: Callable[[], Iterator[bytes]] = field(compare=False)
    """Yields the log's lines, longer ones in pieces; OSError where they cannot be read."""
    read_record: Callable[[], bytes | None] = field(compare=False)
    """Returns the record beside it, cut after `MAX_RECORD` + 1 bytes; None where there is none."""
    model: str = ""
    failed: bool = False
    """Whether it is what a run left that failed."""

    @property
    def model_dir(self) -> str:
        """The folder that holds the task's folder."""
        return str(self.place.parent.parent)


@dataclass(frozen=True)
class FoundLogs:
    """The logs below some paths, sorted by model and path, to be read while they are open."""

    logs: tuple[FoundLog, ...]
    many_models: bool
    """Whether the logs lie in more than one model folder."""
    remarks: tuple[str, ...]
    """Files that were passed over, one line each."""
    failed: tuple[FoundLog, ...] = ()
    """What failed runs left, sorted as the logs are; their models need not have a log."""


@contextmanager
def find_logs(paths: Sequence[Path]) -> Iterator[FoundLogs]:
    """Find every log below `paths`; DataError for a path that is not there or holds no log."""
    found: dict[Path, FoundLog] = {}
    remarks: list[str] = []
    with ExitStack() as stack:
        for path in paths:
            below = list(_find(path, stack, remarks))
            if all(log.failed for log in below):
                raise DataError(f"{path} holds no log. A log is named {PATTERN}.")
            for log in below:
                found.setdefault(log.place, log)
        models = _name_models({log.model_dir for log in found.values()})
        named = (replace(log, model=models[log.model_dir]) for log in found.values())
        ordered = sorted(named, key=lambda log: (log.model, log.path, log.name))
        logs = tuple(log for log in ordered if not log.failed)
        many_models = len({log.model for log in logs}) > 1
        failed = tuple(log for log in ordered if log.failed)
        yield FoundLogs(logs, many_models, tuple(remarks), failed)


def _find(path: Path, stack: ExitStack, remarks: list[str]) -> Iterator[FoundLog]:
    if path.is_dir():
        yield from _find_in_folder(path, remarks)
    elif not path.exists():
        raise DataError(f"{path} does not exist. Give log files, folders of logs or a .zip.")
    elif is_archive(path):
        yield from _find_in_archive(path, stack.enter_context(open_archive(path)))
    else:
        log_path = LogPath.parse(_absolute(path))
        if log_path is None:
            raise DataError(f"{path} is not named like a log: {PATTERN}.")
        yield _file(path, log_path)


def _find_in_folder(folder: Path, remarks: list[str]) -> Iterator[FoundLog]:
    for path in sorted(folder.rglob("*.jsonl*")):
        log_path = LogPath.parse(_absolute(path))
        if log_path is not None and path.is_file():
            yield _file(path, log_path)
        else:
            _remark_on(str(path), remarks)
            yield from _find_failed(path)


def _find_failed(path: Path) -> Iterator[FoundLog]:
    """Yield what a failed run left, `<log>.failed`, with its record `<log>.failed.json`."""
    log, mark = path.with_suffix(""), path.suffix
    log_path = LogPath.parse(_absolute(log)) if mark == FAILED and path.is_file() else None
    if log_path is not None:
        record = partial(_read_record, log.with_suffix(f"{FAILED}.json"))
        lines = partial(_read_lines, path)
        yield FoundLog(str(path), _absolute(path), log_path, lines, record, failed=True)


def _find_in_archive(path: Path, archive: Archive) -> Iterator[FoundLog]:
    # Entries of a zip without folders above the tasks belong to the zip itself.
    root = _absolute(path)
    for name in archive.names:
        log_path = LogPath.parse(name)
        if log_path is not None:
            yield FoundLog(
                f"{path}/{name}",
                root / name,
                log_path,
                partial(archive.read_lines, name),
                partial(_read_entry, archive, name.removesuffix("l")),
            )


def _file(path: Path, log_path: LogPath) -> FoundLog:
    lines, record = partial(_read_lines, path), partial(_read_record, path.with_suffix(".json"))
    return FoundLog(str(path), _absolute(path), log_path, lines, record)


def _read_lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from read_lines(file)


def _read_record(path: Path) -> bytes | None:
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return file.read(MAX_RECORD + 1)


def _read_entry(archive: Archive, name: str) -> bytes | None:
    return archive.read(name, MAX_RECORD + 1) if name in archive.names else None


def _absolute(path: Path) -> Path:
    """Return the path without `..`, which would name no model; links keep their names."""
    return Path(os.path.abspath(path))  # noqa: PTH100


def _remark_on(name: str, remarks: list[str]) -> None:
    if name.endswith(".jsonl.failed"):
        remarks.append(f"{name}: a run that failed, passed over")
    elif name.endswith(".jsonl.part"):
        remarks.append(f"{name}: a run that was cut off or goes on, passed over")
    elif name.endswith(".jsonl"):
        remarks.append(f"{name}: passed over, not named {PATTERN}")


def _name_models(model_dirs: set[str]) -> dict[str, str]:
    """Name each model by its folder; where two share a name, by as much of the path as it takes."""
    names = {folder: PurePath(folder).name.removesuffix(".zip") for folder in model_dirs}
    depth = 0
    while len(set(names.values())) < len(names):
        depth += 1
        names = {folder: _tail(folder, depth) for folder in model_dirs}
    return names


def _tail(folder: str, depth: int) -> str:
    return "/".join(PurePath(folder).parts[-depth:])


@dataclass(frozen=True)
class Collection:
    """The logs found, and what was found beside them."""

    logs: tuple[Log, ...]
    many_models: bool
    """Whether the logs lie in more than one model folder."""
    remarks: tuple[str, ...] = ()
    """Files that were passed over, one line each."""


def collect_logs(paths: Sequence[Path]) -> Collection:
    """Read every log below `paths`, sorted by model and path.

    DataError for a path that is not there, holds no log, or holds one that cannot be read.
    """
    with find_logs(paths) as finding:
        logs = tuple(map(_read, finding.logs))
    return Collection(logs, finding.many_models, finding.remarks)


def _read(found: FoundLog) -> Log:
    try:
        samples = parse_samples(found.read_lines(), found.name)
    except OSError as error:
        raise DataError(f"Cannot read {found.name}: {error}.") from None
    return Log(found.name, found.model, found.path, samples)
