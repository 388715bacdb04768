"""Numbers, spans, scores and tables as text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from morocco.util.text import (
    align,
    escape_control_characters,
    format_elapsed,
    format_score,
    guard_cells,
    indent_lines,
    make_printable,
)

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


@pytest.mark.parametrize(
    "letter", ["\x1b", "\r", "\t", "\x7f", "\x9b", "\u202e", "\u2066", "\udcff"]
)
def test_of_what_a_terminal_would_act_on_only_line_breaks_are_printed(letter: str) -> None:
    shown = make_printable(f"a{letter}b\nc")
    assert shown.isprintable() is False
    assert [line.isprintable() for line in shown.split("\n")] == [True, True]
    assert (shown[0], shown[-3:]) == ("a", "b\nc")


@given(st.text())
def test_json_means_the_same_after_it_was_made_printable(text: str) -> None:
    for ascii_only in (True, False):
        content = json.dumps(text, ensure_ascii=ascii_only)
        assert json.loads(make_printable(content)) == text


def test_the_lines_below_the_first_are_indented() -> None:
    assert indent_lines("one\n  two\nVALID") == "one\n  two\n  VALID"


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd", "-1+1", "@SUM(1)", "\t=1", "\r=1", "-", "+-1", "-inf"]
)
def test_a_formula_gets_an_apostrophe(text: str) -> None:
    assert guard_cells({"model": text}) == {"model": f"'{text}"}


@pytest.mark.parametrize("cell", ["-7", "+1.5e-3", "1=1", "", "a-b", -1.5, None, 7])
def test_other_cells_stay_as_they_are(cell: object) -> None:
    assert guard_cells({"x": cell}) == {"x": cell}
