"""Devices and FIFOs to write to, in a folder of the test: never those of the machine."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NULL, FULL = 3, 7
"""Minor numbers of memory devices: one takes everything, one nothing."""


def make_device(path: Path, minor: int = NULL) -> Path:
    """Make a device like /dev/null; skip the test where that is not allowed."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        path.open("wb").close()
    except OSError as error:
        pytest.skip(f"NOT TESTED: only root can make a device here ({error}).")
    return path


def make_fifo(path: Path) -> Path:
    os.mkfifo(path)
    return path


def link_to(make: Callable[[Path], Path]) -> Callable[[Path], Path]:
    """Return what makes a link to a special file beside it."""

    def make_link(path: Path) -> Path:
        path.symlink_to(make(path.with_name("target")))
        return path

    return make_link


SPECIAL = pytest.mark.parametrize(
    "make",
    [make_device, make_fifo, link_to(make_device), link_to(make_fifo)],
    ids=["device", "fifo", "link to a device", "link to a fifo"],
)


@contextmanager
def read_fifo(path: Path) -> Iterator[bytearray]:
    """Read a FIFO, if it is one; after the context, what came out of it is complete."""
    received = bytearray()
    if not path.is_fifo():
        yield received
        return
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(handle, True)
    holder = os.open(path, os.O_WRONLY)  # or the reader would see the end before the start
    reader = threading.Thread(target=_read, args=(handle, received))
    reader.start()
    try:
        yield received
    finally:
        os.close(holder)
        reader.join()


def _read(handle: int, received: bytearray) -> None:
    while data := os.read(handle, 65536):
        received += data
    os.close(handle)


def describe(path: Path) -> tuple[int, int, int]:
    """Return what tells a special file from any other that takes its name."""
    found = path.lstat()
    return stat.S_IFMT(found.st_mode), found.st_ino, found.st_rdev
