"""Clocks, heat, power and throttling of one GPU, as far as a target keeps it busy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median_low
from typing import TYPE_CHECKING, Any, NamedTuple

from morocco.hardware.info import Watts
from morocco.util.units import Seconds

if TYPE_CHECKING:
    from morocco.hardware.nvml import Nvml

Megahertz = int
Celsius = int

SLOWED = 0.05
"""Share of its time at work for which a GPU may be slowed down before that is told."""
_LEAST: Seconds = 1.5
"""More than one reading: a single one may fall on a change of clocks, which looks the same."""

# Of the C library: clocks, sensors, policies and reasons, the same in all its versions.
_SM, _MEMORY, _DIE = 1, 2, 0
_BY_POWER, _BY_HEAT = 0, 1
_IDLE = 0x1
_POWER_CAP, _HARDWARE, _SYNC_BOOST = 0x4, 0x8, 0x10
_DRIVER_HEAT, _HARDWARE_HEAT, _POWER_BRAKE = 0x20, 0x40, 0x80
_SLOWDOWN = _HARDWARE | _DRIVER_HEAT | _HARDWARE_HEAT | _POWER_BRAKE


@dataclass(frozen=True)
class GpuThrottling:
    """For how long a busy GPU gave each reason for lower clocks; several may hold at once.

    Being idle and clocks that somebody has set are no throttling.
    """

    power_cap: Seconds | None
    """The power limit; usual on a GPU that works as hard as it can, and no slowdown."""
    sync_boost: Seconds | None
    """Another GPU of its group is slower; no slowdown of its own."""
    driver_heat: Seconds | None
    """The driver lowered the clocks for heat."""
    hardware_heat: Seconds | None
    """The GPU lowered them itself for heat, by half or more."""
    power_brake: Seconds | None
    """The power supply asked for it."""
    hardware: Seconds | None
    """The GPU lowered them itself, for these or other reasons."""
    slowdown: Seconds | None
    """Any of the four before, each moment counted once."""


@dataclass(frozen=True)
class GpuClocks:
    """How fast one GPU ran while the target kept it busy; None for what it does not tell."""

    gpu: int
    """The index of the GPU."""
    busy: Seconds | None
    """The time that the readings stand for: one about every second that the GPU was at work."""
    sm_clock: Megahertz | None
    """The median."""
    sm_clock_lowest: Megahertz | None
    sm_clock_max: Megahertz | None
    """The highest that the GPU can do."""
    memory_clock: Megahertz | None
    """The median."""
    memory_clock_lowest: Megahertz | None
    temperature: Celsius | None
    """The highest."""
    power: Watts | None
    """The mean."""
    power_highest: Watts | None
    throttling: GpuThrottling | None
    """None if the driver gives no reasons."""
    heat_time: Seconds | None
    """For which heat held the clocks down during the run, as the driver counts."""
    power_time: Seconds | None
    """For which the power limit did."""

    @property
    def slowdown(self) -> Seconds | None:
        """How long heat, the hardware or the power supply slowed it down; None if unknown."""
        return self.throttling.slowdown if self.throttling else self.heat_time

    def is_slowed(self, share: float = SLOWED) -> bool:
        """Return whether it was slowed down for more than this share of its time at work."""
        if not self.busy or self.slowdown is None:
            return False
        return self.slowdown >= _LEAST and self.slowdown > share * self.busy


def describe_slowdown(clocks: GpuClocks) -> str:
    """Return for how long a GPU was slowed down and why, as the end of a sentence."""
    causes = " and ".join(_name_causes(clocks.throttling)) or "heat"
    text = f"slowed down for {clocks.slowdown:.0f} of {clocks.busy:.0f} s at work by {causes}"
    if clocks.temperature is not None:
        text += f", up to {clocks.temperature} °C"
    if clocks.sm_clock is not None:
        limit = "" if clocks.sm_clock_max is None else f" of {clocks.sm_clock_max}"
        text += f", SM clock {clocks.sm_clock}{limit} MHz"
    return text


def _name_causes(throttling: GpuThrottling | None) -> Iterator[str]:
    if throttling is None:
        return
    heat, brake = (throttling.driver_heat or throttling.hardware_heat), throttling.power_brake
    if heat:
        yield "heat"
    if brake:
        yield "the power supply"
    if throttling.hardware and not heat and not brake:
        yield "its hardware"


class ClockReading(NamedTuple):
    """A GPU at one moment; None for what it does not tell."""

    span: Seconds
    """The time it stands for."""
    sm_clock: Megahertz | None = None
    memory_clock: Megahertz | None = None
    temperature: Celsius | None = None
    power: Watts | None = None
    reasons: int | None = None
    """Why the clocks are not higher, as the driver's bit mask."""


