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
from morocco.util.files import (
    WholeFile,
    check_free,
    is_special,
    open_special,
    resolve_links,
    write_atomically,
)


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


class SpecialWriter:
    """Writes samples to a device, a FIFO or an open file, which have no place for a record."""

    def __init__(self, path: Path) -> None:
        """Raise OutputError if it cannot be written to."""
        self._path, self._file = path, _open_special(path)

    def write(self, sample: Sample) -> None:
        """Write a sample at once."""
        try:
            self._file.write(f"{sample.to_line()}\n".encode())
        except OSError as error:
            raise OutputError(
                f"Cannot write to {self._path}: {error.strerror}. The run was ended; what was "
                "written is not a finished log."
            ) from None

    def finish(self, record: Mapping[str, Any]) -> None:  # noqa: ARG002
        """Close it."""
        self._file.close()

    def fail(self, record: Mapping[str, Any]) -> None:  # noqa: ARG002
        """Close it; the closing line is missing."""
        self._file.close()


class PartFile(WholeFile):
    """A file named `<path>.part`, unbuffered, that only one run at a time can write."""

    def __init__(self, path: Path) -> None:
        """Raise DataError if another run is writing it, OutputError if it cannot be written."""
        self.path = resolve_links(path)
        self.part, self.failed = _append(self.path, ".part"), _append(self.path, ".failed")
        self._written = 0
        for name in (self.path, self.part, self.failed):
            if is_special(name):
                raise OutputError(f"{name} is no regular file and would be replaced; remove it.")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            super().__init__(self.part, "a")
        except OSError as error:
            raise OutputError(f"Cannot write {self.part}: {error.strerror}.") from None
        if not self._claim():
            self.close()
            raise DataError(f"Another run is writing {path}; choose another name.")
        self.truncate(0)  # a killed run may have left something

    def _claim(self) -> bool:
        try:
            fcntl.flock(self, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return self.is_named  # the run that wrote it may just have given it its final name

    def write(self, data: Any) -> int:
        """Write all of `data`, as bytes or a buffer; raises OSError."""
        count = super().write(data)
        self._written += count
        return count

    @property
    def is_named(self) -> bool:
        """Whether the name is still that of this file."""
        try:
            return os.path.samestat(os.fstat(self.fileno()), self.part.stat())
        except OSError:
            return False

    def check(self) -> None:
        """Raise OutputError if something else has removed, replaced or changed the file."""
        size = os.fstat(self.fileno()).st_size
        if self.is_named and size == self._written:
            return
        change = (
            f"cut or written to ({size:,} bytes, not {self._written:,})"
            if self.is_named
            else "removed or replaced"
        )
        raise OutputError(
            f"{self.part} was {change} by something else during the run. Measure again, and leave "
            "the files of a run alone until it ends."
        )

    def set_aside(self) -> None:
        """Name it `<path>.failed`, as far as the disk allows."""
        with suppress(OSError):
            if self.is_named:
                self.part.replace(self.failed)

    def drop(self) -> None:
        """Remove and close it, as far as the disk allows."""
        with suppress(OSError):
            if self.is_named:
                self.part.unlink()
        with suppress(OSError):
            self.close()


class FileWriter:
    """Writes samples to `<log>.part`, which becomes `<log>` or `<log>.failed` in the end."""

    def __init__(self, path: Path, *, replace: bool = False) -> None:
        """Raise DataError if `path` is taken or in use, OutputError if it cannot be written.

        With `replace`, a finished log of that name is replaced once the new one is finished.
        """
        self._path, self._record = path, path.with_suffix(".json")
        self._failed_record = path.with_suffix(".failed.json")
        if path.is_dir():
            raise DataError(f"{path} is a folder; name a file in it, such as 2000_32_01.jsonl.")
        if path.suffix == ".json":
            raise DataError(f"{path} is the name of a record; call the log {path.stem}.jsonl.")
        self._file = _open_part(path, replace=replace)

    def write(self, sample: Sample) -> None:
        """Write a sample at once."""
        try:
            self._file.write(f"{sample.to_line()}\n".encode())
        except OSError as error:
            raise OutputError(f"Cannot write {self._file.part}: {error.strerror}.") from None
        if sample.is_closing:
            self._file.check()

    def finish(self, record: Mapping[str, Any]) -> None:
        """Write the record, then name the log, so that a finished log always has its record."""
        try:
            os.fsync(self._file.fileno())
            write_atomically(self._record, _encode(record))
            self._file.part.replace(self._file.path)
            self._remove_failed()
        except OSError as error:
            self.fail(record)
            raise OutputError(
                f"Cannot finish {self._path}: {error.strerror}. The samples are in "
                f"{self._file.failed}."
            ) from None
        finally:
            self._file.close()

    def fail(self, record: Mapping[str, Any]) -> None:
        """Set the log aside with its record, as far as the disk allows."""
        self._file.set_aside()
        with suppress(OSError):
            write_atomically(self._failed_record, _encode(record))
        with suppress(OSError):  # a full disk was reported by `write`
            self._file.close()

    def drop(self) -> None:
        """Remove what was written."""
        self._file.drop()

    def _remove_failed(self) -> None:
        self._file.failed.unlink(missing_ok=True)
        self._failed_record.unlink(missing_ok=True)


class WarmUpWriter(FileWriter):
    """Keeps the log of a warm-up only if it fails."""

    def finish(self, record: Mapping[str, Any]) -> None:  # noqa: ARG002
        """Remove what was written, and what an earlier failure left."""
        self.drop()
        with suppress(OSError):
            self._remove_failed()


def open_log(output: Path | TextIO | None, *, replace: bool) -> LogWriter:
    """Return the writer for a file or a stream; the samples go nowhere for None."""
    if isinstance(output, Path):
        return SpecialWriter(output) if is_special(output) else FileWriter(output, replace=replace)
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
    part = _append(resolve_links(path), ".part")
    if is_special(part):
        return
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
    if is_special(path):
        with _open_special(path) as special:
            yield special
        return
    file = _open_part(path, replace=replace)
    try:
        yield file
    except BaseException:  # this failure is the one to report, whatever the disk does now
        # A run that never started must not replace what an earlier one left.
        (file.set_aside if file.tell() else file.drop)()
        file.close()
        raise
    _finish_predictions(file, path)


def _open_special(path: Path) -> WholeFile:
    try:
        return open_special(path)
    except OSError as error:
        raise OutputError(f"Cannot write to {path}: {error.strerror}.") from None


def _finish_predictions(file: PartFile, path: Path) -> None:
    with file:
        try:
            file.check()
            file.part.replace(file.path)
        except OutputError:
            file.set_aside()
            raise
        except OSError as error:
            raise OutputError(
                f"Cannot finish {path}: {error.strerror}. The predictions are in {file.part}."
            ) from None


def _open_part(path: Path, *, replace: bool) -> PartFile:
    """Return the unfinished file of a path; DataError if it is taken or in use."""
    file = PartFile(path)
    try:
        if not replace:
            check_free(path)  # now, when no other run can finish it
    except DataError:
        file.drop()
        raise
    return file


def _append(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _encode(record: Mapping[str, Any]) -> bytes:
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    # A surrogate, from a file name that is not UTF-8, becomes the escape that JSON has for it.
    return text.encode(errors="backslashreplace")
