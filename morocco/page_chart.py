"""The disc chart inside the page, told in words for those who do not see it."""

from __future__ import annotations

from base64 import b64encode

from morocco.discs import is_drawn
from morocco.discs_figure import NARROW, Wording, render_discs
from morocco.html import Html, element, void
from morocco.pareto import Point, find_front
from morocco.report import ModelSummary, Report
from morocco.tables import format_number

_PHONE = "(max-width: 40rem)"


def render_chart(report: Report, suffix: str) -> bytes:
    """Return the disc chart of a report as an image; DataError where no model has a score."""
    return render_discs(find_points(report), suffix, _word(report))


def make_chart(report: Report) -> Html:
    """Return the chart, or why there is none."""
    points = find_points(report)
    if not any(map(is_drawn, points)):
        said = "There is no chart of speed, quality and memory: give the scores with --scores FILE."
        return element("p", said, class_="lead")
    narrow = _inline(render_discs(points, ".svg", _word(report), NARROW))
    source = void("source", media=_PHONE, srcset=narrow)
    image = void("img", src=_inline(render_chart(report, ".svg")), alt=_describe(points))
    return element("figure", element("picture", source, image), class_="chart")


def find_points(report: Report) -> tuple[Point, ...]:
    """Return the models of a report, each with the means over its tasks."""
    return tuple(map(_to_point, report.models))


def _to_point(model: ModelSummary) -> Point:
    gpu_ram, ram = model.means["gpu_ram"].arithmetic, model.means["ram"].arithmetic
    return Point(
        model.name,
        model.means["rps"].arithmetic,
        model.score,
        ram if gpu_ram is None else gpu_ram,
        on_gpu=gpu_ram is not None,
        partial=bool(model.means["rps"].missing),
    )


def _word(report: Report) -> Wording:
    without = f", without {' and '.join(report.without)}" if report.without else ""
    return Wording(speed=f"records a second, mean of the tasks{without}")


def _inline(image: bytes) -> str:
    return f"data:image/svg+xml;base64,{b64encode(image).decode()}"


def _describe(points: tuple[Point, ...]) -> str:
    drawn = [point for point in points if is_drawn(point)]
    front = [point.name for point, ringed in zip(drawn, find_front(drawn), strict=True) if ringed]
    models = "; ".join(map(_tell, drawn))
    said = f"Chart of speed (across), score (up) and memory (area of the disc). {models}."
    return f"{said} On the front: {', '.join(front)}." if front else said


def _tell(point: Point) -> str:
    kind = "GPU memory" if point.on_gpu else "RAM"
    memory = "memory not measured" if point.memory is None else f"{point.memory:.2f} GB {kind}"
    speed = f"{format_number(point.speed)} records a second"
    return f"{point.name}: {speed}, score {format_number(point.score)}, {memory}"
