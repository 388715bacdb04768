"""Host and GPU readings put together, from stand-ins that say what a test wants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from morocco.bench.sampling import Meter
from morocco.hardware.gpu import GpuReading, Gpus
from morocco.hardware.host import HostReading, ProcessTree
from morocco.hardware.memory import TargetMemory
from morocco.logs.samples import Peaks, Sample
from morocco.util.units import AnchoredClock

ENDED = HostReading(None, None, ())


class Tree:
    """A process tree that is read as many times as it has readings."""

    def __init__(self, readings: Sequence[HostReading]) -> None:
        self._readings = iter(readings)
        self.memory = TargetMemory()

    def read(self) -> HostReading:
        reading = next(self._readings)
        if reading.ram is not None:
            self.memory.raise_peak(reading.ram)
        return reading


class Cards:
    """GPUs that note whom they were asked about."""

    source = "process"

    def __init__(self, readings: Sequence[GpuReading]) -> None:
        self._readings = iter(readings)
        self.asked: list[Sequence[int]] = []

    def read(self, pids: Sequence[int], moment: float) -> GpuReading:  # noqa: ARG002
        self.asked.append(pids)
        return next(self._readings, GpuReading())


def make_meter(host: Sequence[HostReading], gpus: Sequence[GpuReading] = ()) -> Meter:
    return Meter(cast(ProcessTree, Tree(host)), cast(Gpus, Cards(gpus)), AnchoredClock(1000))


def read(meter: Meter, moment: float) -> Sample:
    sample = meter.read(moment)
    assert sample is not None
    return sample


def cores(*beats: tuple[float, float | None]) -> list[float | None]:
    """Return the CPU use for beats of (moment, CPU time so far)."""
    meter = make_meter([HostReading(cpu_time, 5, (7,)) for _, cpu_time in beats])
    return [read(meter, moment).cpu_usage for moment, _ in beats]


def test_a_sample_holds_all_four_readings_on_the_wall_clock() -> None:
    host = [HostReading(1.0, 5, (7,)), HostReading(2.0, 6, (7,))]
    meter = make_meter(host, [GpuReading(0.5, 8), GpuReading(0.75, 9)])
    assert read(meter, 1) == Sample(1001, None, 5, 0.5, 8)
    assert read(meter, 3) == Sample(1003, 0.5, 6, 0.75, 9)


def test_the_first_cpu_use_is_unknown() -> None:
    assert cores((0, 1.5)) == [None]


def test_cpu_use_is_in_cores_since_the_reading_before() -> None:
    assert cores((0, 1.0), (0.5, 3.0), (2.5, 3.0), (3.5, 3.25)) == [None, 4.0, 0.0, 0.25]


def test_cpu_use_is_unknown_after_a_gap() -> None:
    assert cores((0, 1.0), (1, None), (2, 3.0), (3, 4.0)) == [None, None, None, 1.0]


def test_cpu_use_is_never_negative_and_never_of_no_time() -> None:
    assert cores((0, 1.0), (1, 0.5), (1, 0.75)) == [None, 0.0, None]


def test_an_ended_tree_gives_no_sample_and_no_gpu_is_asked() -> None:
    cards = Cards([])
    tree = Tree([HostReading(0.0, 5, (7, 8)), ENDED])
    meter = Meter(cast(ProcessTree, tree), cast(Gpus, cards), AnchoredClock(0))
    last = read(meter, 1)
    assert meter.read(2) is None
    assert meter.last == last
    assert cards.asked == [(7, 8)]


def test_the_peaks_are_the_largest_readings() -> None:
    host = [HostReading(0.0, ram, (7,)) for ram in (5, 9, 6)]
    meter = make_meter(host, [GpuReading(0.5, ram) for ram in (3, 2, 4)])
    for moment in range(3):
        read(meter, moment)
    assert meter.peaks == Peaks(9, 4, "process", "rss")


def test_what_was_never_measured_has_no_peak() -> None:
    meter = make_meter([HostReading(None, None, (7,))])
    assert read(meter, 1) == Sample(1001)
    assert (meter.peaks.ram, meter.peaks.gpu_ram) == (None, None)


def test_nothing_used_is_a_reading_too() -> None:
    meter = make_meter([HostReading(0.0, 0, (7,))], [GpuReading(0.0, 0)])
    sample = read(meter, 1)
    assert (sample.ram, sample.gpu_usage, sample.gpu_ram) == (0, 0.0, 0)
    assert (meter.peaks.ram, meter.peaks.gpu_ram) == (0, 0)
