"""Logs as the data of a picture: runs as pandas frames, grouped and thinned for the eye.

A line is a frame of the columns `time` (seconds since the start of the run) and `value`; NaN is a
gap. Lines are numbered by row, as the times of a log may repeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING

from morocco.logs import Log
from morocco.units import GIB, Seconds, plural

if TYPE_CHECKING:
    from pandas import DataFrame, Series

OUTLIER = 0.1
"""A run further off the median run time of its group than this share of it is labelled."""

Size = tuple[int, int]
"""Input size and batch size: what makes a group."""

INIT: Size = (1, 1)

_LINE_COLUMNS = 800
"""A line keeps the extremes of this many stretches of the time axis: about one a pixel."""
_MEAN_COLUMNS = 120
_CROWDED = 3
"""Lines that jump up and down blot with more readings than this in a column of the mean."""


@dataclass(frozen=True)
class Panel:
    """One reading over time."""

    name: str
    unit: str
    key: str
    """The field of `Sample`."""
    scale: float
    """How many of the field's units make one of the panel's."""
    least: float
    """The axis reaches at least this high."""
    jumps: bool
    """Whether readings jump up and down, so that long runs need a mean to be legible."""


PANELS = (
    Panel("CPU", "cores", "cpu_usage", 1, least=1, jumps=True),
    Panel("RAM", "GB", "ram", GIB, least=0, jumps=False),
    Panel("GPU use", "%", "gpu_usage", 0.01, least=100, jumps=True),
    Panel("GPU RAM", "GB", "gpu_ram", GIB, least=0, jumps=False),
)


@dataclass(frozen=True, eq=False)
class Run:
    """A log, ready to be drawn."""

    index: int
    time: Seconds
    """From start to end."""
    frame: DataFrame
    """A row a sample: `time` since the start and the readings, in the units of `PANELS`."""

    @cached_property
    def empty(self) -> bool:
        """Whether there is no reading at all; the run time is known all the same."""
        return not self.frame.drop(columns="time").count().any()

    def line(self, panel: Panel) -> DataFrame:
        """Return every reading of a panel."""
        return self.frame[["time", panel.key]].set_axis(["time", "value"], axis=1)


@dataclass(frozen=True)
class Group:
    """The runs of one input size and batch size."""

    size: Size
    runs: tuple[Run, ...]
    colour: str

    @cached_property
    def run_time(self) -> Seconds:
        """The median."""
        return median(run.time for run in self.runs)

    @cached_property
    def outliers(self) -> list[Run]:
        """The runs much longer or shorter than the median."""
        usual = self.run_time
        return [run for run in self.runs if abs(run.time - usual) > OUTLIER * usual]

    @property
    def empty(self) -> list[Run]:
        """The runs without any reading."""
        return [run for run in self.runs if run.empty]

    def name(self) -> str:
        """Return what the legend calls it."""
        return f"{plural(self.size[0], 'record')}, batch {self.size[1]:,}"

    def count(self) -> str:
        """Return how many runs it has."""
        note = f", {len(self.empty)} empty" if self.empty else ""
        return plural(len(self.runs), "run") + note


@dataclass(frozen=True)
class Picture:
    """What one figure shows."""

    title: str
    groups: tuple[Group, ...]

    @property
    def runs(self) -> list[Run]:
        """Every run."""
        return [run for group in self.groups for run in group.runs]

    @cached_property
    def span(self) -> Seconds:
        """The longest run time."""
        return max(run.time for run in self.runs) or 1.0

    @cached_property
    def crowded(self) -> bool:
        """Whether the longest run has more readings than the eye can follow one by one."""
        return max(len(run.frame) for run in self.runs) > _CROWDED * _MEAN_COLUMNS

    @property
    def mean_step(self) -> Seconds:
        """How many seconds a point of the mean stands for."""
        return self.span / _MEAN_COLUMNS

    @cached_property
    def peaks(self) -> Series[float]:
        """The highest reading of all runs by the key of the panel, NaN where there is none."""
        import pandas

        return pandas.concat([run.frame for run in self.runs]).max()

    def needs_mean(self, panel: Panel) -> bool:
        """Return whether single readings are no more than the background of their mean."""
        return panel.jumps and self.crowded

    def extremes(self, run: Run, panel: Panel) -> DataFrame:
        """Return the readings of a run, no more than can be told apart."""
        return keep_extremes(run.line(panel), self.span / _LINE_COLUMNS)

    def means(self, run: Run, panel: Panel) -> DataFrame:
        """Return the mean of the readings of a run over time."""
        return take_means(run.line(panel), self.mean_step)


def group_runs(logs: Iterable[Log], colours: Mapping[Size, str]) -> tuple[Group, ...]:
    """Return the groups of one picture, sorted by size."""
    runs: dict[Size, list[Run]] = {}
    for log in logs:
        runs.setdefault((log.path.input_size, log.path.batch_size), []).append(_read_run(log))
    return tuple(Group(size, tuple(runs[size]), colours[size]) for size in sorted(runs))


def _read_run(log: Log) -> Run:
    """Return a log as a run."""
    import pandas

    frame = pandas.DataFrame(log.columns).rename(columns={"timestamp": "time"})
    frame["time"] -= frame["time"].iloc[0]
    for panel in PANELS:
        frame[panel.key] /= panel.scale
    return Run(log.path.index, log.run_time, frame)


def keep_extremes(line: DataFrame, step: Seconds) -> DataFrame:
    """Keep the lowest and the highest point of each `step` seconds, and one point of a gap."""
    columns = line["value"].fillna(0).groupby(_number_columns(line, step))
    return line.loc[sorted({*columns.idxmin(), *columns.idxmax()})]


def take_means(line: DataFrame, step: Seconds) -> DataFrame:
    """Put their mean in the place of the points of each `step` seconds; gaps stay."""
    return line.groupby(_number_columns(line, step)).mean()


def _number_columns(line: DataFrame, step: Seconds) -> Series[int]:
    """Number the points by column: another begins after `step` seconds and around a gap."""
    marks = line.assign(time=line["time"] // step, value=line["value"].isna())
    return (marks != marks.shift()).any(axis=1).astype(int).cumsum()


def find_lone(line: DataFrame) -> Series[bool]:
    """Tell which readings stand between two gaps, where a line cannot show them."""
    gaps = line["value"].isna()
    return ~gaps & gaps.shift(1, fill_value=True) & gaps.shift(-1, fill_value=True)
