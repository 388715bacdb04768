"""Figures of runs over time: CPU, RAM, GPU use and GPU RAM, one figure for each model and task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from morocco.charts.curves import (
    PANELS,
    Curve,
    Panel,
    build_curve,
    describe_size,
    find_peak,
    keep_extremes,
    take_means,
)
from morocco.charts.style import COLOURS, GREY, GRID, INK, make_printable, save, use_style
from morocco.errors import DataError
from morocco.logs.discovery import Collection
from morocco.logs.log import INIT_SIZE, Log, Size, group_by_size, group_by_task
from morocco.tasks import TASKS
from morocco.util.files import check_free, write_output
from morocco.util.units import Seconds, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Transform

SUFFIXES = (".png", ".svg", ".pdf")
"""The kinds of image."""
OUTLIER = 0.1
"""A run is labelled if it is further off the median run time of its group than this share of it."""
_MAX_SIZES = 200
_CURVE_COLUMNS = 800
"""A curve keeps the extremes of this many stretches of the time axis: about one a pixel."""
_MEAN_COLUMNS = 120
_MAX_POINTS_PER_MEAN = 3
"""With more readings than this for each mean, curves that jump up and down are illegible."""
_LABEL_WIDTH = 0.045
"""Of the time axis: outliers that end closer together share a label."""
_NAMES_X, _MEDIANS_X, _COUNTS_X = 0.015, 0.881, 0.892
"""Where the columns of text are, as shares of the figure's width."""


@dataclass(frozen=True)
class SizeGroup:
    """The runs of one input size and batch size."""

    size: Size
    runs: tuple[Log, ...]
    colour: str

    @cached_property
    def run_time(self) -> Seconds:
        """The median run time."""
        return median(run.run_time for run in self.runs)

    @cached_property
    def outliers(self) -> list[Log]:
        """The runs that are much longer or shorter than the median."""
        median = self.run_time
        return [run for run in self.runs if abs(run.run_time - median) > OUTLIER * median]

    @cached_property
    def empty(self) -> list[Log]:
        """The runs without any reading; their run time is known even so."""
        return [run for run in self.runs if all(find_peak(p, [run]) is None for p in PANELS)]


@dataclass(frozen=True)
class Picture:
    """What one figure shows."""

    title: str
    groups: tuple[SizeGroup, ...]

    @property
    def runs(self) -> list[Log]:
        """Every run."""
        return [run for group in self.groups for run in group.runs]

    @cached_property
    def span(self) -> Seconds:
        """The longest run time."""
        return max(run.run_time for run in self.runs) or 1.0

    @property
    def mean_step(self) -> Seconds:
        """How many seconds each point of a mean covers."""
        return self.span / _MEAN_COLUMNS

    @cached_property
    def is_crowded(self) -> bool:
        """Whether the longest run has too many readings to follow each one."""
        return max(len(run.samples) for run in self.runs) > _MAX_POINTS_PER_MEAN * _MEAN_COLUMNS

    @cached_property
    def peaks(self) -> dict[Panel, float | None]:
        """The highest reading of all runs; None where there is none."""
        return {panel: find_peak(panel, self.runs) for panel in PANELS}


def _build_pictures(collection: Collection) -> dict[tuple[str, str], Picture]:
    """Return a picture for each model and task; a size has the same colour in all of them."""
    shown = (*collection.logs, *collection.single)
    sizes = sorted({log.path.size for log in shown} - {INIT_SIZE})
    palette = COLOURS if len(sizes) <= len(COLOURS) else _blend_colours(len(sizes))
    colours = {INIT_SIZE: INK, **dict(zip(sizes, palette, strict=False))}
    pictures = {}
    for (model, task), logs in group_by_task(shown).items():
        if (count := len(group_by_size(logs))) > _MAX_SIZES:
            raise DataError(
                f"{make_printable(task)} has runs of {count:,} sizes, and a figure shows at most "
                f"{_MAX_SIZES}. Name the logs to draw."
            )
        title = TASKS[task].title if task in TASKS else task
        title += f", {model}" if collection.many_models else ""
        groups = tuple(
            SizeGroup(size, tuple(same), colours[size])
            for size, same in sorted(group_by_size(logs).items())
        )
        pictures[model, task] = Picture(make_printable(title), groups)
    return pictures


def _blend_colours(count: int) -> tuple[str, ...]:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    # The last tenth of viridis is too pale for a line on white.
    return tuple(to_hex(colormaps["viridis"](0.87 * i / (count - 1))) for i in range(count))


class _End(NamedTuple):
    """Where the curve of a run ends, and the index of the run."""

    time: Seconds
    height: float
    run: int


