"""The noise floor: how much the time for the same work differs on this machine."""

from __future__ import annotations

import random
import threading
import time
import zlib
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, median, pstdev

from morocco.doctor.finding import Finding, State
from morocco.util.units import Bytes, Seconds

_PIECE: Bytes = 32 * 1024
"""Compressing this takes about a millisecond, without the lock that Python's threads share."""
_BLOCK: Seconds = 1.0
"""Shorter blocks differ more than runs do, as most of what disturbs them is short; of longer ones
there are too few."""
_FEW = 4
"""Fewer blocks tell nothing."""
_DOUBTFUL, _BAD = 0.05, 0.15
"""Runs of some seconds differ by half as much; `check` flags those that differ by 0.05."""


class _Worker(threading.Thread):
    """Does the same piece of work again and again, and notes when it was done."""

    def __init__(self, piece: bytes, end: threading.Event) -> None:
        super().__init__(name="noise", daemon=True)
        self._piece, self._end = piece, end
        self.moments: list[Seconds] = []

    def run(self) -> None:
        while not self._end.is_set():
            zlib.compress(self._piece)
            self.moments.append(time.monotonic())


def measure_noise(cores: int, seconds: Seconds = 5) -> float | None:
    """Keep as many threads busy as a target may have cores; return the spread of their work.

    The threads are free to move between the cores, as those of a target are.
    """
    piece, end = bytes(random.Random(1).choices(b"a quiet machine", k=_PIECE)), threading.Event()
    workers = [_Worker(piece, end) for _ in range(cores)]
    try:
        for worker in workers:
            worker.start()
        time.sleep(seconds)
    finally:
        end.set()
    for worker in workers:
        worker.join()
    return compute_spread([worker.moments for worker in workers])


def compute_spread(moments: Sequence[Sequence[Seconds]]) -> float | None:
    """Return the coefficient of variation of the time that equal blocks of work take.

    `moments` are when each thread was done with each of its pieces. A block is the number of
    pieces that the typical thread does in a second; None if there are too few blocks.
    """
    times = [[after - before for before, after in pairwise(thread)] for thread in moments]
    if not times or not all(times):
        return None
    size = max(1, round(_BLOCK / median(fmean(thread) for thread in times)))
    blocks = [
        sum(thread[begin : begin + size])
        for thread in times
        for begin in range(0, len(thread) - size + 1, size)
    ]
    return pstdev(blocks) / fmean(blocks) if len(blocks) >= _FEW else None


def judge_noise(spread: float | None) -> Finding:
    """Judge how much runs will differ."""
    if spread is None:
        return Finding("noise", "unknown", "the machine is too busy to tell")
    found = f"the same second of work differs by {spread:.1%} in time (standard deviation)"
    if spread < _DOUBTFUL:
        return Finding("noise", "good", found)
    state: State = "bad" if spread >= _BAD else "doubtful"
    todo = "end other work, see the lines above; repeat more runs; or rent another machine"
    return Finding("noise", state, found, todo)
