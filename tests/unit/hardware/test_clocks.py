"""What readings of a GPU's clocks come to."""

from __future__ import annotations

import pytest

from morocco.hardware.clocks import ClockReading, GpuThrottling, describe_slowdown, summarise

IDLE, APPLICATION, CAP, HARDWARE, BOOST = 0x1, 0x2, 0x4, 0x8, 0x10
DRIVER_HEAT, HARDWARE_HEAT, BRAKE, DISPLAY = 0x20, 0x40, 0x80, 0x100


def reasons(*masks: int | None) -> GpuThrottling | None:
    """Return the throttling of readings that stand for one second each."""
    return summarise(0, [ClockReading(1.0, reasons=mask) for mask in masks]).throttling


def test_clocks_are_medians_and_lowest_while_temperature_and_power_are_highest() -> None:
    clocks = summarise(
        2,
        [
            ClockReading(1.0, 1410, 1593, 60, 300.0, 0),
            ClockReading(1.25, 1395, 1593, 64, 310.0, 0),
            ClockReading(1.0, 600, 810, 62, 200.0, 0),
        ],
        highest=1530,
    )
    assert (clocks.gpu, clocks.busy) == (2, 3.25)
    assert (clocks.sm_clock, clocks.sm_clock_lowest, clocks.sm_clock_max) == (1395, 600, 1530)
    assert (clocks.memory_clock, clocks.memory_clock_lowest) == (1593, 810)
    assert (clocks.temperature, clocks.power, clocks.power_highest) == (64, 270.0, 310.0)


def test_each_reason_is_summed_and_overlapping_slowdowns_count_once() -> None:
    found = reasons(CAP, HARDWARE | HARDWARE_HEAT, HARDWARE | BRAKE, DRIVER_HEAT, BOOST, 0)
    assert found == GpuThrottling(
        power_cap=1.0,
        sync_boost=1.0,
        driver_heat=1.0,
        hardware_heat=1.0,
        power_brake=1.0,
        hardware=2.0,
        slowdown=3.0,
    )


@pytest.mark.parametrize("mask", [0, APPLICATION, DISPLAY, CAP, BOOST])
def test_clocks_that_were_set_and_the_power_limit_are_no_slowdown(mask: int) -> None:
    clocks = summarise(0, [ClockReading(1.0, reasons=mask)] * 9)
    assert clocks.slowdown == 0
    assert not clocks.is_slowed()


@pytest.mark.parametrize(
    ("slow", "quick", "slowed"),
    [(1, 0, False), (2, 0, True), (2, 37, True), (2, 38, False), (5, 100, False)],
)
def test_a_gpu_is_slowed_by_more_than_one_reading_and_a_twentieth(
    slow: int, quick: int, slowed: bool
) -> None:
    readings = [ClockReading(1.0, reasons=BRAKE)] * slow + [ClockReading(1.0, reasons=0)] * quick
    assert summarise(0, readings).is_slowed() is slowed


def test_the_counter_of_the_driver_stands_in_for_reasons_that_are_not_given() -> None:
    readings = [ClockReading(1.0)] * 10
    assert summarise(0, readings).throttling is None
    assert not summarise(0, readings).is_slowed()
    hot = summarise(0, readings, heat_time=4.0, power_time=9.0)
    assert hot.is_slowed()
    assert describe_slowdown(hot) == "slowed down for 4 of 10 s at work by heat"


@pytest.mark.parametrize(
    ("mask", "cause"),
    [
        (DRIVER_HEAT, "by heat"),
        (HARDWARE | HARDWARE_HEAT, "by heat"),
        (HARDWARE | BRAKE, "by the power supply"),
        (HARDWARE, "by its hardware"),
        (HARDWARE | BRAKE | DRIVER_HEAT, "by heat and the power supply"),
    ],
)
def test_the_cause_of_a_slowdown_is_named(mask: int, cause: str) -> None:
    text = describe_slowdown(summarise(0, [ClockReading(1.0, reasons=mask)] * 3))
    assert text == f"slowed down for 3 of 3 s at work {cause}"


def test_what_is_not_told_is_none() -> None:
    clocks = summarise(0, [ClockReading(1.0), ClockReading(1.0)])
    assert clocks.busy == 2
    assert (clocks.sm_clock, clocks.memory_clock_lowest, clocks.temperature) == (None,) * 3
    assert (clocks.power, clocks.power_highest, clocks.slowdown) == (None,) * 3
