"""Where a log goes: to stdout line by line, or to a file that gets its name only in the end."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TextIO

from morocco.errors import DataError, OutputError
from morocco.logs.samples import Sample
from morocco.util.files import write_atomically


class LogWriter(Protocol):
    """Takes samples as they are measured, then one verdict."""

    def write(self, sample: Sample) -> None:
        """Pass on a sample at once; OutputError where it cannot be written."""

    def finish(self, record: Mapping[str, Any]) -> None:
        """The run is good: keep the log, with its record."""

    def fail(self, record: Mapping[str, Any]) -> None:
        """The run failed: nothing may look like a finished log."""


class StreamWriter:
    """Samples to a stream, flushed line by line; a failed run lacks the closing line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, sample: Sample) -> None:
        """Pass on a sample at once."""
        try:
            self._stream.write(sample.to_line() + "\n")
            self._stream.flush()
        except OSError as error:
            raise OutputError(
                f"Cannot write the samples to stdout: {error.strerror}. The run was ended; what "
                "was written is no finished log."
            ) from None

    def finish(self, record: Mapping[str, Any]) -> None:
        """Nothing to do: a stream has no place for a record."""

    def fail(self, record: Mapping[str, Any]) -> None:
        """Nothing to do."""


class FileWriter:
    """Samples to `<log>.part`, which becomes `<log>` in the end, or `<log>.failed`."""

    def __init__(self, path: Path, *, replace: bool = False) -> None:
        """DataError where `path` cannot be a new log: taken, in use, or its folder not writable.

        With `replace`, a finished log of this name gives way, but only to a finished one.
        """
        self._path = path
        self._part = _beside(path, ".part")
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
        if path.exists() and not replace:  # looked at now, when no other run can finish it
            self._part.unlink()
            self._file.close()
            raise DataError(
                f"{path} is there already. Choose the next index, or replace it with --force."
            )

    def _claim(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Not so if the run that wrote it has just given it its final name.
            claimed = os.path.samestat(os.fstat(self._file.fileno()), self._part.stat())
        except OSError:
            claimed = False
        if not claimed:
            self._file.close()
            raise DataError(f"Another run is writing {self._path}; choose another name.")
        self._file.truncate(0)  # what a killed run may have left

    def write(self, sample: Sample) -> None:
        """Pass on a sample at once."""
        try:
            self._file.write(sample.to_line() + "\n")
            self._file.flush()
        except OSError as error:
            raise OutputError(f"Cannot write {self._part}: {error.strerror}.") from None

    def finish(self, record: Mapping[str, Any]) -> None:
        """Write the record, then give the log its name: a finished log always has its record."""
        try:
            os.fsync(self._file.fileno())
            write_atomically(self._path.with_suffix(".json"), _to_bytes(record))
            self._part.replace(self._path)
            for leftover in (_beside(self._path, ".failed"), self._failed_record):
                leftover.unlink(missing_ok=True)
        except OSError as error:
            self.fail(record)
            raise OutputError(
                f"Cannot finish {self._path}: {error.strerror}. The samples are in "
                f"{_beside(self._path, '.failed')}."
            ) from None
        finally:
            self._close()

    def fail(self, record: Mapping[str, Any]) -> None:
        """Set the log aside with its record, as far as the disk allows."""
        with suppress(OSError):
            self._part.replace(_beside(self._path, ".failed"))
        with suppress(OSError):
            write_atomically(self._failed_record, _to_bytes(record))
        self._close()

    def drop(self) -> None:
        """Leave nothing of a run of which nothing came."""
        with suppress(OSError):
            self._part.unlink(missing_ok=True)
        self._close()

    @property
    def _failed_record(self) -> Path:
        return self._path.with_suffix(".failed.json")

    def _close(self) -> None:
        with suppress(OSError):  # a full disk is reported where it was met
            self._file.close()


def clear_part(path: Path) -> None:
    """Remove what a killed run left of a log, unless another run is writing it."""
    part = _beside(path, ".part")
    with suppress(OSError), part.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        part.unlink()


class WarmUpWriter(FileWriter):
    """A file as long as the run goes, of which a good run leaves nothing: a warm-up."""

    def finish(self, record: Mapping[str, Any]) -> None:  # noqa: ARG002
        """Remove what was written, and what an earlier failure left."""
        self.drop()
        for leftover in (_beside(self._path, ".failed"), self._failed_record):
            with suppress(OSError):
                leftover.unlink(missing_ok=True)


@contextmanager
def open_predictions(path: Path | None, *, replace: bool = False) -> Iterator[BinaryIO | None]:
    """Yield a file that gets its name only if the run is good, and `<path>.failed` otherwise.

    None gives None. OutputError where the file cannot be written.
    """
    if path is None:
        yield None
        return
    if path.is_dir():
        raise DataError(f"{path} is a folder; name the file for the predictions.")
    if path.is_file() and not replace:
        raise DataError(
            f"{path} is there already. Choose another name, or replace it with --force."
        )
    part = _beside(path, ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = part.open("wb")
    except OSError as error:
        raise OutputError(f"Cannot write {part}: {error.strerror}.") from None
    try:
        yield file
    except BaseException:  # which counts, whatever the disk says now
        with suppress(OSError):
            file.close()
        with suppress(OSError):
            _set_aside(part, _beside(path, ".failed"))
        raise
    try:
        file.close()
        part.replace(path)
    except OSError as error:
        raise OutputError(
            f"Cannot finish {path}: {error.strerror}. The predictions are in {part}."
        ) from None


def _set_aside(part: Path, failed: Path) -> None:
    """Keep what a failed run has printed; one that never began must not replace an older one."""
    if part.stat().st_size:
        part.replace(failed)
    else:
        part.unlink()


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _to_bytes(record: Mapping[str, Any]) -> bytes:
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    # A surrogate, of a file name that is no UTF-8, becomes the escape that JSON has for it.
    return text.encode(errors="backslashreplace")
