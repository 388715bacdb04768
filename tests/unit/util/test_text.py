"""Numbers, spans, scores and tables as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from morocco.util.text import align, escape_control_characters, format_elapsed, format_score

CELLS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=9)


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    rows = [["task", "runs"], ["muserc", "5"], ["rcb", "10"]]
    assert align(rows, left={0}) == ["task    runs", "muserc     5", "rcb       10"]


def test_numbers_are_flush_right_and_words_flush_left() -> None:
    assert align([["a", "1", "b"], ["aa", "11", "bb"]], left={0, 2}) == ["a    1  b", "aa  11  bb"]


def test_no_line_ends_with_blanks() -> None:
    assert align([["a", "long"], ["b", "c"]], left={0, 1}) == ["a  long", "b  c"]


@given(st.integers(1, 5).flatmap(lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n))))
def test_no_cell_is_lost(rows: list[list[str]]) -> None:
    assert [line.split() for line in align(rows, left={0})] == rows


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0:00"),
        (9.6, "0:10"),
        (59.6, "1:00"),
        (3599.4, "59:59"),
        (3599.6, "1:00:00"),
        (4500, "1:15:00"),
    ],
)
def test_a_span_has_minutes_seconds_and_hours_where_there_are_any(
    seconds: float, text: str
) -> None:
    assert format_elapsed(seconds) == text


@pytest.mark.parametrize(
    ("score", "text"),
    [(0.5479, "0.548"), (1, "1.000"), (-0.0004, "0.000"), (-0.25, "-0.250"), (None, "-")],
)
def test_a_score_has_three_decimals_and_no_negative_zero(score: float | None, text: str) -> None:
    assert format_score(score) == text


def test_control_characters_are_shown_instead_of_sent() -> None:
    assert escape_control_characters("parus \x1b[2J\n é") == "parus \\x1b[2J\\n é"
