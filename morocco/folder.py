"""The folder that a suite fills: one suite at a time, and known again by the next."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import uuid
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

from morocco.errors import DataError, OutputError

NAME = ".morocco-suite"


class SuiteFolder:
    """Holds a folder of logs for as long as the context lasts, whatever ends this process.

    The first line of the file is written once and names the folder; the second says who holds it.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME

    def __enter__(self) -> str:
        """Return what names the folder, on this machine and in a copy of it not the same.

        DataError where another suite holds it, OutputError where it cannot be written.
        """
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("a+b", buffering=0)
        except OSError as error:
            raise OutputError(f"Cannot write {self._path}: {error.strerror}.") from None
        try:
            self._claim()
            return self._sign()
        except OSError as error:
            self._file.close()
            raise OutputError(f"Cannot write {self._path}: {error.strerror}.") from None
        except DataError:
            self._file.close()
            raise

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _claim(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = self._read_lines()[1]
            raise DataError(
                f"Another suite is at work in {self._path.parent}: {_describe(holder)}. Wait for "
                "its end: two suites on one machine make each other slow."
            ) from None

    def _sign(self) -> str:
        name = self._read_lines()[0]
        holder = {
            "pid": os.getpid(),
            "host": platform.node(),
            "since": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        }
        if not name:
            name = uuid.uuid4().hex
            self._file.truncate(0)
            self._file.write(f"{name}\n".encode())
        self._file.truncate(len(name) + 1)  # it is opened for appending
        self._file.write(f"{json.dumps(holder)}\n".encode())
        # A copied folder has the same name but another file.
        return f"{name}-{os.fstat(self._file.fileno()).st_ino}"

    def _read_lines(self) -> tuple[str, str]:
        self._file.seek(0)
        name, _, holder = self._file.read().decode(errors="replace").partition("\n")
        return (name if _is_name(name) else ""), holder


def _is_name(text: str) -> bool:
    return len(text) == 32 and all(letter in "0123456789abcdef" for letter in text)


def _describe(holder: str) -> str:
    with suppress(ValueError, KeyError, TypeError):
        told = json.loads(holder)
        return f"process {told['pid']} on {told['host']}, since {told['since']}"
    return "who, it has not said yet"
