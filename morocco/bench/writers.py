"""Where a log goes: to a stream line by line, or to a file that is named only when complete."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import StringIO
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TextIO

from morocco.errors import DataError, OutputError
from morocco.logs.log import LogPath
from morocco.logs.samples import Sample
from morocco.util.files import write_atomically


class LogWriter(Protocol):
    """Takes samples as they are measured, and in the end the run record."""

    def write(self, sample: Sample) -> None:
        """Write a sample at once; OutputError if that fails."""

    def finish(self, record: Mapping[str, Any]) -> None:
        """Keep the log of a good run, with its record."""

    def fail(self, record: Mapping[str, Any]) -> None:
        """Leave nothing that looks like a finished log."""


class StreamWriter:
    """Writes samples to a stream; the closing line is missing after a failed run."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, sample: Sample) -> None:
        """Write a sample at once."""
        try:
            self._stream.write(sample.to_line() + "\n")
            self._stream.flush()
        except OSError as error:
            raise OutputError(
                f"Cannot write the samples to stdout: {error.strerror}. The run was ended; what "
                "was written is not a finished log."
            ) from None

    def finish(self, record: Mapping[str, Any]) -> None:
        """Do nothing: a stream has no place for a record."""

    def fail(self, record: Mapping[str, Any]) -> None:
        """Do nothing."""


class FileWriter:
    """Writes samples to `<log>.part`, which becomes `<log>` or `<log>.failed` in the end."""

    def __init__(self, path: Path, *, replace: bool = False) -> None:
        """Raise DataError if `path` is taken or in use, OutputError if it cannot be written.

        With `replace`, a finished log of that name is replaced once the new one is finished.
        """
        self._path, self._record = path, path.with_suffix(".json")
        self._part, self._failed = _append(path, ".part"), _append(path, ".failed")
        self._failed_record = path.with_suffix(".failed.json")
        if path.is_dir():
            raise DataError(f"{path} is a folder; name a file in it, such as 2000_32_01.jsonl.")
        if path.suffix == ".json":
            raise DataError(f"{path} is the name of a record; call the log {path.stem}.jsonl.")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._part.open("a", encoding="utf-8")
        except OSError as error:
            raise OutputError(f"Cannot write {self._part}: {error.strerror}.") from None
        self._claim()
        if path.exists() and not replace:  # checked now, when no other run can finish it
            self.drop()
            raise DataError(
                f"{path} already exists. Choose the next index, or replace it with --force."
            )

    def _claim(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The run that wrote it may just have given it its final name.
            claimed = os.path.samestat(os.fstat(self._file.fileno()), self._part.stat())
        except OSError:
            claimed = False
        if not claimed:
            self._file.close()
            raise DataError(f"Another run is writing {self._path}; choose another name.")
        self._file.truncate(0)  # a killed run may have left samples

    def write(self, sample: Sample) -> None:
        """Write a sample at once."""
        try:
            self._file.write(sample.to_line() + "\n")
            self._file.flush()
        except OSError as error:
            raise OutputError(f"Cannot write {self._part}: {error.strerror}.") from None

    def finish(self, record: Mapping[str, Any]) -> None:
        """Write the record, then name the log, so that a finished log always has its record."""
        try:
            os.fsync(self._file.fileno())
            write_atomically(self._record, _encode(record))
            self._part.replace(self._path)
            self._failed.unlink(missing_ok=True)
            self._failed_record.unlink(missing_ok=True)
        except OSError as error:
            self.fail(record)
            raise OutputError(
                f"Cannot finish {self._path}: {error.strerror}. The samples are in {self._failed}."
            ) from None
        finally:
            self._close()

    def fail(self, record: Mapping[str, Any]) -> None:
        """Set the log aside with its record, as far as the disk allows."""
        with suppress(OSError):
            self._part.replace(self._failed)
        with suppress(OSError):
            write_atomically(self._failed_record, _encode(record))
        self._close()

    def drop(self) -> None:
        """Remove what was written."""
        with suppress(OSError):
            self._part.unlink(missing_ok=True)
        self._close()

    def _close(self) -> None:
        with suppress(OSError):  # a full disk was reported by `write`
            self._file.close()


class WarmUpWriter(FileWriter):
    """Keeps the log of a warm-up only if it fails."""

    def finish(self, record: Mapping[str, Any]) -> None:  # noqa: ARG002
        """Remove what was written, and what an earlier failure left."""
        self.drop()
        with suppress(OSError):
            self._failed.unlink(missing_ok=True)
            self._failed_record.unlink(missing_ok=True)


def open_log(output: Path | TextIO | None, *, replace: bool) -> LogWriter:
    """Return the writer for a file or a stream; the samples go nowhere for None."""
    if isinstance(output, Path):
        return FileWriter(output, replace=replace)
    return StreamWriter(output or StringIO())


def check_log_name(path: Path, task: str, input_size: int, batch_size: int) -> str | None:
    """Return a warning if `morocco stats` will not find the log; None for a good name.

    DataError for the name of another run.
    """
    name = LogPath.parse(path.absolute())
    if name is None:
        return (
            f"`morocco stats` will not find {path}: it looks for "
            f"{task}/{input_size}_{batch_size}_01.jsonl."
        )
    if (name.input_size, name.batch_size) != (input_size, batch_size):
        raise DataError(
            f"{path} is the name of a run of {name.input_size} records in batches of "
            f"{name.batch_size}, but this run has --input-size {input_size} --batch-size "
            f"{batch_size}. Change these, or name the log "
            f"{input_size}_{batch_size}_{name.index:02d}.jsonl."
        )
    if name.task != task:
        raise DataError(
            f"{path} is the name of a run of the task {name.task!r}, not {task!r}: put it in a "
            f"folder {task}/."
        )
    return None


def clear_part(path: Path) -> None:
    """Remove what a killed run left of a log, unless another run is writing it."""
    part = _append(path, ".part")
    with suppress(OSError), part.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        part.unlink()


@contextmanager
def open_predictions(path: Path | None, *, replace: bool = False) -> Iterator[BinaryIO | None]:
    """Yield a file that becomes `path` after a good run, `<path>.failed` otherwise.

    Yield None for None. DataError if `path` is taken, OutputError if it cannot be written.
    """
    if path is None:
        yield None
        return
    if path.is_dir():
        raise DataError(f"{path} is a folder; name a file for the predictions.")
    if path.is_file() and not replace:
        raise DataError(f"{path} already exists. Choose another name, or replace it with --force.")
    part = _append(path, ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = part.open("wb")
    except OSError as error:
        raise OutputError(f"Cannot write {part}: {error.strerror}.") from None
    try:
        yield file
    except BaseException:  # this failure is the one to report, whatever the disk does now
        with suppress(OSError):
            file.close()
        with suppress(OSError):
            if part.stat().st_size:
                part.replace(_append(path, ".failed"))
            else:  # the run never started and must not replace what an earlier one left
                part.unlink()
        raise
    try:
        file.close()
        part.replace(path)
    except OSError as error:
        raise OutputError(
            f"Cannot finish {path}: {error.strerror}. The predictions are in {part}."
        ) from None


def _append(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _encode(record: Mapping[str, Any]) -> bytes:
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    # A surrogate, from a file name that is not UTF-8, becomes the escape that JSON has for it.
    return text.encode(errors="backslashreplace")
