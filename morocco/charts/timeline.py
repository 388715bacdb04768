"""Logs as the data of a picture: runs as pandas frames, grouped and thinned for the eye.

A line is a frame of the columns `time` (seconds since the start of the run) and `value`; NaN is a
gap. Lines are numbered by row, as the times of a log may repeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from morocco.charts.style import COLOURS, GREY, GRID, INK, make_printable, save, use_style
from morocco.errors import DataError
from morocco.logs.discovery import Collection
from morocco.logs.log import INIT_SIZE, Log, Size, group_by_size, group_by_task
from morocco.tasks import TASKS
from morocco.util.files import write_output
from morocco.util.units import GIB, Seconds, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Transform
    from pandas import DataFrame, Series

OUTLIER = 0.1
"""A run further off the median run time of its group than this share of it is labelled."""

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
class TimelineRun:
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
class SizeGroup:
    """The runs of one input size and batch size."""

    size: Size
    runs: tuple[TimelineRun, ...]
    colour: str

    @cached_property
    def run_time(self) -> Seconds:
        """The median."""
        return median(run.time for run in self.runs)

    @cached_property
    def outliers(self) -> list[TimelineRun]:
        """The runs much longer or shorter than the median."""
        usual = self.run_time
        return [run for run in self.runs if abs(run.time - usual) > OUTLIER * usual]

    @property
    def empty(self) -> list[TimelineRun]:
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
    groups: tuple[SizeGroup, ...]

    @property
    def runs(self) -> list[TimelineRun]:
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

    def extremes(self, run: TimelineRun, panel: Panel) -> DataFrame:
        """Return the readings of a run, no more than can be told apart."""
        return keep_extremes(run.line(panel), self.span / _LINE_COLUMNS)

    def means(self, run: TimelineRun, panel: Panel) -> DataFrame:
        """Return the mean of the readings of a run over time."""
        return take_means(run.line(panel), self.mean_step)


def group_runs(logs: Iterable[Log], colours: Mapping[Size, str]) -> tuple[SizeGroup, ...]:
    """Return the groups of one picture, sorted by size."""
    sizes = sorted(group_by_size(logs).items())
    return tuple(SizeGroup(size, tuple(map(_read_run, of)), colours[size]) for size, of in sizes)


def _read_run(log: Log) -> TimelineRun:
    """Return a log as a run."""
    import pandas

    frame = pandas.DataFrame(log.columns).rename(columns={"timestamp": "time"})
    frame["time"] -= frame["time"].iloc[0]
    for panel in PANELS:
        frame[panel.key] /= panel.scale
    return TimelineRun(log.path.index, log.run_time, frame)


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


_LABEL_WIDTH = 0.045
"""Of the time axis: outliers that end closer together share a label."""
_NAMES, _MEDIANS, _COUNTS = 0.015, 0.881, 0.892
"""Where the columns of text stand, as shares of the figure's width."""


class _End(NamedTuple):
    """Where the line of a run ends, and the index of the run."""

    time: Seconds
    height: float
    run: int


def render(picture: Picture, suffix: str) -> bytes:
    """Return the image of a picture; `suffix` is `.png`, `.svg` or `.pdf`."""
    return save(lambda: _draw(picture), suffix)


def _draw(picture: Picture) -> Figure:
    from matplotlib.figure import Figure

    rows = 0.24 * len(picture.groups)
    heights = [rows + 0.1, *(0.5 if isnan(picture.peaks[panel.key]) else 1.5 for panel in PANELS)]
    figure = Figure(figsize=(12, max(8, 6.5 + rows)))
    grid = {"height_ratios": heights, "hspace": 0.13, "left": 0.205, "right": 0.825}
    grid |= {"top": 0.905, "bottom": 0.095}
    strip, *panels = figure.subplots(1 + len(PANELS), sharex=True, gridspec_kw=grid)
    strip.set_xlim(0, 1.07 * picture.span)  # room for the labels of outliers
    _draw_strip(strip, picture)
    for axes, panel in zip(panels, PANELS, strict=True):
        _draw_panel(axes, panel, picture)
    _mark_init([strip, *panels], picture)
    panels[-1].set_xlabel("seconds since start", color=GREY)
    figure.text(_NAMES, 0.95, picture.title, size=16, weight="bold")
    figure.text(_NAMES, 0.015, _explain(picture), size=8, color=GREY)
    return figure


def _explain(picture: Picture) -> str:
    """Return the line of small print under the panels."""
    notes = ["● end of a run", "❙ median"]
    if any(group.empty for group in picture.groups):
        notes.append("○ empty: a log without readings")
    if any(group.outliers for group in picture.groups):
        notes.append(f"two digits: index of a run more than {OUTLIER:.0%} off the median")
    if picture.crowded:
        notes.append(f"CPU and GPU use: mean of {picture.mean_step:.1f} s, faint: single readings")
    return "     ".join(notes)


