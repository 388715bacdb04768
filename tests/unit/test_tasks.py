"""The tasks: which file is fed, whether it holds records, and what is fed of it."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from morocco.errors import DataError
from morocco.tasks import TASKS, find_data, iterate_chunks, load_records
from paths import DATA

FILES = {
    "danetqa": "DaNetQA/val.jsonl",
    "lidirus": "LiDiRus/LiDiRus.jsonl",
    "muserc": "MuSeRC/val.jsonl",
    "parus": "PARus/val.jsonl",
    "rcb": "RCB/val.jsonl",
    "rucos": "RuCoS/val.jsonl",
    "russe": "RUSSE/val.jsonl",
    "rwsd": "RWSD/val.jsonl",
    "terra": "TERRa/val.jsonl",
}


def write(folder: Path, content: bytes) -> Path:
    path = folder / "val.jsonl"
    path.write_bytes(content)
    return path


def write_records(folder: Path, count: int) -> Path:
    return write(folder, b"".join(b'{"idx": %d}\n' % number for number in range(count)))


def feed(path: Path, input_size: int) -> list[bytes]:
    """Return the lines that a target gets."""
    chunks = iterate_chunks(load_records(path, input_size))
    return b"".join(data for data, _ in chunks).splitlines(keepends=True)


def complaint(path: Path, input_size: int = 1) -> str:
    with pytest.raises(DataError) as error:
        load_records(path, input_size)
    return str(error.value)


def test_there_are_nine_tasks() -> None:
    assert set(TASKS) == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_a_task_is_fed_the_file_with_its_records(name: str) -> None:
    path = find_data(DATA, name)
    assert path == DATA / FILES[name]
    assert load_records(path, 1).count == 1


@pytest.mark.parametrize("name", ["mine/val.jsonl", "mine.jsonl"])
def test_any_other_task_may_lie_in_a_folder_or_a_file_of_its_name(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    assert find_data(tmp_path, "mine") == tmp_path / name


def test_the_folder_goes_before_the_file(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "val.jsonl").touch()
    (tmp_path / "mine.jsonl").touch()
    assert find_data(tmp_path, "mine") == tmp_path / "mine" / "val.jsonl"


def test_a_missing_file_is_named_with_its_whole_path(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"PARus/val\.jsonl") as error:
        find_data(tmp_path, "parus")
    assert str(tmp_path) in str(error.value)


def test_an_unknown_task_is_told_all_places_and_the_nine_names(tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        find_data(tmp_path, "paruss")
    for part in ("paruss/val.jsonl", "paruss.jsonl", *TASKS):
        assert part in str(error.value)


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/b", "", ".", "..", "a\0b", "x" * 300])
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "x.jsonl").touch()
    with pytest.raises(DataError):
        find_data(data, name)


def test_a_byte_order_mark_is_not_fed(tmp_path: Path) -> None:
    path = write(tmp_path, b'\xef\xbb\xbf{"idx": 0}\n{"idx": 1}\n')
    assert feed(path, 3) == [b'{"idx": 0}\n', b'{"idx": 1}\n', b'{"idx": 0}\n']


def test_blank_lines_and_line_ends_of_windows_are_not_fed(tmp_path: Path) -> None:
    path = write(tmp_path, b'\n{"idx": 0}\r\n  \r\n\n{"idx": 1}')
    assert feed(path, 2) == [b'{"idx": 0}\n', b'{"idx": 1}\n']


def test_records_are_fed_as_they_are_written(tmp_path: Path) -> None:
    record = '{ "text":"Тест \\u0436",   "n":1.50 }\n'.encode()
    assert feed(write(tmp_path, record), 1) == [record]


@pytest.mark.parametrize(
    "line", [b"{", b"[1]", b"5", b'"text"', b"null", b'{"a": "\xcf"}', b"[" * 9999]
)
def test_a_line_that_is_no_json_object_is_named(tmp_path: Path, line: bytes) -> None:
    path = write(tmp_path, b'{"idx": 0}\n\n' + line + b"\n")
    message = complaint(path)
    assert message.startswith(f"{path}, line 3: not a JSON object: ")
    assert len(message) < len(str(path)) + 300


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xef\xbb\xbf\n"])
def test_a_file_without_records_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path, content)
    assert complaint(path).startswith(f"{path} is empty")


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    assert complaint(tmp_path / "no.jsonl") == (
        f"Cannot read {tmp_path / 'no.jsonl'}: No such file or directory."
    )


def test_the_digest_is_that_of_the_whole_file(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbf{"idx": 0}\r\n\n{"idx": 1}\n{"idx": 2}'
    digest = load_records(write(tmp_path, content), 1).sha256
    assert digest == hashlib.sha256(content).hexdigest()


@given(st.integers(1, 30), st.integers(1, 200))
def test_records_are_cycled_to_exactly_the_size(
    tmp_path_factory: pytest.TempPathFactory, in_file: int, input_size: int
) -> None:
    path = write_records(tmp_path_factory.getbasetemp(), in_file)
    fed = [json.loads(line)["idx"] for line in feed(path, input_size)]
    assert fed == [number % in_file for number in range(input_size)]


@pytest.mark.parametrize("input_size", [1, 9_999, 50_000])
def test_the_counts_of_the_chunks_are_those_of_their_lines(tmp_path: Path, input_size: int) -> None:
    records = load_records(write_records(tmp_path, 100), input_size)
    counts = [(count, data.count(b"\n")) for data, count in iterate_chunks(records)]
    assert all(told == true for told, true in counts)
    assert sum(told for told, _ in counts) == input_size


@pytest.mark.slow
def test_memory_does_not_grow_with_the_input(tmp_path: Path) -> None:
    records = load_records(write_records(tmp_path, 100), 200_000)
    tracemalloc.start()
    try:
        fed = sum(count for _, count in iterate_chunks(records))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert fed == 200_000
    assert peak < 2_000_000


@pytest.mark.parametrize(("input_size", "distinct"), [(1, 1), (3, 2), (4, 3), (9, 3)])
def test_different_idx_are_counted_over_what_is_fed(
    tmp_path: Path, input_size: int, distinct: int
) -> None:
    content = b"".join(b'{"idx": %d}\n' % idx for idx in (0, 1, 1, 2))
    assert load_records(write(tmp_path, content), input_size).distinct == distinct


def test_where_a_record_that_is_fed_has_no_idx_none_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path, b'{"idx": 0}\n{"text": ""}\n')
    assert load_records(path, 1).distinct == 1
    assert load_records(path, 2).distinct is None


def test_a_file_that_is_emptied_while_it_is_fed_is_an_error(tmp_path: Path) -> None:
    records = load_records(write_records(tmp_path, 2), 100_000)
    chunks = iterate_chunks(records)
    next(chunks)
    write(tmp_path, b"")
    with pytest.raises(DataError, match="emptied while it was being fed"):
        list(chunks)
