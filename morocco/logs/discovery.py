"""Find and read the logs below the paths a user gives: files, folders, zips, several models."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise, takewhile
from pathlib import Path, PurePath

from morocco.errors import DataError
from morocco.logs.archive import Archive, is_archive, open_archive
from morocco.logs.log import (
    NO_PEAKS,
    UNKNOWN_SIZE,
    Log,
    LogError,
    LogFault,
    LogPath,
    parse_samples,
    read_lines,
)
from morocco.logs.samples import Peaks, Samples
from morocco.util.units import Bytes

PATTERN = "<task>/<input>_<batch>_<index>.jsonl, such as parus/2000_32_01.jsonl"
_FAILED = ".failed"
"""The suffix of a failed run's log."""
_SKIPPED = {
    ".jsonl.failed": "a failed run",
    ".jsonl.part": "a run that was cut off or is still going",
    ".jsonl": f"not named {PATTERN}",
}
MAX_RECORD: Bytes = 2**20
"""A record is about 3 KB long."""


@dataclass(frozen=True)
class FoundLog:
    """A log that was found but not read yet."""

    name: str
    """As messages name it: below the path that was given."""
    place: Path
    """The absolute path, so that a log found twice counts once."""
    path: LogPath
    read_lines: Callable[[], Iterator[bytes]] = field(compare=False)
    """Yields the log's lines, longer ones in pieces; OSError if they cannot be read."""
    read_record: Callable[[], bytes | None] = field(compare=False)
    """Returns the record beside it, cut after `MAX_RECORD` + 1 bytes; None without a record."""
    failed: bool = False
    """Whether a failed run left it."""
    model: str = ""

    @property
    def model_dir(self) -> str:
        """The folder that holds the task's folder."""
        return str(self.place.parent.parent)

    def parse(self, lines: Iterable[bytes]) -> Samples:
        """Return the samples on the lines of the log; LogError says what is wrong with it."""
        if 0 in self.path.size:
            message = "its name has a size of 0; input and batch size are 1 or more"
            raise LogError(self.name, LogFault("unreadable", message))
        return parse_samples(lines, self.name)


@dataclass(frozen=True)
class FoundLogs:
    """The logs below some paths, sorted by model and path, to be read while they are open."""

    logs: tuple[FoundLog, ...]
    many_models: bool
    """Whether the logs lie in more than one model folder."""
    remarks: tuple[str, ...]
    """Files that were skipped, one line each."""
    failed: tuple[FoundLog, ...]
    """Logs of failed runs; their models need not have a good one."""


@contextmanager
def find_logs(paths: Sequence[Path]) -> Iterator[FoundLogs]:
    """Find every log below `paths`; DataError for a path that does not exist or holds no log."""
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
        failed = tuple(log for log in ordered if log.failed)
        yield FoundLogs(logs, len({log.model for log in logs}) > 1, tuple(remarks), failed)


def _find(path: Path, stack: ExitStack, remarks: list[str]) -> Iterator[FoundLog]:
    if path.is_dir():
        yield from _find_in_folder(path, remarks)
    elif not path.exists():
        raise DataError(f"{path} does not exist. Give log files, folders of logs or a .zip.")
    elif is_archive(path):
        yield from _find_in_archive(path, stack.enter_context(open_archive(path)))
    elif log_path := LogPath.parse(_absolute(path)):
        yield _build_log(path, log_path)
    else:
        raise DataError(f"{path} is not named like a log: {PATTERN}.")


def _find_in_folder(folder: Path, remarks: list[str]) -> Iterator[FoundLog]:
    for path in sorted(folder.rglob("*.jsonl*")):
        failed = path.suffix == _FAILED
        log_path = LogPath.parse(_absolute(path.with_suffix("") if failed else path))
        is_log = log_path is not None and path.is_file()
        if failed or not is_log:
            whys = (why for ending, why in _SKIPPED.items() if path.name.endswith(ending))
            remarks += (f"{path}: skipped, {why}" for why in whys)
        if log_path is not None and is_log:
            yield _build_log(path, log_path, failed=failed)


