"""Files written completely or not at all, devices written to in place, and files of settings."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from morocco.errors import DataError, OutputError
from morocco.util.units import Bytes, format_bytes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_MAX_TOML: Bytes = 2**20
_MAX_PARTS = 50
_LONG_KEY = re.compile(
    rb"""(?<![\w-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){%d}""" % _MAX_PARTS
)
"""tomllib takes hours for a key of half a million parts."""
_MAX_LINKS = 40
"""As many as the kernel follows."""


class WholeFile(FileIO):
    """An unbuffered file that writes all it is given."""

    def write(self, data: Any) -> int:
        """Write all of `data`, as bytes or a buffer; raises OSError."""
        rest = memoryview(data).cast("B")
        size = len(rest)
        while rest:
            rest = rest[super().write(rest) :]
        return size


def is_special(path: Path) -> bool:
    """Return whether a path, or what it links to, is a thing to write to and never to replace.

    That is a device, a FIFO or a socket, or an open file, such as /dev/stdout.
    """
    if _find_open_file(path) is not None:
        return True
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _find_open_file(path: Path) -> int | None:
    """Return the descriptor of this process that a path, such as /dev/stdout, stands for."""
    descriptors = os.path.realpath("/proc/self/fd")
    for _ in range(_MAX_LINKS):
        if path.name.isdecimal() and os.path.realpath(path.parent) == descriptors:
            return int(path.name)
        if not path.is_symlink():
            return None
        path = path.parent / path.readlink()
    return None


def open_special(path: Path) -> WholeFile:
    """Open what must not be replaced, to write to it; raises OSError."""
    if (number := _find_open_file(path)) is not None:
        return WholeFile(os.dup(number), "w")  # which goes on where others have stopped
    if path.is_block_device():
        raise OSError(errno.EPERM, "It is a disk, which this would destroy")
    try:  # a FIFO that nobody reads would block, and no signal could end that
        handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ENXIO and path.is_fifo():
            raise OSError(errno.ENXIO, "Nobody reads it; start its reader first") from None
        raise
    os.set_blocking(handle, True)
    return WholeFile(handle, "w")


def check_free(*paths: Path) -> None:
    """Raise DataError for a path that is taken by something a new file would replace."""
    for path in paths:
        if path.exists() and not is_special(path):
            raise DataError(
                f"{path} already exists. Choose another name, or replace it with --force."
            )


def resolve_links(path: Path) -> Path:
    """Return the file that a link stands for, so that the link stays; another path as it is."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file, or leave it as it is; raises OSError."""
    with open_atomically(path) as file:
        file.write(content)


def write_output(path: Path, content: bytes, what: str) -> None:
    """Write a file and create its folder; raises OutputError, which names the option `what`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
    except OSError as error:
        hint = f"Give {what} in a folder that is writable."
        raise OutputError(f"Cannot write {path}: {error.strerror}. {hint}") from None


@contextmanager
def open_atomically(path: Path) -> Iterator[BinaryIO]:
    """Yield a file that gets its name only if nothing raises; raises OSError.

    What must not be replaced gets the content of the file instead.
    """
    if is_special(path):
        with _open_copied(path) as file:
            yield file
        return
    path = resolve_links(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with draft.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


@contextmanager
def _open_copied(path: Path) -> Iterator[BinaryIO]:
    """Yield a temporary file that is copied to `path` if nothing raises."""
    with open_special(path) as special, TemporaryDirectory(prefix="morocco-") as folder:
        draft = Path(folder, path.name)
        with draft.open("wb") as file:
            yield file
        with draft.open("rb") as file:
            shutil.copyfileobj(file, special)


def read_bounded(path: Path, limit: Bytes) -> bytes:
    """Return the content of a file; raises DataError if it is unreadable or too long."""
    try:
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror}.") from None
    if len(content) > limit:
        raise DataError(f"{path} is longer than {format_bytes(limit)}; give another file.")
    return content


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file; raises DataError, which names file and line."""
    content = read_bounded(path, _MAX_TOML)
    if _LONG_KEY.search(content):
        raise DataError(f"{path} has a key of more than {_MAX_PARTS} parts; give another file.")
    try:
        return tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(f"{path}, line {line}: not UTF-8, so not TOML.") from None
    except (ValueError, RecursionError) as error:  # ValueError for a number of 5000 digits, too
        raise DataError(f"{path} is not TOML: {error}.") from None