def _draw(picture: Picture) -> Figure:
    from matplotlib.figure import Figure

    rows = 0.24 * len(picture.groups)
    heights = [rows + 0.1, *(0.5 if picture.peaks[panel] is None else 1.5 for panel in PANELS)]
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
    figure.text(_NAMES_X, 0.95, picture.title, size=16, weight="bold")
    figure.text(_NAMES_X, 0.015, _explain(picture), size=8, color=GREY)
    return figure


def _explain(picture: Picture) -> str:
    """Return the line of small print below the panels."""
    notes = ["● end of a run", "❙ median"]
    if any(group.empty for group in picture.groups):
        notes.append("○ empty: a log without readings")
    if any(group.outliers for group in picture.groups):
        notes.append(f"two digits: index of a run more than {OUTLIER:.0%} off the median")
    if picture.is_crowded:
        notes.append(f"CPU and GPU use: mean of {picture.mean_step:.1f} s, faint: single readings")
    return "     ".join(notes)


def _beside(axes: Axes, y: Transform) -> Transform:
    """Return coordinates for text beside the axes: x relative to the figure, y as given."""
    from matplotlib.transforms import blended_transform_factory

    return blended_transform_factory(axes.figure.transFigure, y)


def _draw_strip(axes: Axes, picture: Picture) -> None:
    axes.set_axis_off()
    axes.set_ylim(len(picture.groups) - 0.4, -0.6)
    beside = _beside(axes, axes.transAxes)
    axes.text(_MEDIANS_X, 1.05, "median", transform=beside, ha="right", size=9, color=GREY)
    for row, group in enumerate(picture.groups):
        _draw_legend(axes, row, group)
        _draw_ends(axes, row, group)
        ends = [_End(run.run_time, row, run.path.index) for run in group.outliers]
        _label(axes, ends, group.colour, picture.span)


def _draw_legend(axes: Axes, row: int, group: SizeGroup) -> None:
    beside = _beside(axes, axes.transData)
    sample = (_NAMES_X + 0.001, _NAMES_X + 0.016)
    axes.plot(sample, (row, row), color=group.colour, lw=3, transform=beside, clip_on=False)
    axes.text(_NAMES_X + 0.025, row, describe_size(group.size), transform=beside, va="center")
    time = f"{group.run_time:.1f} s"
    axes.text(_MEDIANS_X, row, time, transform=beside, va="center", ha="right")
    count = plural(len(group.runs), "run") + (f", {len(group.empty)} empty" if group.empty else "")
    axes.text(_COUNTS_X, row, count, transform=beside, va="center")


def _draw_ends(axes: Axes, row: int, group: SizeGroup) -> None:
    """Draw a dot where each run ends, and a bar at their median."""
    axes.axhline(row, color=GRID, lw=0.8)
    axes.vlines(group.run_time, row - 0.4, row + 0.4, color=group.colour, lw=2)
    names = {run.name for run in group.empty}
    full = [run.run_time for run in group.runs if run.name not in names]
    empty = [run.run_time for run in group.empty]
    axes.plot(full, [row] * len(full), "o", ms=6, mfc=group.colour, mec="white", mew=0.8)
    axes.plot(empty, [row] * len(empty), "o", ms=5, mfc="white", mec=group.colour)


def _label(axes: Axes, ends: Iterable[_End], colour: str, span: Seconds, lift: float = 0) -> None:
    """Write the index of each run right of its end, raised by `lift` points.

    Neighbours share a label.
    """
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
    axes.text(_NAMES_X, 1, panel.name, transform=beside, va="top", weight="bold")
    axes.text(_NAMES_X, 1, f"\n{panel.unit}", transform=beside, va="top", color=GREY)
    peak = picture.peaks[panel]
    if peak is None:
        _say_empty(axes, panel, picture)
        return
    axes.set_ylim(0, 1.08 * max(peak, panel.least) or 1.0)
    for group in picture.groups:
        _draw_group(axes, panel, group, picture)


def _say_empty(axes: Axes, panel: Panel, picture: Picture) -> None:
    measured = {panel.key for panel, peak in picture.peaks.items() if peak is not None}
    no_gpu = "ram" in measured and not measured & {"gpu_usage", "gpu_ram"}
    text = "not measured"
    if no_gpu and panel.key.startswith("gpu"):
        text = "no GPU: no process of the task was seen on one"
    where, box = axes.transAxes, {"facecolor": "white", "edgecolor": "none"}
    axes.text(0.5, 0.5, text, transform=where, ha="center", va="center", color=GREY, bbox=box)
    axes.set_yticks([])