class ClockMeter:
    """Reads the clocks of one GPU; never raises, since a run can do without them."""

    def __init__(self, nvml: Nvml, handle: Any) -> None:
        self._nvml, self._handle = nvml, handle
        self._readings: list[ClockReading] = []
        self._highest: Megahertz | None = None
        self._violations: tuple[Seconds | None, Seconds | None] = (None, None)

    def mark(self) -> None:
        """Read what is needed once, before the run."""
        self._highest = self._ask("nvmlDeviceGetMaxClockInfo", _SM)
        self._violations = self._read_violations()

    def read(self, span: Seconds, use: float | None) -> None:
        """Take a reading for the last `span`, unless the GPU is idle; `use` may be unknown."""
        reasons = None if use == 0 else self._read_reasons()
        if use == 0 or (reasons is not None and reasons & _IDLE):
            return
        power = self._ask("nvmlDeviceGetPowerUsage")
        reading = ClockReading(
            span,
            self._ask("nvmlDeviceGetClockInfo", _SM),
            self._ask("nvmlDeviceGetClockInfo", _MEMORY),
            self._ask("nvmlDeviceGetTemperature", _DIE),
            None if power is None else power / 1000,
            reasons,
        )
        self._readings.append(reading)

    def read_slowdown(self) -> tuple[str, ...] | None:
        """Return what slows the GPU down now, even if it is idle; None if it does not tell."""
        throttling = _sum_up_reasons([ClockReading(1.0, reasons=self._read_reasons())])
        return None if throttling is None else tuple(_name_causes(throttling))

    def read_temperature(self) -> Celsius | None:
        """Return the temperature now; None if the GPU does not tell."""
        return self._ask("nvmlDeviceGetTemperature", _DIE)

    def summarise(self, gpu: int) -> GpuClocks | None:
        """Return what was read of GPU `gpu` since `mark`; None if it was never at work."""
        if not self._readings:
            return None
        before, after = self._violations, self._read_violations()
        heat, power = (_subtract(*pair) for pair in zip(after, before, strict=True))
        return summarise(gpu, self._readings, self._highest, heat, power)

    def _read_reasons(self) -> int | None:
        reasons = self._ask("nvmlDeviceGetCurrentClocksEventReasons")
        if reasons is None:  # the name before R535
            reasons = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons")
        return None if reasons is None else int(reasons)

    def _read_violations(self) -> tuple[Seconds | None, Seconds | None]:
        """Return for how long heat and the power limit have held the clocks down so far."""
        heat, power = (
            self._ask("nvmlDeviceGetViolationStatus", policy) for policy in (_BY_HEAT, _BY_POWER)
        )
        return _from_nano(heat), _from_nano(power)

    def _ask(self, name: str, *arguments: int) -> Any | None:
        return self._nvml.ask(name, self._handle, *arguments)


def _from_nano(violation: Any | None) -> Seconds | None:
    return None if violation is None else violation.violationTime / 1e9


def _subtract(after: Seconds | None, before: Seconds | None) -> Seconds | None:
    """Return the difference; None if either is unknown or the counter began anew."""
    if after is None or before is None or after < before:
        return None
    return round(after - before, 3)


def summarise(
    gpu: int,
    readings: Sequence[ClockReading],
    highest: Megahertz | None = None,
    heat_time: Seconds | None = None,
    power_time: Seconds | None = None,
) -> GpuClocks:
    """Return what one or more readings of a GPU at work come to."""
    known = [_drop_unknown(column) for column in list(zip(*readings, strict=True))[1:5]]
    sm_clocks, memory_clocks, temperatures, powers = known
    return GpuClocks(
        gpu=gpu,
        busy=round(sum(reading.span for reading in readings), 3),
        sm_clock=median_low(sm_clocks) if sm_clocks else None,
        sm_clock_lowest=min(sm_clocks, default=None),
        sm_clock_max=highest,
        memory_clock=median_low(memory_clocks) if memory_clocks else None,
        memory_clock_lowest=min(memory_clocks, default=None),
        temperature=max(temperatures, default=None),
        power=round(fmean(powers), 3) if powers else None,
        power_highest=max(powers, default=None),
        throttling=_sum_up_reasons(readings),
        heat_time=heat_time,
        power_time=power_time,
    )


def _drop_unknown(values: Sequence[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _sum_up_reasons(readings: Sequence[ClockReading]) -> GpuThrottling | None:
    told = [(reading.span, reading.reasons) for reading in readings if reading.reasons is not None]
    if not told:
        return None

    def total(bits: int) -> Seconds:
        return round(sum(span for span, reasons in told if reasons & bits), 3)

    return GpuThrottling(
        power_cap=total(_POWER_CAP),
        sync_boost=total(_SYNC_BOOST),
        driver_heat=total(_DRIVER_HEAT),
        hardware_heat=total(_HARDWARE_HEAT),
        power_brake=total(_POWER_BRAKE),
        hardware=total(_HARDWARE),
        slowdown=total(_SLOWDOWN),
    )
