"""The log reader and the path convention."""

from __future__ import annotations

import json
import re
from io import BytesIO
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sample_logs
from morocco.errors import DataError
from morocco.logs.log import MAX_LINE, Log, LogPath, parse_sample, parse_samples, read_lines
from morocco.logs.samples import KEYS, Sample, Samples
from sample_logs import INIT

FIRST_TOOL = re.compile(r"([^/]+)/(\d+)_(\d+)_\d+\.jsonl")
GOOD = b'{"timestamp": 1.5, "cpu_usage": 0.5, "ram": 7, "gpu_usage": null, "gpu_ram": null}\n'

timestamps = st.floats(1, 2.0**32) | st.integers(1, 2**32)
fractions = st.none() | st.floats(0, 100) | st.integers(0, 64)
counts = st.none() | st.integers(0, 2**53)  # what a column holds exactly
samples = st.builds(Sample, timestamps, fractions, counts, fractions, counts)
sizes = st.integers(1, 10**6)
# A folder named "." is no folder of its own: pathlib drops it from a path.
tasks = st.text(min_size=1).filter(lambda name: "/" not in name and name != ".")
log_paths = st.builds(LogPath, tasks, sizes, sizes, st.integers(0, 999))


def with_value(key: str, value: str) -> bytes:
    """Return a good line with the JSON text `value` in the place of one value."""
    values = dict.fromkeys(KEYS, "null") | {"timestamp": "1.5", key: value}
    return ("{" + ", ".join(f'"{name}": {text}' for name, text in values.items()) + "}\n").encode()


def write_lines(written: list[Sample]) -> list[bytes]:
    return [sample.to_line().encode() + b"\n" for sample in written]


def make_log(*samples: Sample) -> Log:
    return sample_logs.make_log(INIT, samples=samples)


@given(samples)
def test_a_sample_reads_back_as_it_was_written(sample: Sample) -> None:
    read = parse_sample(sample.to_line().encode())
    assert read == sample
    assert list(map(type, read)) == list(map(type, sample))


@given(samples)
def test_a_line_holds_the_five_keys_in_the_order_of_the_contract(sample: Sample) -> None:
    assert tuple(json.loads(sample.to_line())) == KEYS
    assert "\n" not in sample.to_line()


@given(st.lists(samples, max_size=3))
def test_samples_in_columns_equal_those_put_in(written: list[Sample]) -> None:
    many = tuple(written * 1000)
    kept = Samples(many)
    assert len(kept) == len(many)
    assert kept == many
    assert kept == Samples(many)
    assert hash(kept) == hash(many)
    assert kept[-2:] == many[-2:]
    assert [kept[index] for index in range(-len(written), 0)] == written
    assert kept != Samples([*written, Sample(5.0, 5)])


def test_samples_give_bytes_as_whole_numbers_and_null_as_none() -> None:
    (sample,) = Samples([Sample(1.0, None, 2**50, 0.5, 0)])
    assert sample.to_line() == Sample(1.0, None, 2**50, 0.5, 0).to_line()


def test_logs_of_the_same_readings_share_their_fingerprint() -> None:
    log, later = make_log(Sample(1.0, ram=5)), make_log(Sample(9.0, ram=5))
    assert log.fingerprint == later.fingerprint
    assert log.fingerprint != make_log(Sample(1.0, ram=6)).fingerprint
    assert log.fingerprint != make_log(Sample(1.0, gpu_ram=5)).fingerprint


def test_lines_too_long_for_a_log_are_never_read_whole() -> None:
    pieces = list(read_lines(BytesIO(GOOD + b"x" * 10**6 + b"\n" + GOOD)))
    assert b"".join(pieces) == GOOD + b"x" * 10**6 + b"\n" + GOOD
    assert max(map(len, pieces)) == MAX_LINE + 1
    assert pieces[0] == pieces[-1] == GOOD


def sort_by_time(written: list[Sample]) -> list[Sample]:
    return sorted(written, key=lambda sample: sample.timestamp)


@given(st.lists(samples, min_size=1, max_size=5).map(sort_by_time))
def test_a_log_reads_back_as_it_was_written(written: list[Sample]) -> None:
    assert parse_samples(write_lines(written), "x.jsonl") == tuple(written)


