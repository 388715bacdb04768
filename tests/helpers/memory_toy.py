"""A target that holds a known amount of memory: CASE, megabytes, seconds; standard library only."""

import json
import mmap
import os
import sys
import tempfile
import threading
import time

_PAGE = 4096
_BLOCK = b"x" * 2**20


def hold(megabytes: int) -> bytearray:
    """Return memory that was touched."""
    return bytearray().join([_BLOCK] * megabytes)


def forks(megabytes: int, seconds: float) -> None:
    """Share the memory with four children."""
    held = hold(megabytes)
    children = [os.fork() for _ in range(4) if os.getpid() == _MAIN]
    time.sleep(seconds)
    if os.getpid() != _MAIN:
        os._exit(0)
    for child in children:
        os.waitpid(child, 0)
    del held


def mapped(megabytes: int, seconds: float, folder: str = "/var/tmp") -> None:
    """Map a file and read all of it."""
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(megabytes):
            file.write(_BLOCK)
        file.flush()
        held = mmap.mmap(file.fileno(), megabytes * len(_BLOCK)) if megabytes else b""
    assert all(held[place] for place in range(0, len(held), _PAGE))
    time.sleep(seconds)


def shared(megabytes: int, seconds: float) -> None:
    """Do the same in shared memory."""
    mapped(megabytes, seconds, "/dev/shm")


def threads(megabytes: int, seconds: float) -> None:
    """Let each of four threads hold a quarter."""

    def work() -> None:
        held = hold(megabytes // 4)
        time.sleep(seconds)
        del held

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def spike(megabytes: int, seconds: float) -> None:
    """Hold the memory only for a moment."""
    time.sleep(seconds / 2)
    hold(megabytes)
    time.sleep(seconds / 2)


_MAIN = os.getpid()
_CASES = {case.__name__: case for case in (forks, mapped, shared, threads, spike)}

if __name__ == "__main__":
    sys.stdin.read()
    _CASES[sys.argv[1]](int(sys.argv[2]), float(sys.argv[3]))
    sys.stdout.write(json.dumps({"idx": 0}) + "\n")
