"""Holds a Gpus object for the tests, in a process that has loaded the stand-in for NVML.

Takes pickled (name, arguments, options) on stdin; answers pickled (value, error) on stdout.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from morocco.errors import GpuError
from morocco.hardware.gpu import Gpus


def main() -> None:
    gpus = Gpus.open("none")
    for name, arguments, options in requests():
        value: Any = None
        error = None
        try:
            if name == "open":
                gpus.close()
                gpus = Gpus.open(*arguments, **options)
            else:
                value = getattr(gpus, name)
                value = value(*arguments) if callable(value) else value
        except GpuError as refused:
            error = refused
        pickle.dump((value, error), sys.stdout.buffer)
        sys.stdout.buffer.flush()


def requests() -> Iterator[tuple[str, Any, Any]]:
    with suppress(EOFError):
        while True:
            yield pickle.load(sys.stdin.buffer)


if __name__ == "__main__":
    main()