def _build_log(path: Path, log_path: LogPath, *, failed: bool = False) -> FoundLog:
    """Return a log in a folder; the failed `1_1_01.jsonl.failed` has `1_1_01.failed.json`."""
    log = path.with_suffix("") if failed else path
    record = log.with_suffix(f"{_FAILED}.json" if failed else ".json")
    lines = partial(_read_lines, path)
    return FoundLog(
        str(path), _absolute(path), log_path, lines, partial(_read_start, record), failed
    )


def _find_in_archive(path: Path, archive: Archive) -> Iterator[FoundLog]:
    def read_record(name: str) -> bytes | None:
        return archive.read(name, MAX_RECORD + 1) if name in archive.names else None

    root = _absolute(path)  # the model of logs without a folder above their task
    for name in archive.names:
        log_path = LogPath.parse(name)
        if log_path is not None:
            lines = partial(archive.read_lines, name)
            record = partial(read_record, name.removesuffix("l"))
            yield FoundLog(f"{path}/{name}", root / name, log_path, lines, record)


def _read_lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from read_lines(file)


def _read_start(path: Path) -> bytes | None:
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return file.read(MAX_RECORD + 1)


def _absolute(path: Path) -> Path:
    """Return the path without `..`, which is not the name of a model; links stay as they are."""
    return Path(os.path.abspath(path))  # noqa: PTH100


def _name_models(model_dirs: set[str]) -> dict[str, str]:
    """Name each model by its folder; if two share a name, by as much of the path as is needed."""
    names = {folder: PurePath(folder).name.removesuffix(".zip") for folder in model_dirs}
    if len(set(names.values())) < len(names):
        parts = {folder: PurePath(folder).parts for folder in model_dirs}
        depth = _count_shared_ends(parts.values()) + 1
        names = {folder: "/".join(of_folder[-depth:]) for folder, of_folder in parts.items()}
    return names


def _count_shared_ends(paths: Iterable[tuple[str, ...]]) -> int:
    """Return how many parts at their ends any two paths have in common, at most."""
    ordered = sorted(path[::-1] for path in paths)  # those with the same end are neighbours
    pairs = (zip(one, two, strict=False) for one, two in pairwise(ordered))
    return max(sum(1 for _ in takewhile(lambda ends: ends[0] == ends[1], pair)) for pair in pairs)


@dataclass(frozen=True)
class Collection:
    """The logs that were found, all of them read."""

    logs: tuple[Log, ...]
    many_models: bool
    """Whether the logs lie in more than one model folder."""
    remarks: tuple[str, ...] = ()
    """Files that were skipped, one line each."""
    single: tuple[Log, ...] = ()
    """Files that were given by a name that says neither task nor size."""


def collect_logs(paths: Sequence[Path], *, any_name: bool = False) -> Collection:
    """Read every log below `paths`, sorted by model and path; with `any_name`, other files too.

    DataError for a path that does not exist, holds no log, or holds one that cannot be read.
    """
    single = [path for path in paths if any_name and _is_single(path)]
    with find_logs([path for path in paths if path not in single]) as found:
        logs, lone = tuple(map(_read, found.logs)), tuple(map(_read, map(_build_single, single)))
        return Collection(logs, found.many_models, found.remarks, lone)


def _is_single(path: Path) -> bool:
    return path.is_file() and not is_archive(path) and LogPath.parse(_absolute(path)) is None


def _build_single(path: Path) -> FoundLog:
    """Return a log whose task and size, if they are known at all, are those of its record."""
    from morocco.logs.record import parse_record

    found = _build_log(path, LogPath(path.stem, *UNKNOWN_SIZE, 0))
    try:
        content = found.read_record()
        record = parse_record(content) if content else None
    except (OSError, ValueError):
        return found
    if record is None or not (record.task and record.input_size and record.batch_size):
        return found
    return replace(found, path=LogPath(record.task, record.input_size, record.batch_size, 0))


def _read(found: FoundLog) -> Log:
    try:
        samples = found.parse(found.read_lines())
    except OSError as error:
        raise DataError(f"Cannot read {found.name}: {error}.") from None
    return Log(found.name, found.model, found.path, samples, _read_peaks(found))


def _read_peaks(found: FoundLog) -> Peaks:
    """Return the peaks of the record beside a log, as far as it has any."""
    try:
        content = found.read_record()
        if content is None:
            return NO_PEAKS
        from morocco.logs.record import parse_record  # which loads a lot

        return parse_record(content).peaks
    except (OSError, ValueError):
        return NO_PEAKS