def _draw_group(axes: Axes, panel: Panel, group: SizeGroup, picture: Picture) -> None:
    """Draw the curve of each run, and label the outliers at its end."""
    legible = 0.05 * axes.get_ylim()[1]  # a label on the axis itself would not be legible
    ends, outliers = [], {run.name for run in group.outliers}
    for run in group.runs:
        end = _draw_run(axes, panel, run, group.colour, picture)
        if end and end.height > legible and run.name in outliers:
            ends.append(end)
            axes.plot(end.time, end.height, "o", ms=3, color=group.colour)
    # Raised above curves that go on: a hidden piece would look like a gap.
    _label(axes, ends, group.colour, picture.span, lift=6)


def _draw_run(axes: Axes, panel: Panel, run: Log, colour: str, picture: Picture) -> _End | None:
    """Return where the curve ends; None where the run has no reading."""
    curve = build_curve(run, panel)
    line = keep_extremes(curve, picture.span / _CURVE_COLUMNS)
    if panel.jumps and picture.is_crowded:
        _draw_curve(axes, line, color=colour, lw=0.6, alpha=0.15, zorder=1.5)
        line = take_means(curve, picture.mean_step)
    _draw_curve(axes, line, color=colour, lw=1.1, alpha=0.8)
    readings = [point for point in line if not isnan(point[1])]
    return _End(*readings[-1], run.path.index) if readings else None


def _draw_curve(axes: Axes, curve: Curve, **style: Any) -> None:
    times, values = zip(*curve, strict=True)
    # A line cannot show a reading between two gaps; a dot can.
    gaps = [True, *map(isnan, values), True]
    lone = [gaps[i] and gaps[i + 2] and not gaps[i + 1] for i in range(len(curve))]
    axes.plot(times, values, marker=".", markevery=lone, **style)


def _mark_init(rows: Sequence[Axes], picture: Picture) -> None:
    """Mark the end of each 1_1 run with a thin line, and their median, the init time."""
    for group in (group for group in picture.groups if group.size == INIT_SIZE):
        for axes in rows:
            for run in group.runs:
                axes.axvline(run.run_time, color=group.colour, lw=0.7, alpha=0.25)
            axes.axvline(group.run_time, color=group.colour, lw=1, ls=(0, (4, 3)))
        where = rows[0].get_xaxis_transform()
        text = f"init time {group.run_time:.1f} s"
        side = "right" if group.run_time > 0.85 * picture.span else "center"
        rows[0].text(group.run_time, 1.05, text, transform=where, ha=side)


def draw_runs(collection: Collection) -> dict[tuple[str, str], Figure]:
    """Return a figure for each model and task."""
    pictures = _build_pictures(collection)
    with use_style():
        return {key: _draw(picture) for key, picture in pictures.items()}


def plot(collection: Collection, image: Path, *, replace: bool = True) -> list[Path]:
    """Draw a figure for each model and task; return the files written.

    `{model}` and `{task}` in the path `image` stand for their names. DataError if the path ends
    in none of `SUFFIXES`, gives several figures the same name, or names a file that exists unless
    `replace`; OutputError if a file cannot be written.
    """
    suffix = image.suffix.lower()
    if suffix not in SUFFIXES:
        kinds = ", ".join(SUFFIXES)
        raise DataError(f"Cannot draw {image}: the name of an image must end in one of {kinds}.")
    pictures = _build_pictures(collection)
    _check_marks(image, list(pictures))
    paths = [_name_image(image, *key) for key in pictures]
    if not replace:
        check_free(*paths)
    for path, picture in zip(paths, pictures.values(), strict=True):
        drawn = save(lambda: _draw(picture), suffix)  # noqa: B023 (called at once)
        write_output(path, drawn, "an image")
    return paths


def _name_image(image: Path, model: str, task: str) -> Path:
    path = str(image)
    for mark, name in (("{model}", model), ("{task}", task)):
        # A name from an untrusted archive must not lead out of the folder of the images.
        path = path.replace(mark, name.replace("/", "_").replace("..", "_"))
    return Path(path)


def _check_marks(image: Path, figures: Sequence[tuple[str, str]]) -> None:
    counts = {"model": len({model for model, _ in figures}), "task": len({t for _, t in figures})}
    missing = [noun for noun, n in counts.items() if n > 1 and f"{{{noun}}}" not in str(image)]
    if missing:
        many = " and ".join(plural(counts[noun], noun) for noun in missing)
        name = "_".join([image.stem, *(f"{{{noun}}}" for noun in missing)]) + image.suffix
        raise DataError(
            f"There is a figure for each of {many}, but {image} is one file. "
            f"Use `morocco plot PATH... '{image.with_name(name)}'`."
        )