def _beside(axes: Axes, y: Transform) -> Transform:
    """Return coordinates for text beside the axes: x over the figure, y as given."""
    from matplotlib.transforms import blended_transform_factory

    return blended_transform_factory(axes.figure.transFigure, y)


def _draw_strip(axes: Axes, picture: Picture) -> None:
    axes.set_axis_off()
    axes.set_ylim(len(picture.groups) - 0.4, -0.6)
    beside = _beside(axes, axes.transAxes)
    axes.text(_MEDIANS, 1.05, "median", transform=beside, ha="right", size=9, color=GREY)
    for row, group in enumerate(picture.groups):
        _draw_legend(axes, row, group)
        _draw_ends(axes, row, group)
        ends = [_End(run.time, row, run.index) for run in group.outliers]
        _label(axes, ends, group.colour, picture.span)


def _draw_legend(axes: Axes, row: int, group: SizeGroup) -> None:
    beside = _beside(axes, axes.transData)
    sample = (_NAMES + 0.001, _NAMES + 0.016)
    axes.plot(sample, (row, row), color=group.colour, lw=3, transform=beside, clip_on=False)
    axes.text(_NAMES + 0.025, row, group.name(), transform=beside, va="center")
    time = f"{group.run_time:.1f} s"
    axes.text(_MEDIANS, row, time, transform=beside, va="center", ha="right")
    axes.text(_COUNTS, row, group.count(), transform=beside, va="center")


def _draw_ends(axes: Axes, row: int, group: SizeGroup) -> None:
    """Draw a dot where each run ends and a bar at their median."""
    axes.axhline(row, color=GRID, lw=0.8)
    axes.vlines(group.run_time, row - 0.4, row + 0.4, color=group.colour, lw=2)
    full = [run.time for run in group.runs if not run.empty]
    empty = [run.time for run in group.empty]
    axes.plot(full, [row] * len(full), "o", ms=6, mfc=group.colour, mec="white", mew=0.8)
    axes.plot(empty, [row] * len(empty), "o", ms=5, mfc="white", mec=group.colour)


def _label(axes: Axes, ends: Iterable[_End], colour: str, span: Seconds, lift: float = 0) -> None:
    """Write the index of each run right of its end, `lift` pt up; neighbours share a label."""
    for cluster in _cluster(ends, _LABEL_WIDTH * span):
        axes.annotate(
            ", ".join(f"{run:02d}" for run in sorted(end.run for end in cluster)),
            (cluster[-1].time, cluster[-1].height),
            (6, lift),
            textcoords="offset points",
            va="center",
            size=8,
            color=colour,
        )


def _cluster(ends: Iterable[_End], width: Seconds) -> list[list[_End]]:
    clusters: list[list[_End]] = []
    for end in sorted(ends):
        if clusters and end.time - clusters[-1][-1].time < width:
            clusters[-1].append(end)
        else:
            clusters.append([end])
    return clusters


def _draw_panel(axes: Axes, panel: Panel, picture: Picture) -> None:
    beside = _beside(axes, axes.transAxes)
    axes.text(_NAMES, 1, panel.name, transform=beside, va="top", weight="bold")
    axes.text(_NAMES, 1, f"\n{panel.unit}", transform=beside, va="top", color=GREY)
    peak = picture.peaks[panel.key]
    if isnan(peak):
        _say_empty(axes, panel, picture)
        return
    axes.set_ylim(0, 1.08 * max(peak, panel.least) or 1.0)
    for group in picture.groups:
        _draw_group(axes, panel, group, picture)


def _say_empty(axes: Axes, panel: Panel, picture: Picture) -> None:
    measured = set(picture.peaks.dropna().index)
    no_gpu = "ram" in measured and not measured & {"gpu_usage", "gpu_ram"}
    text = "not measured"
    if no_gpu and panel.key.startswith("gpu"):
        text = "no GPU: no process of the task was seen on one"
    where, box = axes.transAxes, {"facecolor": "white", "edgecolor": "none"}
    axes.text(0.5, 0.5, text, transform=where, ha="center", va="center", color=GREY, bbox=box)
    axes.set_yticks([])


def _draw_group(axes: Axes, panel: Panel, group: SizeGroup, picture: Picture) -> None:
    """Draw the line of each run and name the outliers at the end of theirs."""
    legible = 0.05 * axes.get_ylim()[1]  # on the axis itself a label would not be
    ends = []
    for run in group.runs:
        end = _draw_run(axes, panel, run, group.colour, picture)
        if end and end.height > legible and run in group.outliers:
            ends.append(end)
            axes.plot(end.time, end.height, "o", ms=3, color=group.colour)
    # Above the lines that go on: to hide a piece of one would look like a gap.
    _label(axes, ends, group.colour, picture.span, lift=6)


