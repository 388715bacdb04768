"""From the paths a user gives to logs: files, folders and zips, several models side by side."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import IO

from morocco.errors import DataError
from morocco.logs import Log, LogPath, parse_samples

PATTERN = "<task>/<input>_<batch>_<index>.jsonl, such as parus/2000_32_01.jsonl"


@dataclass(frozen=True)
class Collection:
    """The logs found, and what was found beside them."""

    logs: tuple[Log, ...]
    many_models: bool
    """Whether the logs lie in more than one model folder."""
    remarks: tuple[str, ...] = ()
    """Files that were passed over, one line each."""


@dataclass(frozen=True)
class _Found:
    """A log that was found and not read yet."""

    name: str
    """As messages name it: below the path that was given."""
    place: Path
    """The same from the root, so that a log reached by two paths counts once."""
    path: LogPath
    open: Callable[[], IO[bytes]] = field(compare=False)

    @property
    def model_dir(self) -> str:
        return str(self.place.parent.parent)


def collect_logs(paths: Sequence[Path]) -> Collection:
    """Read every log below `paths`, sorted by model and path.

    DataError for a path that is not there, holds no log, or holds one that cannot be read.
    """
    found: dict[Path, _Found] = {}
    remarks: list[str] = []
    with ExitStack() as stack:
        for path in paths:
            below = list(_find(path, stack, remarks))
            if not below:
                raise DataError(f"{path} holds no log. A log is named {PATTERN}.")
            for log in below:
                found.setdefault(log.place, log)
        models = _name_models({log.model_dir for log in found.values()})
        ordered = sorted(found.values(), key=lambda log: (models[log.model_dir], log.path))
        logs = tuple(_read(log, models[log.model_dir]) for log in ordered)
    return Collection(logs, len(models) > 1, tuple(remarks))


def _find(path: Path, stack: ExitStack, remarks: list[str]) -> Iterator[_Found]:
    if path.is_dir():
        yield from _find_in_folder(path, remarks)
    elif not path.exists():
        raise DataError(f"{path} does not exist. Give log files, folders of logs or a .zip.")
    elif zipfile.is_zipfile(path):
        yield from _find_in_zip(path, stack.enter_context(_open_zip(path)), remarks)
    else:
        log_path = LogPath.parse(_absolute(path))
        if log_path is None:
            raise DataError(f"{path} is not named like a log: {PATTERN}.")
        yield _file(path, log_path)


def _find_in_folder(folder: Path, remarks: list[str]) -> Iterator[_Found]:
    for path in sorted(folder.rglob("*.jsonl*")):
        log_path = LogPath.parse(_absolute(path))
        if log_path is not None and path.is_file():
            yield _file(path, log_path)
        else:
            _remark_on(str(path), remarks)


def _open_zip(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(f"Cannot read {path}: {error}.") from None


def _find_in_zip(path: Path, archive: zipfile.ZipFile, remarks: list[str]) -> Iterator[_Found]:
    for info in archive.infolist():
        log_path = LogPath.parse(info.filename)
        name = f"{path}/{info.filename}"
        if log_path is None:
            _remark_on(name, remarks)
        else:
            # Entries of a zip without folders above the tasks belong to the zip itself.
            place = Path(f"{_absolute(path)}/{info.filename}")
            yield _Found(name, place, log_path, lambda info=info: archive.open(info))  # type: ignore[misc]


def _file(path: Path, log_path: LogPath) -> _Found:
    return _Found(str(path), _absolute(path), log_path, lambda: path.open("rb"))


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


def _read(found: _Found, model: str) -> Log:
    try:
        with found.open() as file:
            samples = parse_samples(file, found.name)
    except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"Cannot read {found.name}: {error}.") from None
    return Log(found.name, model, found.path, samples)


def by_model_and_task(logs: Sequence[Log]) -> dict[tuple[str, str], list[Log]]:
    """Return the logs grouped by (model, task), in their order."""
    groups: dict[tuple[str, str], list[Log]] = {}
    for log in logs:
        groups.setdefault((log.model, log.path.task), []).append(log)
    return groups
