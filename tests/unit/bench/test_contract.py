"""What counts as a prediction, however the bytes come; checked as they come, to the line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from morocco.bench import contract
from morocco.bench.contract import Answers, Contract
from morocco.tasks import Records

NESTED = b'{"idx": 1, "a": ' + b"[" * 9000 + b"]" * 9000 + b"}"
GOOD = [
    b'{"idx": 0}',
    b'{"label": [NaN, -Infinity], "idx": "1"}',
    b'{"idx":1,"idx":2}\r',
    ' \ufeff{"idx": 2, "ответ": "да"}'.encode(),
    b'\xef\xbb\xbf{"idx": 0}',
    b"",
    b" \t\r",
]
BAD = [
    b"label=0",
    b"1",
    b"[]",
    b'{"idx": 1',
    b'{"label": 0}',
    b'{"idx": 3}',
    b'{"idx": 1.0}',
    b'{"idx": true}',
    b'{"idx": null}',
    b'{"idx": 0} {"idx": 1}',
    b'{"idx": 0}{"idx": 1}',
    b'{"idx": 0, "label": "\xff"}',
    b'{"idx": 0, "label": 01}',
    b'{"idx": 0}, ',
    NESTED,
]


def check(*parts: bytes, idxs: int = 3) -> Answers:
    known = frozenset(map(str, range(idxs)))
    checked = Contract(Records(Path("val.jsonl"), 9, idxs or None, "0", known))
    for part in parts:
        checked.add(part)
    return checked.finish()


@pytest.mark.parametrize("line", BAD, ids=lambda line: line[:30].decode("utf-8", "replace"))
def test_the_first_line_that_is_no_prediction_is_quoted_with_its_number(line: bytes) -> None:
    found = check(b'{"idx": 0}\n\n', line + b"\n", b"junk\n")
    assert (found.objects, found.distinct) == (1, 1)
    assert found.broken is not None
    assert found.broken.startswith("line 3 ")
    assert repr(line[:10].decode("utf-8", "replace"))[1:-1] in found.broken
    assert len(found.broken) < 200


@pytest.mark.parametrize("line", GOOD, ids=lambda line: line[:30].decode("utf-8", "replace"))
def test_what_json_reads_is_a_prediction(line: bytes) -> None:
    assert check(line + b"\n").broken is None


@given(st.lists(st.sampled_from(GOOD[:5] + BAD[:8])), st.lists(st.integers(1, 40)))
def test_the_result_does_not_depend_on_how_the_bytes_come(
    lines: list[bytes], cuts: list[int]
) -> None:
    whole, parts = b"\n".join(lines), []
    for cut in cuts:
        parts.append(whole[:cut])
        whole = whole[cut:]
    assert check(*parts, whole) == check(b"\n".join(lines))


LONG = b'{"idx": 2, "label": "' + b"x" * 400 + b'"}'
TORN = [  # as many objects as lines, but not one on each
    b'{"idx": 0}{"idx": 1}\n{"idx":\n2}',
    b'{"idx": 0} {"idx": 1}\n{"idx": 2, "a": [{}\n]}',
    b'{"idx": 0, "a": {}\n}{"idx": 1}',
    b'{"idx": 0, "a": "}\n{"}{"idx": 1}',
    b'{"idx": 0, "a": [{}\n{}]}{"idx": 1}',
    b'\n{"idx": 0}{"idx": 1}',
]


@given(st.lists(st.sampled_from([*GOOD, *GOOD, *BAD[:-1], *TORN, LONG])), st.data())
def test_lines_that_are_decoded_together_are_judged_as_each_alone(
    lines: list[bytes], data: st.DataObject
) -> None:
    whole = b"\n".join([LONG, *lines, b""])
    cut = data.draw(st.integers(0, len(whole)))
    with mock.patch.object(contract, "_LONG", len(whole) + 1):
        alone = check(whole[:cut], whole[cut:])
    assert check(whole[:cut], whole[cut:]) == alone


@pytest.mark.parametrize("torn", TORN)
def test_as_many_objects_as_lines_must_be_one_on_each(torn: bytes) -> None:
    assert (check(LONG + b"\n" + torn + b"\n").broken or "").startswith(("line 2 ", "line 3 "))


@given(st.dictionaries(st.text(), st.none() | st.floats() | st.text() | st.lists(st.booleans())))
def test_every_object_is_one_where_records_have_no_idx(value: dict[str, Any]) -> None:
    assert check(json.dumps(value).encode(), idxs=0) == Answers(objects=1)


def test_one_idx_as_a_number_and_as_text_is_one_idx() -> None:
    assert check(b'{"idx": 1}\n', b'{"idx": "1"}\n', b'{"idx": NaN, "idx": 1}\n') == Answers(3, 1)


def test_a_last_line_needs_no_newline() -> None:
    assert check(b'{"idx": 1}\n{"id', b'x": 2}') == Answers(2, 2)


def test_a_line_without_end_is_not_kept() -> None:
    checked = Contract(Records(Path("val.jsonl"), 9, None, "0"))
    for _ in range(40):
        checked.add(b"0" * 2**20)
    found = checked.finish().broken
    assert found is not None
    assert found.startswith("line 1 is longer than 16 MB: '000")
