"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from morocco.errors import OutputError


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file, or leave the one of that name as it is; OSError as the disk has it."""
    with open_atomically(path) as file:
        file.write(content)


def write_output(path: Path, content: bytes, what: str) -> None:
    """Write a file that was asked for, its folder too; OutputError, with the way out, if not."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
    except OSError as error:
        hint = f"Give {what} in a folder that you may write to."
        raise OutputError(f"Cannot write {path}: {error.strerror}. {hint}") from None


@contextmanager
def open_atomically(path: Path) -> Iterator[BinaryIO]:
    """Yield a file that gets its name only if all goes well; OSError as the disk has it."""
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
