"""The beat: kept, counted, and ended at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from statistics import median

import pytest

from morocco.bench.sampling import Sampler
from morocco.logs.samples import Sample


class Readings:
    """Stands in for the meter: notes when it was read, and does what a test wants of a reading."""

    def __init__(self, during: Callable[[int], object] = lambda _: None) -> None:
        self.moments: list[float] = []
        self.written: list[Sample] = []
        self.failures: list[Exception] = []
        self._during = during

    def read(self, moment: float) -> Sample | None:
        self.moments.append(moment)
        self._during(len(self.moments))
        return Sample(moment)

    def sampler(self, period: float) -> Sampler:
        return Sampler(period, self.read, self.written.append, self.failures.append)

    def wait_for(self, count: int) -> None:
        wait_until(lambda: len(self.moments) >= count)


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_the_first_sample_is_that_of_the_start_and_taken_at_once() -> None:
    readings = Readings()
    sampler = readings.sampler(period=60)
    sampler.start(start := time.monotonic())
    assert readings.written == [Sample(start)]
    sampler.stop()


def test_the_beat_does_not_drift_by_the_time_a_reading_takes() -> None:
    period, slowness = 0.1, 0.03
    readings = Readings(during=lambda _: time.sleep(slowness))
    sampler = readings.sampler(period)
    sampler.start(start := time.monotonic())
    readings.wait_for(16)
    sampler.stop()
    late = [(moment - start) % period for moment in readings.moments]
    assert median(late) < slowness
    assert readings.moments == sorted(readings.moments)


def test_no_beat_comes_early() -> None:
    period = 0.02
    readings = Readings()
    sampler = readings.sampler(period)
    sampler.start(start := time.monotonic())
    readings.wait_for(20)
    beats = sampler.stop()
    assert readings.moments[-1] >= start + (beats.due - 1) * period - 0.001
    assert beats.due - beats.missed == len(readings.moments) == len(readings.written)


def test_beats_that_come_too_late_are_skipped_and_counted() -> None:
    period = 0.1
    readings = Readings(during=lambda count: time.sleep(0.35 if count == 3 else 0))
    sampler = readings.sampler(period)
    sampler.start(start := time.monotonic())
    readings.wait_for(6)
    beats = sampler.stop()
    assert beats.missed >= 3
    assert beats.due - beats.missed == len(readings.moments)
    assert readings.moments[3] >= start + 6 * period - 0.001


def test_beats_missed_at_the_very_end_are_counted_as_well() -> None:
    hung = threading.Event()
    readings = Readings(during=lambda count: count < 2 or hung.wait(60))
    sampler = readings.sampler(period=0.05)
    sampler.start(time.monotonic())
    readings.wait_for(2)
    time.sleep(0.5)
    threading.Timer(0.1, hung.set).start()
    beats = sampler.stop()
    assert beats.missed >= 5
    assert beats.due - beats.missed == 2


def test_stop_wakes_the_thread_at_once() -> None:
    sampler = Readings().sampler(period=60)
    sampler.start(time.monotonic())
    asked = time.monotonic()
    beats = sampler.stop()
    assert time.monotonic() - asked < 5
    assert (beats.due, beats.missed) == (1, 0)


def test_nothing_is_read_after_stop() -> None:
    readings = Readings()
    sampler = readings.sampler(period=0.01)
    sampler.start(time.monotonic())
    readings.wait_for(3)
    sampler.stop()
    count = len(readings.moments)
    time.sleep(0.1)
    assert len(readings.moments) == count


def test_an_exception_in_the_thread_is_told_at_once_and_raised_by_stop() -> None:
    def fail(count: int) -> None:
        if count == 2:
            raise OSError("no room")

    readings = Readings(during=fail)
    sampler = readings.sampler(period=0.01)
    sampler.start(time.monotonic())
    wait_until(lambda: bool(readings.failures))
    with pytest.raises(OSError, match="no room") as raised:
        sampler.stop()
    assert readings.failures == [raised.value]
    assert len(readings.moments) == 2


def test_an_exception_of_the_first_reading_comes_at_once_and_stop_still_works() -> None:
    def fail(_: int) -> None:
        raise OSError("no room")

    sampler = Readings(during=fail).sampler(period=60)
    with pytest.raises(OSError, match="no room"):
        sampler.start(time.monotonic())
    sampler.stop()


def test_no_reading_writes_nothing() -> None:
    beats: list[float] = []
    written: list[Sample] = []
    sampler = Sampler(0.01, beats.append, written.append, lambda _: None)
    sampler.start(time.monotonic())
    wait_until(lambda: len(beats) >= 3)
    sampler.stop()
    assert written == []