@given(st.lists(samples, min_size=1, max_size=5), st.data())
def test_a_last_line_that_was_cut_is_an_error_with_file_and_line(
    written: list[Sample], data: st.DataObject
) -> None:
    *before, last = write_lines(written)
    kept = data.draw(st.integers(1, len(last) - 2), label="bytes kept")
    with pytest.raises(DataError, match=rf"^x\.jsonl, line {len(written)}: .*cut short"):
        parse_samples([*before, last[:kept]], "x.jsonl")


def test_a_last_line_that_lacks_only_its_newline_is_read() -> None:
    assert len(parse_samples([GOOD, GOOD.rstrip()], "x.jsonl")) == 2


def test_keys_in_another_order_are_read() -> None:
    shuffled = dict(reversed(json.loads(GOOD).items()))
    assert parse_sample(json.dumps(shuffled).encode()) == parse_sample(GOOD)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "value", ["true", '"5"', "[1]", "{}", "NaN", "Infinity", "-Infinity", "1e999"]
)
def test_a_value_of_the_wrong_type_is_named_with_its_line(key: str, value: str) -> None:
    with pytest.raises(DataError, match=rf"^logs/x\.jsonl, line 2: `{key}` must be "):
        parse_samples([GOOD, with_value(key, value), GOOD], "logs/x.jsonl")


@pytest.mark.parametrize("key", KEYS[1:])
def test_a_negative_reading_is_named(key: str) -> None:
    with pytest.raises(DataError, match=rf"line 1: `{key}` must be null.*, not -1\."):
        parse_samples([with_value(key, "-1")], "x.jsonl")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("timestamp", value) for value in ("-1", "0", "5e-324", "0.5", "7258118401", "1e300")),
        *(("cpu_usage", value) for value in ("65537", "1e9", "-1e-300")),
        *(("ram", value) for value in ("1e-300", "0.5", "1152921504606846977", "1e300")),
        *(("gpu_usage", value) for value in ("100.5", "1e300")),
        *(("gpu_ram", value) for value in ("1e-300", "2305843009213693952")),
    ],
)
def test_a_reading_that_no_machine_can_have_is_named(key: str, value: str) -> None:
    with pytest.raises(DataError, match=rf"line 2: `{key}` must be .*, not "):
        parse_samples([GOOD, with_value(key, value)], "x.jsonl")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("timestamp", value) for value in ("1", "1.0", "7258118400")),
        *(("cpu_usage", value) for value in ("0", "-0.0", "1e-300", "65536")),
        *(("ram", value) for value in ("0", "0.0", "1", "5.5", "1152921504606846976")),
        *(("gpu_usage", value) for value in ("0", "1", "100")),
    ],
)
def test_a_reading_that_some_machine_may_have_is_read(key: str, value: str) -> None:
    (sample,) = parse_samples([with_value(key, value)], "x.jsonl")
    assert getattr(sample, key) == float(value)


@pytest.mark.parametrize("key", KEYS)
def test_an_integer_too_large_for_a_float_is_named(key: str) -> None:
    with pytest.raises(DataError, match=rf"line 1: `{key}` must be "):
        parse_samples([with_value(key, "1" + "0" * 400)], "x.jsonl")


def test_a_timestamp_cannot_be_null() -> None:
    with pytest.raises(DataError, match="line 1: `timestamp` must be seconds"):
        parse_samples([with_value("timestamp", "null")], "x.jsonl")


@pytest.mark.parametrize("key", KEYS)
def test_a_missing_key_is_named_with_its_line(key: str) -> None:
    values = json.loads(GOOD)
    del values[key]
    with pytest.raises(DataError, match=rf"^x\.jsonl, line 2: the key `{key}` is missing"):
        parse_samples([GOOD, json.dumps(values).encode()], "x.jsonl")


def test_an_extra_key_is_named_with_its_line() -> None:
    line = json.dumps(json.loads(GOOD) | {"gpu_ramm": 1}).encode()
    with pytest.raises(DataError, match=r"^x\.jsonl, line 1: the key `gpu_ramm` does not belong"):
        parse_samples([line], "x.jsonl")


