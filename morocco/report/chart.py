"""The disc chart of a report: its points, its image and a description in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from morocco.charts.bubble import Point, find_front, is_drawn
from morocco.charts.bubble_figure import WIDE, Wording, render_discs
from morocco.errors import DataError
from morocco.report.model import ModelSummary, Report
from morocco.util.text import format_number
from morocco.util.units import plural


@dataclass(frozen=True)
class ChartScores:
    """What the chart shows as the quality of the models."""

    by_model: Mapping[str, float]
    tasks: tuple[str, ...] = ()
    """Over which the scores are means; empty where they are the overall scores."""


def choose_scores(report: Report) -> ChartScores:
    """Return the overall scores or, if a model lacks its own, means over the tasks all have."""
    by_task = {model.name: _get_scores(report, model.name) for model in report.models}
    scored = {name: scores for name, scores in by_task.items() if scores}
    overall = {model.name: model.score for model in report.models if model.score is not None}
    common = [task for task in report.tasks if all(task in scores for scores in scored.values())]
    if scored.keys() <= overall.keys() or not scored.keys() >= overall.keys() or not common:
        return ChartScores(overall)
    means = {name: fmean(scores[task] for task in common) for name, scores in scored.items()}
    return ChartScores(means, tuple(common))


def _get_scores(report: Report, model: str) -> dict[str, float]:
    cells = (report.cells[model, task] for task in report.tasks)
    return {cell.task: cell.score for cell in cells if cell.score is not None}


def render_chart(report: Report, suffix: str, size: tuple[float, float] = WIDE) -> bytes:
    """Return the disc chart as an image of `size` points; `suffix` is `.png`, `.svg` or `.pdf`.

    DataError, which says what each model lacks, where none has both a speed and a score.
    """
    scores = choose_scores(report)
    points = _build_points(report, scores)
    if not any(map(is_drawn, points)):
        lacking = "; ".join(_describe_lack(point) for point in points)
        raise DataError(f"The chart needs a model with both a speed and a score: {lacking}.")
    without = f", without {' and '.join(report.without)}" if report.without else ""
    title = f"Speed, score and memory of {plural(sum(map(is_drawn, points)), 'model')}"
    if scores.tasks:
        title += f" (score: mean of {', '.join(scores.tasks)})"
    wording = Wording(speed=f"records a second, mean of the tasks{without}", title=title)
    return render_discs(points, suffix, wording, size)


def describe_chart(report: Report) -> str:
    """Return what the chart shows, in words; empty where there is no chart."""
    points = list(filter(is_drawn, _build_points(report, choose_scores(report))))
    if not points:
        return ""
    models = "; ".join(map(_describe_point, points))
    text = f"Chart of speed (across), score (up) and memory (area of the disc). {models}."
    on_front = [point.name for point, best in zip(points, find_front(points), strict=True) if best]
    return f"{text} On the front: {', '.join(on_front)}." if on_front else text


def _build_points(report: Report, scores: ChartScores) -> list[Point]:
    return [_build_point(model, scores.by_model.get(model.name)) for model in report.models]


def _describe_lack(point: Point) -> str:
    if point.score is not None:
        return f"{point.name} has no speed"
    speed = "" if point.speed else " and no speed"
    return f"{point.name} has no score{speed} (--scores {point.name}=FILE)"


def _build_point(model: ModelSummary, score: float | None) -> Point:
    gpu_ram, ram = model.means["gpu_ram"].arithmetic, model.means["ram"].arithmetic
    return Point(
        model.name,
        model.means["rps"].arithmetic,
        score,
        ram if gpu_ram is None else gpu_ram,
        on_gpu=gpu_ram is not None,
        partial=bool(model.means["rps"].missing),
        speed_bounds=model.means["rps"].bounds,
    )


def _describe_point(point: Point) -> str:
    kind = "GPU memory" if point.on_gpu else "RAM"
    memory = "memory not measured" if point.memory is None else f"{point.memory:.2f} GB {kind}"
    speed = f"{format_number(point.speed)} records a second"
    return f"{point.name}: {speed}, score {format_number(point.score)}, {memory}"
