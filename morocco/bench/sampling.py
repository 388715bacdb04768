"""The thread that reads host and GPUs at a steady rate."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from morocco.hardware.gpu import Gpus
from morocco.hardware.host import ProcessTree
from morocco.hardware.load import LoadMeter
from morocco.logs.samples import Peaks, Sample
from morocco.util.units import AnchoredClock, Bytes, Seconds

_FIRST_MARK: Seconds = 0.01
_MARK_GROWTH = 1 / 4
_MARK_TIME: Seconds = 0.01
"""No mark is taken so shortly before a beat that it could delay it."""


@dataclass(frozen=True)
class Beats:
    """How many samples were due, and how many of them were not taken."""

    due: int
    missed: int
    """Skipped because the sample before took too long."""


class Sampler:
    """Calls `read` at start, start + period, start + 2 periods …, and writes what it returns.

    Every deadline is computed from the start, so the beat does not drift. A beat that is late by
    a period or more is skipped and counted. An exception ends the thread: it goes to `on_failure`
    at once, and `stop` raises it.
    """

    def __init__(
        self,
        period: Seconds,
        read: Callable[[Seconds], Sample | None],
        write: Callable[[Sample], None],
        on_failure: Callable[[Exception], None],
        mark: Callable[[], None] | None = None,
    ) -> None:
        """`read` takes a moment of the monotonic clock; it may return None for no sample.

        `mark` is called between the first beats, so that a short life does not go unseen.
        """
        self._period, self._mark = period, mark
        self._read, self._write, self._on_failure = read, write, on_failure
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._start: Seconds = 0.0
        self._beat = self._taken = 0
        self._failure: Exception | None = None

    def start(self, start: Seconds) -> None:
        """Take the sample of `start` (monotonic clock) now, and the others in a thread."""
        self._start = start
        self._take_sample(start)
        self._thread.start()

    def stop(self) -> Beats:
        """End the thread and return how well it kept the beat; raise what it raised."""
        elapsed = self._count_elapsed()
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self._failure is not None:
            raise self._failure
        due = 1 + max(self._beat, elapsed - 1)  # the last beat may still have been on its way
        return Beats(due, due - self._taken)

    def _run(self) -> None:
        try:
            while self._wait_for_beat():
                self._take_sample(time.monotonic())
        except Exception as error:
            self._failure = error
            self._on_failure(error)

    def _take_sample(self, moment: Seconds) -> None:
        self._taken += 1
        sample = self._read(moment)
        if sample is not None:
            self._write(sample)

    def _wait_for_beat(self) -> bool:
        """Return True at the next beat, False as soon as the thread is to stop."""
        beat = max(self._beat, self._count_elapsed()) + 1
        deadline = self._start + beat * self._period
        self._mark_until(deadline)
        if self._stopping.wait(deadline - time.monotonic()):
            return False
        self._beat = beat
        return True

    def _mark_until(self, deadline: Seconds) -> None:
        """Call `mark` at intervals that grow with the time elapsed, up to a period."""
        while self._mark is not None:
            now = time.monotonic()
            interval = max(_FIRST_MARK, (now - self._start) * _MARK_GROWTH)
            if interval >= self._period or now + interval > deadline - _MARK_TIME:
                return
            if self._stopping.wait(interval):
                return
            self._mark()

    def _count_elapsed(self) -> int:
        """Return how many periods have passed since the start."""
        return math.floor((time.monotonic() - self._start) / self._period)


class Meter:
    """Reads the processes of a target and their GPUs; used by one thread at a time."""

    def __init__(
        self, tree: ProcessTree, gpus: Gpus, clock: AnchoredClock, load: LoadMeter | None = None
    ) -> None:
        self.tree = tree
        """What is read; may be replaced before the first reading."""
        self.last: Sample | None = None
        """The latest sample."""
        self._gpus, self._clock, self._load = gpus, clock, load
        self._cpu_before: tuple[Seconds, Seconds] | None = None
        """Moment and CPU time of the reading before."""
        self._gpu_ram: Bytes | None = None

    def read(self, moment: Seconds) -> Sample | None:
        """Return the sample of a moment (monotonic clock), None once the processes have ended."""
        host = self.tree.read()
        if not host.pids and self.last is not None:  # the first line is written in any case
            return None
        if self._load is not None:
            self._load.read(moment, host.cpu_time)
        gpu = self._gpus.read(host.pids, moment)
        cores = self._compute_cores(moment, host.cpu_time)
        self._gpu_ram = _larger(self._gpu_ram, gpu.ram)
        self.last = Sample(self._clock.timestamp(moment), cores, host.ram, gpu.use, gpu.ram)
        return self.last

    def mark(self) -> None:
        """Take note of the peaks so far, without a sample."""
        self.tree.mark()

    @property
    def peaks(self) -> Peaks:
        """The largest use so far, of RAM also between two readings."""
        memory = self.tree.memory
        return Peaks(memory.peak, self._gpu_ram, self._gpus.source, memory.source)

    def bound_cores(self, started: Seconds, ended: Seconds) -> float | None:
        """Return the most cores that may have been busy on average from start to end.

        One core counts as busy since the last reading; None if nothing could be read.
        """
        if self._cpu_before is None or ended <= started:
            return None
        moment, cpu_time = self._cpu_before
        return (cpu_time + max(0.0, ended - moment)) / (ended - started)

    def _compute_cores(self, moment: Seconds, cpu_time: Seconds | None) -> float | None:
        """Return the busy cores since the reading before, None for the first one."""
        before, self._cpu_before = (
            self._cpu_before,
            None if cpu_time is None else (moment, cpu_time),
        )
        if before is None or cpu_time is None or moment <= before[0]:
            return None
        return round(max(0.0, cpu_time - before[1]) / (moment - before[0]), 4)


def _larger(peak: Bytes | None, reading: Bytes | None) -> Bytes | None:
    """Return the larger of two readings; None is no reading, but 0 is one."""
    return max((value for value in (peak, reading) if value is not None), default=None)
