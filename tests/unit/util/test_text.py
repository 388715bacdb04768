"""Rows of text as aligned columns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from morocco.util.text import align

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
