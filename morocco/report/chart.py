"""The disc chart of a report: its points, its image and a description in words."""

from __future__ import annotations

from morocco.charts.bubble import Point, find_front, is_drawn
from morocco.charts.bubble_figure import WIDE, Wording, render_discs
from morocco.report.model import ModelSummary, Report
from morocco.util.text import format_number


def render_chart(report: Report, suffix: str, size: tuple[float, float] = WIDE) -> bytes:
    """Return the disc chart as an image of `size` points; `suffix` is `.png`, `.svg` or `.pdf`.

    DataError where no model has both a speed and a score.
    """
    without = f", without {' and '.join(report.without)}" if report.without else ""
    wording = Wording(speed=f"records a second, mean of the tasks{without}")
    return render_discs([_build_point(model) for model in report.models], suffix, wording, size)


def describe_chart(report: Report) -> str:
    """Return what the chart shows, in words; empty where there is no chart."""
    points = [point for point in map(_build_point, report.models) if is_drawn(point)]
    if not points:
        return ""
    models = "; ".join(map(_describe_point, points))
    text = f"Chart of speed (across), score (up) and memory (area of the disc). {models}."
    on_front = [point.name for point, best in zip(points, find_front(points), strict=True) if best]
    return f"{text} On the front: {', '.join(on_front)}." if on_front else text


def _build_point(model: ModelSummary) -> Point:
    gpu_ram, ram = model.means["gpu_ram"].arithmetic, model.means["ram"].arithmetic
    return Point(
        model.name,
        model.means["rps"].arithmetic,
        model.score,
        ram if gpu_ram is None else gpu_ram,
        on_gpu=gpu_ram is not None,
        partial=bool(model.means["rps"].missing),
    )


def _describe_point(point: Point) -> str:
    kind = "GPU memory" if point.on_gpu else "RAM"
    memory = "memory not measured" if point.memory is None else f"{point.memory:.2f} GB {kind}"
    speed = f"{format_number(point.speed)} records a second"
    return f"{point.name}: {speed}, score {format_number(point.score)}, {memory}"
