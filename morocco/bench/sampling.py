"""The thread that reads host and GPU on a fixed beat."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from morocco.hardware.gpu import Gpus
from morocco.hardware.host import ProcessTree
from morocco.logs.record import Peaks
from morocco.logs.samples import Sample
from morocco.util.units import AnchoredClock, Bytes, Seconds

Read = Callable[[Seconds], Sample | None]
"""Takes the moment (monotonic clock) and returns its sample, or None for no sample."""


@dataclass(frozen=True)
class Beats:
    """How well the beat was kept."""

    due: int
    missed: int
    """Skipped because the beat before came too late."""


class Sampler:
    """Calls `read` at start, start + period, start + 2 periods …, and hands on what it returns.

    Deadlines are fractions of the start, so that the beat does not drift; a beat that comes late
    by a period or more is skipped and counted. An exception ends the thread and is kept:
    `on_failure` tells of it at once, `stop` raises it.
    """

    def __init__(
        self,
        period: Seconds,
        read: Read,
        write: Callable[[Sample], None],
        on_failure: Callable[[Exception], None],
    ) -> None:
        self._period = period
        self._read = read
        self._write = write
        self._on_failure = on_failure
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._start: Seconds = 0.0
        self._due = 0
        self._missed = 0
        self.failure: Exception | None = None

    def start(self, start: Seconds) -> None:
        """Take the sample of `start` (monotonic clock) now and go on in a thread."""
        self._start = start
        sample = self._read(start)
        if sample is not None:
            self._write(sample)
        self._thread.start()

    def stop(self) -> Beats:
        """End the thread; raises what it raised."""
        passed = self._count_passed()
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self.failure is not None:
            raise self.failure
        late = max(0, passed - 1 - self._due)  # by a period or more, at the very end
        return Beats(self._due + late + 1, self._missed + late)

    def _run(self) -> None:
        try:
            while self._wait_for_next_beat():
                sample = self._read(time.monotonic())
                if sample is not None:
                    self._write(sample)
        except Exception as error:
            self.failure = error
            self._on_failure(error)

    def _wait_for_next_beat(self) -> bool:
        """Return True at the next beat, False as soon as the thread is told to stop."""
        skipped = max(0, self._count_passed() - self._due)
        deadline = self._start + (self._due + skipped + 1) * self._period
        if self._stopping.wait(deadline - time.monotonic()):
            return False
        self._due += skipped + 1
        self._missed += skipped
        return True

    def _count_passed(self) -> int:
        """Return how many beats have fallen due since the start, its own not counted."""
        return math.floor((time.monotonic() - self._start) / self._period)


class Meter:
    """Reads a process tree and the GPUs it is on; used by one thread at a time."""

    def __init__(self, tree: ProcessTree, gpus: Gpus, clock: AnchoredClock) -> None:
        self._tree = tree
        self._gpus = gpus
        self._clock = clock
        self._before: tuple[Seconds, Seconds] | None = None
        self._ram: Bytes | None = None
        self._gpu_ram: Bytes | None = None
        self.last: Sample | None = None
        """The newest sample."""

    def read(self, moment: Seconds) -> Sample | None:
        """Return the sample of a moment (monotonic clock), None once the tree has ended."""
        host = self._tree.read()
        if not host.pids and self.last is not None:  # the first line is written in any case
            return None
        gpu = self._gpus.read(host.pids)
        self.last = Sample(
            timestamp=self._clock.timestamp(moment),
            cpu_usage=self._cores_since_last(moment, host.cpu_time),
            ram=host.ram,
            gpu_usage=gpu.use,
            gpu_ram=gpu.ram,
        )
        self._ram = _larger(self._ram, host.ram)
        self._gpu_ram = _larger(self._gpu_ram, gpu.ram)
        return self.last

    @property
    def peaks(self) -> Peaks:
        """The largest readings so far."""
        return Peaks(self._ram, self._gpu_ram, self._gpus.source)

    def _cores_since_last(self, moment: Seconds, cpu_time: Seconds | None) -> float | None:
        """Return busy cores since the reading before; None for the first one."""
        before, self._before = self._before, None if cpu_time is None else (moment, cpu_time)
        if before is None or cpu_time is None or moment <= before[0]:
            return None
        return round(max(0.0, cpu_time - before[1]) / (moment - before[0]), 4)


def _larger(peak: Bytes | None, reading: Bytes | None) -> Bytes | None:
    """Return the larger of two readings; None is no reading, while 0 is one."""
    return max((value for value in (peak, reading) if value is not None), default=None)
