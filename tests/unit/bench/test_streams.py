"""Predictions counted, hashed and kept, however the bytes come; the end of a log."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from morocco.bench.contract import Contract
from morocco.bench.streams import Predictions, Tail
from morocco.tasks import Records

chunks = st.lists(st.binary(max_size=5) | st.text("a\n", max_size=5).map(str.encode))


def read(*parts: bytes) -> Predictions:
    predictions = Predictions()
    for part in parts:
        predictions.add(part)
    return predictions


@given(chunks)
def test_the_lines_that_hold_something_are_counted(parts: list[bytes]) -> None:
    lines = b"".join(parts).split(b"\n")
    assert read(*parts).count == sum(1 for line in lines if line)


@given(st.lists(st.sampled_from([b"{}", b"\n", b"{}\n", b" ", b"x", b"[1]\n\n"])))
def test_lines_are_counted_alike_whether_they_are_predictions_or_not(parts: list[bytes]) -> None:
    checked = Predictions(None, Contract(Records(Path("val.jsonl"), 1, None, "0")))
    for part in parts:
        checked.add(part)
    assert checked.count == read(*parts).count


@given(chunks)
def test_the_digest_is_that_of_all_bytes(parts: list[bytes]) -> None:
    assert read(*parts).sha256 == hashlib.sha256(b"".join(parts)).hexdigest()


def test_a_last_line_without_its_newline_counts() -> None:
    assert read(b'{"idx": 0}\n', b'{"idx"', b": 1}").count == 2


def test_the_first_and_the_last_bytes_have_their_time() -> None:
    predictions = read()
    assert (predictions.first, predictions.last) == (None, None)
    predictions.add(b"a\n")
    between = time.monotonic()
    predictions.add(b"b\n")
    assert predictions.first is not None
    assert predictions.last is not None
    assert predictions.first <= between <= predictions.last


def test_a_copy_holds_every_byte_at_once(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    with path.open("wb") as file:
        predictions = Predictions(file)
        predictions.add(b"a\n\nb")
        assert path.read_bytes() == b"a\n\nb"
        predictions.add(b"\xff")
        assert path.read_bytes() == b"a\n\nb\xff"


def test_a_full_disk_shows_at_once() -> None:
    with open(os.open("/dev/full", os.O_WRONLY), "wb", buffering=0) as full:  # noqa: PTH123
        predictions = Predictions(full)
        with pytest.raises(OSError, match="No space left"):
            predictions.add(b"a\n")


@given(st.lists(st.binary(max_size=200)), st.integers(1, 900))
def test_the_tail_is_the_last_64_kb(parts: list[bytes], repeats: int) -> None:
    tail = Tail()
    for part in parts * repeats:
        tail.add(part)
    assert tail.text == (b"".join(parts) * repeats)[-64 * 1024 :].decode("utf-8", "replace")


def test_the_tail_of_one_long_chunk_is_kept() -> None:
    tail = Tail()
    tail.add(b"x" * 70_000 + b"the end")
    assert len(tail.text) == 64 * 1024
    assert tail.text.endswith("the end")