@pytest.mark.parametrize("line", [b"[1, 2]\n", b"5\n", b"null\n", b'"text"\n', b"true\n"])
def test_a_line_that_is_not_an_object_is_quoted(line: bytes) -> None:
    with pytest.raises(DataError, match="line 2: not a JSON object") as error:
        parse_samples([GOOD, line], "x.jsonl")
    assert line.decode().strip() in str(error.value)


@pytest.mark.parametrize(
    "line", [b"\n", b"\xff\xfe\n", b"Traceback (most recent call last):\n", b"[" * 60_000 + b"\n"]
)
def test_a_line_that_is_not_json_is_an_error(line: bytes) -> None:
    with pytest.raises(DataError, match=r"^x\.jsonl, line 2: not JSON: ") as error:
        parse_samples([GOOD, line], "x.jsonl")
    assert len(str(error.value)) < 200


def test_a_line_too_long_for_a_log_is_an_error() -> None:
    with pytest.raises(DataError, match="line 1: longer than 64 KB"):
        parse_samples([b" " * 70_000 + GOOD], "x.jsonl")


def test_an_empty_log_is_an_error() -> None:
    with pytest.raises(DataError, match=r"^x\.jsonl: the log is empty"):
        parse_samples([], "x.jsonl")


@given(st.binary(max_size=200))
def test_whatever_the_bytes_the_reader_reads_or_says_why_not(line: bytes) -> None:
    try:
        (sample,) = parse_samples([line], "x.jsonl")
    except DataError as error:
        assert str(error).startswith("x.jsonl, line 1: ")  # noqa: PT017
    else:
        assert isinstance(sample, Sample)


@given(log_paths)
def test_a_log_path_round_trips(path: LogPath) -> None:
    assert LogPath.parse(str(path)) == path
    assert LogPath.parse(PurePosixPath("/any/where", str(path))) == path


@given(log_paths)
def test_the_first_tool_finds_every_log_path(path: LogPath) -> None:
    found = FIRST_TOOL.fullmatch(str(path))
    assert found is not None
    assert found.groups() == (path.task, str(path.input_size), str(path.batch_size))


def test_the_index_has_two_digits() -> None:
    assert str(LogPath("parus", 2000, 32, 1)) == "parus/2000_32_01.jsonl"
    assert str(LogPath("parus", 1, 1, 100)) == "parus/1_1_100.jsonl"


@pytest.mark.parametrize(
    "path",
    [
        "1_1_01.jsonl",
        "parus/1_1.jsonl",
        "parus/1_1_01.json",
        "parus/1_1_01.jsonl.part",
        "parus/1_1_01.jsonl.failed",
        "parus/x1_1_01.jsonl",
        "parus/1_1_01_1.jsonl",
        "parus/-1_1_01.jsonl",
        "parus/١_1_01.jsonl",
        "parus/1_1_01.jsonl\n",
        "",
    ],
)
def test_other_paths_are_not_logs(path: str) -> None:
    assert LogPath.parse(path) is None


def test_an_absurdly_long_number_is_not_a_log() -> None:
    assert LogPath.parse(f"parus/{'1' * 5000}_1_01.jsonl") is None


def test_run_time_is_from_the_first_line_to_the_last() -> None:
    assert make_log(Sample(100.0), Sample(101.0), Sample(103.5)).run_time == 3.5
    assert make_log(Sample(100.0)).run_time == 0


def test_gpu_run_time_is_from_the_first_gpu_reading() -> None:
    log = make_log(Sample(1.0), Sample(2.0, gpu_ram=0), Sample(3.0, gpu_ram=5), Sample(9.0))
    assert log.gpu_run_time == 7.0
    assert make_log(Sample(1.0, ram=5)).gpu_run_time is None


def test_peaks_ignore_what_was_not_measured() -> None:
    log = make_log(Sample(1.0, ram=5), Sample(2.0, ram=9, gpu_ram=3), Sample(3.0, ram=2))
    assert (log.ram, log.gpu_ram) == (9, 3)
    assert (make_log(Sample(1.0)).ram, make_log(Sample(1.0)).gpu_ram) == (None, None)


def test_a_timestamp_that_runs_backward_is_named_with_its_line() -> None:
    lines = [Sample(moment).to_line().encode() for moment in (3.0, 4.0, 2.0)]
    with pytest.raises(DataError, match=r"log\.jsonl, line 3: its timestamp is earlier"):
        parse_samples(lines, "log.jsonl")
