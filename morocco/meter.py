"""Host and GPU readings put together: one sample a beat, and the peaks of the run."""

from __future__ import annotations

from morocco.clock import Clock
from morocco.gpu import Gpus
from morocco.host import ProcessTree
from morocco.logs import Sample
from morocco.record import Peaks
from morocco.units import Bytes, Seconds


class Meter:
    """Reads a process tree and the GPUs it is on; used by one thread at a time."""

    def __init__(self, tree: ProcessTree, gpus: Gpus, clock: Clock) -> None:
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
