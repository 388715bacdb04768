"""The disc chart: who is on the front, where labels stand, and the picture itself."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from itertools import combinations, pairwise, permutations
from math import hypot, isclose, pi

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from morocco.charts.bubble import (
    RING,
    SMALLEST,
    UNKNOWN,
    Chart,
    Point,
    arrange,
    choose_key,
    find_edge,
    find_front,
    fit_axis,
)
from morocco.charts.bubble_figure import NARROW, Wording, render_discs
from morocco.charts.labels import (
    GAP,
    Box,
    Circle,
    Line,
    Scene,
    place_labels,
)
from morocco.charts.style import measure_text
from morocco.errors import DataError

PUBLISHED = (
    Point("rubert", 101, 0.548, 2.39),
    Point("rubert-conversational", 103, 0.519, 2.39),
    Point("bert-multilingual", 95, 0.462, 2.39),
    Point("rugpt3-small", 97, 0.483, 2.37),
    Point("rugpt3-medium", 45, 0.501, 4.39),
    Point("rugpt3-large", 27, 0.495, 7.50),
)
AREA = Box(0, 0, 650, 300)


def a_point(name: str = "a", speed: float | None = 1.0, score: float | None = 0.5) -> Point:
    return Point(name, speed, score, 2.0)


def front_of(*points: Point) -> list[str]:
    marks = find_front(points)
    return [point.name for point, ringed in zip(points, marks, strict=True) if ringed]


def measure(point: Point) -> tuple[float, float]:
    return max(6.0 * len(point.name), 40.0), 21.0


def draw_chart(points: Sequence[Point], width: float = 650, height: float = 300) -> Chart:
    return arrange(points, width, height, measure)


def draw_svg(points: Sequence[Point], wording: Wording | None = None) -> str:
    return render_discs(points, ".svg", wording).decode()


# The front


def test_the_front_of_the_published_models() -> None:
    # rugpt3-small, slower and with a lower score than rubert, needs less memory by under a percent.
    assert front_of(*PUBLISHED) == ["rubert", "rubert-conversational"]


def test_the_edge_goes_from_the_slowest_to_the_fastest() -> None:
    assert [PUBLISHED[n].name for n in find_edge(PUBLISHED)] == ["rubert", "rubert-conversational"]


def test_models_that_are_the_same_are_all_on_the_front() -> None:
    assert front_of(a_point("a"), a_point("b")) == ["a", "b"]


def test_less_memory_is_enough_to_be_on_the_front() -> None:
    assert front_of(Point("big", 9, 0.9, 8.0), Point("small", 1, 0.1, 2.0)) == ["big", "small"]
    assert front_of(Point("big", 9, 0.9, 8.0), Point("worse", 1, 0.1, 8.0)) == ["big"]


def test_a_model_that_needs_no_gpu_needs_less_than_any_that_does() -> None:
    cpu = Point("cpu", 5, 0.5, 16.0, on_gpu=False)
    assert front_of(cpu, Point("gpu", 9, 0.9, 2.0)) == ["cpu", "gpu"]
    assert front_of(cpu, Point("gpu", 4, 0.4, 2.0)) == ["cpu"]


def test_only_a_model_that_is_really_better_pushes_another_off_the_front() -> None:
    slow = Point("slow", 100, 0.5, 2.0, speed_bounds=(95, 105))
    noisy = Point("noisy", 104, 0.5, 2.0, speed_bounds=(99, 109))
    fast = Point("fast", 120, 0.5, 2.0, speed_bounds=(115, 125))
    assert front_of(slow, noisy) == ["slow", "noisy"]
    assert front_of(slow, noisy, fast) == ["fast"]
    better = Point("better", 98, 0.6, 2.0, speed_bounds=(93, 103))
    assert front_of(slow, better) == ["better"]  # as fast, for all that is known


def test_memory_that_is_not_known_is_no_merit() -> None:
    assert front_of(Point("known", 5, 0.5, 80.0), Point("unknown", 5, 0.5, None)) == ["known"]


def test_what_does_not_compare_is_neither_on_the_front_nor_in_the_way() -> None:
    partial = Point("partial", 99, 0.9, 1.0, partial=True)
    points = (partial, a_point("a"), a_point("no speed", speed=None), a_point("b", score=None))
    assert front_of(*points) == ["a"]
    assert find_edge(points) == [1]


@given(st.lists(st.tuples(*[st.integers(1, 4)] * 3), min_size=1, max_size=12))
def test_whoever_is_not_on_the_front_is_beaten_by_one_who_is(rows: list[tuple[int, ...]]) -> None:
    points = [Point("", speed, score, memory) for speed, score, memory in rows]
    marks = find_front(points)
    assert any(marks)
    front = [row for row, ringed in zip(rows, marks, strict=True) if ringed]
    for speed, score, memory in (row for row, on in zip(rows, marks, strict=True) if not on):
        assert any(s >= speed and q >= score and m <= memory for s, q, m in front)


# Axes


def test_noise_looks_like_noise_on_the_axis_of_speed() -> None:
    points = [
        Point("a", 100, 0.5, 2.0, speed_bounds=(95, 105)),
        Point("b", 103, 0.6, 2.0, speed_bounds=(99, 107)),
    ]
    chart = draw_chart(points)
    assert chart.x.high - chart.x.low >= 4 * (105 - 95)
    whiskers = {disc.point.name: disc.whisker for disc in chart.discs}
    assert whiskers["a"] is not None
    assert whiskers["b"] is not None
    assert whiskers["a"][0] < whiskers["b"][0] < whiskers["a"][1] < whiskers["b"][1]


@pytest.mark.parametrize(
    ("values", "logarithmic"), [([1, 9], False), ([1, 11], True), ([0, 9], False)]
)
def test_speeds_that_differ_by_more_than_ten_take_a_logarithmic_axis(
    values: list[float], logarithmic: bool
) -> None:
    assert fit_axis(values, 0.1, may_bend=True).logarithmic is logarithmic
    assert not fit_axis(values, 0.1).logarithmic


@given(st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=9), st.floats(0, 0.4), st.booleans())
def test_everything_on_an_axis_keeps_off_its_ends(
    values: list[float], padding: float, may_bend: bool
) -> None:
    axis = fit_axis(values, padding, may_bend=may_bend)
    for value in values:
        assert padding - 1e-6 <= axis.place(value) <= 1 - padding + 1e-6


# Labels


circles = st.builds(
    Circle, st.floats(30, 620), st.floats(30, 270), st.floats(2, 15) | st.just(15.0)
)
labels = st.tuples(st.floats(30, 110), st.just(21.0))


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(circles, labels), min_size=1, max_size=20), st.booleans())
def test_labels_cover_neither_discs_nor_one_another(
    models: list[tuple[Circle, tuple[float, float]]], same_place: bool
) -> None:
    discs = [Circle(300, 150, disc.radius) if same_place else disc for disc, _ in models]
    placing = place_labels(Scene(discs, AREA), [size for _, size in models])
    boxes = [label.box for label in placing.labels]
    assert placing.fits
    assert all(not one.overlaps(other) for one, other in combinations(boxes, 2))
    assert all(disc.measure_gap(box) > 0 for box in boxes for disc in discs)
    for box, (width, height) in zip(boxes, (size for _, size in models), strict=True):
        assert isclose(box.right - box.left, width)
        assert isclose(box.top - box.bottom, height)
        assert box.left >= 0
        assert box.right <= 650
        assert box.bottom >= 0
        assert box.top <= 300


def test_a_lone_label_is_right_of_its_disc() -> None:
    (label,) = place_labels(Scene([Circle(100, 100, 10)], AREA), [(50, 20)]).labels
    assert label.box == Box(110 + GAP, 90, 160 + GAP, 110)
    assert label.leader is None


def test_a_label_at_the_right_edge_is_left_of_its_disc() -> None:
    (label,) = place_labels(Scene([Circle(630, 100, 10)], AREA), [(50, 20)]).labels
    assert label.box.right == pytest.approx(620 - GAP)


def test_a_label_far_from_its_disc_has_a_line_to_it() -> None:
    crowd = [Circle(300, 150, 15)] * 20
    placing = place_labels(Scene(crowd, AREA), [(100, 21)] * 20)
    far = [label for label in placing.labels if crowd[0].measure_gap(label.box) > 2 * GAP]
    assert far
    for label in far:
        assert label.leader
        x1, y1, x2, y2 = label.leader
        assert hypot(x1 - 300, y1 - 150) == pytest.approx(15)
        assert label.box.find_nearest(x1, y1) == pytest.approx((x2, y2))


def test_labels_keep_off_lines() -> None:
    line = Line(120, 100, 400, 100)
    (label,) = place_labels(Scene([Circle(100, 100, 10)], AREA, [line]), [(50, 20)]).labels
    assert not any(line.crosses(diagonal) for diagonal in label.box.diagonals)


def test_leaders_cross_neither_labels_nor_one_another() -> None:
    labels = place_labels(Scene([Circle(300, 150, 15)] * 8, AREA), [(100, 21)] * 8).labels
    assert sum(label.leader is not None for label in labels) > 3
    for one, other in permutations(labels, 2):
        lines = [*other.box.diagonals, other.leader]
        assert not any(one.leader and line and one.leader.crosses(line) for line in lines)


@pytest.mark.parametrize("height", [40, 20])
def test_where_there_is_no_room_labels_cover_something_and_do_not_fit(height: float) -> None:
    scene = Scene([Circle(20, 20, 20)] * 3, Box(0, 0, 80, height))
    placing = place_labels(scene, [(60, 30)] * 3)
    assert len(placing.labels) == 3
    assert not placing.fits


# The chart as data


def test_areas_are_proportional_to_memory() -> None:
    chart = draw_chart(PUBLISHED)
    areas = {disc.point.memory: pi * disc.circle.radius**2 for disc in chart.discs}
    assert areas[7.50] / areas[2.39] == pytest.approx(7.50 / 2.39)
    for memory, radius in chart.key:
        assert pi * radius**2 / memory == pytest.approx(areas[7.50] / 7.50)


def test_large_discs_are_drawn_below_small_ones() -> None:
    radii = [disc.circle.radius for disc in draw_chart(PUBLISHED).discs]
    assert radii == sorted(radii, reverse=True)


def test_every_disc_is_inside_the_axes() -> None:
    for x, y, radius in (disc.circle for disc in draw_chart(PUBLISHED).discs):
        assert radius + RING < x < 650 - radius - RING
        assert radius + RING < y < 300 - radius - RING


def test_tiny_huge_and_unknown_memory_can_be_seen() -> None:
    points = [Point("tiny", 1, 0.1, 1e-6), Point("huge", 2, 0.2, 1e4), Point("none", 3, 0.3, None)]
    chart = draw_chart(points)
    radii = {disc.point.name: disc.circle.radius for disc in chart.discs}
    assert (radii["tiny"], radii["none"]) == (SMALLEST, UNKNOWN)
    assert radii["huge"] > 5 * SMALLEST


def test_discs_give_way_where_labels_do_not_fit() -> None:
    few, many = (
        draw_chart([a_point(f"model-{i}", i + 1, i / 20) for i in range(n)]) for n in (2, 20)
    )
    assert few.discs[0].circle.radius > many.discs[0].circle.radius


@settings(deadline=None, max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.floats(1, 1e4), st.floats(0, 1), st.none() | st.floats(0.01, 80), st.booleans()
        ),
        min_size=1,
        max_size=20,
    )
)
def test_no_label_of_a_chart_covers_anything(
    rows: list[tuple[float, float, float | None, bool]],
) -> None:
    chart = draw_chart([Point(f"some-model-{i}", *row) for i, row in enumerate(rows)])
    boxes = [disc.label.box for disc in chart.discs]
    assert all(not one.overlaps(other) for one, other in combinations(boxes, 2))
    assert all(disc.circle.measure_gap(box) > 0 for box in boxes for disc in chart.discs)


def test_the_edge_is_a_stair_that_only_goes_down() -> None:
    edge = draw_chart([a_point(str(i), i, 1 / i) for i in (1, 2, 3)]).edge
    assert len(edge) == 5
    assert all(one[0] <= other[0] and one[1] >= other[1] for one, other in pairwise(edge))


def test_models_without_score_are_left_out() -> None:
    chart = draw_chart([a_point("a"), a_point("b", score=None), a_point("c", speed=None)])
    assert [disc.point.name for disc in chart.discs] == ["a"]


def test_without_any_score_there_is_no_chart() -> None:
    with pytest.raises(DataError, match="--scores"):
        draw_chart([a_point(score=None)])


@pytest.mark.parametrize(
    ("memories", "key"),
    [
        ([7.5, 2.39], [5, 2, 1]),
        ([2.0], [2, 1, 0.5]),
        ([40.0, 0.5], [20, 5, 1]),
        ([0.19, 0.12], [0.1, 0.05, 0.02]),
        ([], []),
        ([None, 0.0], []),
    ],
)
def test_the_key_shows_round_sizes(memories: list[float | None], key: list[float]) -> None:
    points = [Point("", 1, 1, memory) for memory in memories]
    assert choose_key(points) == pytest.approx(key)


# The picture


@pytest.mark.parametrize(
    ("suffix", "magic"), [(".png", b"\x89PNG\r\n\x1a\n"), (".svg", b"<?xml"), (".pdf", b"%PDF-")]
)
def test_the_same_points_give_the_same_image(suffix: str, magic: bytes) -> None:
    first, second = (render_discs(PUBLISHED, suffix) for _ in range(2))
    assert first.startswith(magic)
    assert first == second


def test_each_disc_is_labelled_with_its_model_and_memory() -> None:
    svg = draw_svg(PUBLISHED)
    assert "<!-- rugpt3-large -->" in svg
    assert "<!-- 7.50 GB -->" in svg
    assert svg.count("<!-- 2.39 GB -->") == 3
    assert "<!-- area: GPU memory -->" in svg
    assert "RAM" not in svg


def test_ram_is_told_from_gpu_memory() -> None:
    svg = draw_svg([Point("tfidf", 2000, 0.4, 0.2, on_gpu=False), *PUBLISHED])
    assert "<!-- 0.20 GB RAM -->" in svg
    assert "<!-- area: RAM (no GPU used) -->" in svg
    assert "records a second, logarithmic" in svg


def test_what_is_missing_is_said() -> None:
    points = [Point("a", 1, 0.4, None), Point("b", 2, 0.5, 1, partial=True), Point("c", 3, None, 1)]
    svg = draw_svg(points)
    assert svg.count("memory not measured") == 2
    assert "tasks missing, speed not comparable" in svg
    assert "<!-- Not drawn, without speed or score: c -->" in svg


def test_names_are_shown_as_they_are_and_long_ones_cut() -> None:
    svg = draw_svg([a_point("$x_1$ <b>\udcff\n"), a_point("a" * 99)])
    assert "$x_1$ <b>??" in svg or "$x_1$ &lt;b&gt;??" in svg
    assert f"<!-- {'a' * 31}… -->" in svg


def test_labels_are_measured_as_they_are_drawn() -> None:
    assert measure_text("mmmm", 10) == pytest.approx(2 * measure_text("mm", 10))
    assert measure_text("mm", 20) == pytest.approx(2 * measure_text("mm", 10), rel=0.02)
    assert measure_text("mm", 10, "bold") > measure_text("mm", 10)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 6, 20, 40])
def test_any_number_of_models_is_drawn(count: int) -> None:
    points = [a_point(f"model-{i}", 1.3**i, i / count) for i in range(count)]
    assert len(re.findall("<!-- model-[0-9]+ -->", draw_svg(points))) == count


def test_a_narrow_chart_is_as_wide_as_a_phone() -> None:
    header = render_discs(PUBLISHED, ".png", size=NARROW)[16:24]
    width, height = int.from_bytes(header[:4], "big"), int.from_bytes(header[4:], "big")
    assert (width, height) == (750, 1166)


def test_the_words_around_the_chart_can_be_chosen() -> None:
    svg = draw_svg(PUBLISHED, Wording(title="Mine", speed="fast", score="good"))
    assert all(f"<!-- {text} -->" in svg for text in ("Mine", "fast", "good"))


def test_matplotlib_is_not_imported_with_the_module() -> None:
    code = "import sys, morocco.charts.bubble_figure; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