def _draw_run(
    axes: Axes, panel: Panel, run: TimelineRun, colour: str, picture: Picture
) -> _End | None:
    """Return where the line ends; None where the run has no reading."""
    line = picture.extremes(run, panel)
    if picture.needs_mean(panel):
        _draw_line(axes, line, color=colour, lw=0.6, alpha=0.15, zorder=1.5)
        line = picture.means(run, panel)
    _draw_line(axes, line, color=colour, lw=1.1, alpha=0.8)
    readings = line.dropna()
    if readings.empty:
        return None
    time, height = readings.iloc[-1]
    return _End(time, height, run.index)


def _draw_line(axes: Axes, line: DataFrame, **style: Any) -> None:
    # A line cannot show a reading between two gaps, a dot can.
    axes.plot(line["time"], line["value"], marker=".", markevery=find_lone(line), **style)


def _mark_init(rows: Sequence[Axes], picture: Picture) -> None:
    """Mark the end of each 1_1 run with a thin line, and their median, the init time."""
    for group in (group for group in picture.groups if group.size == INIT_SIZE):
        for axes in rows:
            for run in group.runs:
                axes.axvline(run.time, color=group.colour, lw=0.7, alpha=0.25)
            axes.axvline(group.run_time, color=group.colour, lw=1, ls=(0, (4, 3)))
        where = rows[0].get_xaxis_transform()
        text = f"init time {group.run_time:.1f} s"
        side = "right" if group.run_time > 0.85 * picture.span else "center"
        rows[0].text(group.run_time, 1.05, text, transform=where, ha=side)


SUFFIXES = (".png", ".svg", ".pdf")
"""The kinds of image, as the end of a path names them."""


def plot(collection: Collection, image: Path) -> list[Path]:
    """Draw a figure for each model and task; return the files written.

    `{model}` and `{task}` in the path `image` stand for their names. DataError where the path ends
    in none of `SUFFIXES` or cannot tell several figures apart, OutputError where a file cannot be
    written.
    """
    figures = group_by_task(collection.logs)
    _check_suffix(image)
    _check_marks(image, figures)
    colours = _choose_colours(collection.logs)
    written = []
    for (model, task), logs in figures.items():
        title = _make_title(task, model if collection.many_models else "")
        path = _fill_marks(image, model, task)
        drawn = render(Picture(title, group_runs(logs, colours)), path.suffix.lower())
        write_output(path, drawn, "an image")
        written.append(path)
    return written


def draw_runs(collection: Collection) -> dict[tuple[str, str], Figure]:
    """Return a figure for each model and task."""
    colours = _choose_colours(collection.logs)
    pictures = {
        (model, task): Picture(
            _make_title(task, model if collection.many_models else ""), group_runs(logs, colours)
        )
        for (model, task), logs in group_by_task(collection.logs).items()
    }
    with use_style():
        return {key: _draw(picture) for key, picture in pictures.items()}


def _make_title(task: str, model: str) -> str:
    title = TASKS[task].title if task in TASKS else task
    title += f", {model}" if model else ""
    return make_printable(title)


def _check_suffix(image: Path) -> None:
    if image.suffix.lower() not in SUFFIXES:
        kinds = ", ".join(SUFFIXES)
        raise DataError(f"Cannot draw {image}: the name of an image must end in one of {kinds}.")


def _check_marks(image: Path, figures: Mapping[tuple[str, str], object]) -> None:
    models, tasks = ({names[part] for names in figures} for part in (0, 1))
    counts = {"model": len(models), "task": len(tasks)}
    missing = [noun for noun, n in counts.items() if n > 1 and f"{{{noun}}}" not in str(image)]
    if missing:
        many = " and ".join(plural(counts[noun], noun) for noun in missing)
        name = "_".join([image.stem, *(f"{{{noun}}}" for noun in missing)]) + image.suffix
        raise DataError(
            f"The logs are of {many}, a figure each, but {image} is one file. "
            f"Use `morocco plot PATH... '{image.with_name(name)}'`."
        )


def _fill_marks(image: Path, model: str, task: str) -> Path:
    path = str(image)
    for mark, name in (("{model}", model), ("{task}", task)):
        # A name from somebody's zip must not lead out of the folder of the images.
        path = path.replace(mark, name.replace("/", "_").replace("..", "_"))
    return Path(path)


def _choose_colours(logs: Iterable[Log]) -> dict[Size, str]:
    """Give each group its colour, the same one in every figure."""
    sizes = sorted({log.path.size for log in logs} - {INIT_SIZE})
    colours = COLOURS if len(sizes) <= len(COLOURS) else _blend_colours(len(sizes))
    return {INIT_SIZE: INK, **dict(zip(sizes, colours, strict=False))}


def _blend_colours(count: int) -> tuple[str, ...]:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    # The last tenth of viridis is too pale for a line on white.
    return tuple(to_hex(colormaps["viridis"](0.87 * i / (count - 1))) for i in range(count))
