"""Files written completely or not at all, and files of settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from morocco.errors import DataError, OutputError
from morocco.util.units import Bytes, format_bytes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_MAX_TOML: Bytes = 2**20


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
    """Yield a file that gets its name only if nothing raises; raises OSError."""
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
    try:
        return tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(f"{path}, line {line}: not UTF-8, so not TOML.") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise DataError(f"{path} is not TOML: {error}.") from None
