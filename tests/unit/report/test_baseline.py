"""A model kept in a file to compare others with."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from morocco.errors import DataError, OutputError
from morocco.report.baseline import Baseline, read_baseline, write_baseline
from morocco.report.model import Readings

Content = dict[str, Any]

READINGS = Readings(
    input_size=2000,
    batch_size=32,
    init_times=(10.0, 10.25),
    run_times=(50.0, 51.5),
    gpu_ram=(2.5, 2.5),
    gpu_ram_batch=(3.5,),
    ram=(1.0,),
    ram_batch=(1.25,),
    init_energy=(),
    energy=(),
)
BASELINE = Baseline("rubert", "log", {"3f0c": "V100, 8 cores"}, {"parus": READINGS})


def write(path: Path, spoil: Callable[[Content], object]) -> Path:
    """Write a baseline that `spoil` has changed."""
    write_baseline(path, BASELINE)
    content = json.loads(path.read_text())
    spoil(content)
    path.write_text(json.dumps(content))
    return path


def test_a_baseline_reads_back_as_written(tmp_path: Path) -> None:
    write_baseline(tmp_path / "baseline.json", BASELINE)
    assert read_baseline(tmp_path / "baseline.json") == BASELINE


def test_the_baseline_of_an_earlier_version_reads_as_before(tmp_path: Path) -> None:
    content = {
        "format": 1,
        "morocco": "1.0.0",
        "model": "rubert",
        "clock": "log",
        "machines": {"3f0c": "V100, 8 cores"},
        "tasks": {"parus": vars(READINGS)},
    }
    path = tmp_path / "b.json"
    path.write_text(json.dumps(content))
    assert read_baseline(path) == replace(BASELINE, morocco="1.0.0")


def test_a_later_format_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "b.json", lambda content: content.update(format=2))
    with pytest.raises(DataError, match=r"format 2.*--save-baseline"):
        read_baseline(path)


@pytest.mark.parametrize(
    ("spoil", "key", "needed"),
    [
        (lambda c: c.update(extra=1), "extra", "there is no key"),
        (lambda c: c.pop("clock"), "clock", "is missing"),
        (lambda c: c.update(model=""), "model", "a name"),
        (lambda c: c.update(model="a\x1b[0m"), "model", "a name"),
        (lambda c: c.update(clock="sun"), "clock", "log or gpu"),
        (lambda c: c.update(machines=[]), "machines", "a table"),
        (lambda c: c.update(machines={"a": 1}), "machines.a", "a name"),
        (lambda c: c.update(tasks={}), "tasks", "a table"),
        (lambda c: c.update(tasks={"\n": c["tasks"]["parus"]}), "tasks.", "a name"),
        (lambda c: c["tasks"]["parus"].pop("ram"), "tasks.parus.ram", "is missing"),
        (lambda c: c["tasks"]["parus"].update(rum=[]), "tasks.parus.rum", "there is no key"),
        (lambda c: c["tasks"]["parus"].update(input_size=0), "tasks.parus.input_size", "whole"),
        (lambda c: c["tasks"]["parus"].update(input_size=True), "tasks.parus.input_size", "whole"),
        (lambda c: c["tasks"]["parus"].update(ram=[-1]), "tasks.parus.ram", "a list of numbers"),
        (lambda c: c["tasks"]["parus"].update(ram=[1e300]), "tasks.parus.ram", "a list of numbers"),
        (lambda c: c["tasks"]["parus"].update(ram=[True]), "tasks.parus.ram", "a list of numbers"),
        (lambda c: c["tasks"]["parus"].update(ram=[1] * 10_001), "tasks.parus.ram", "a list"),
        (lambda c: c["tasks"]["parus"].update(run_times=[]), "tasks.parus.run_times", "one number"),
        (lambda c: c["tasks"]["parus"].update(run_times=[9]), "tasks.parus", "not longer than"),
    ],
)
def test_an_invalid_baseline_names_the_key(
    tmp_path: Path, spoil: Callable[[Content], object], key: str, needed: str
) -> None:
    path = write(tmp_path / "b.json", spoil)
    with pytest.raises(DataError) as error:
        read_baseline(path)
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    assert f"'{key}" in message
    assert needed in message
    assert "--save-baseline" in message


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b"{", b"[" * 100_000, b'{"format": NaN}'])
def test_invalid_json_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "b.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"b\.json cannot be used: "):
        read_baseline(path)


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from([*vars(BASELINE), *vars(READINGS)]), _values)
@settings(max_examples=100, deadline=None)
def test_any_value_of_a_key_gives_a_baseline_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, key: str, value: object
) -> None:
    def spoil(content: Content) -> None:
        (content if key in content else content["tasks"]["parus"])[key] = value

    path = write(tmp_path_factory.mktemp("baseline") / "b.json", spoil)
    try:
        read_baseline(path)
    except DataError as error:
        assert str(path) in str(error)  # noqa: PT017


def test_a_path_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="--save-baseline"):
        write_baseline(tmp_path / "file" / "b.json", BASELINE)


def test_a_file_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    with path.open("wb") as file:
        file.truncate(2**25)
    with pytest.raises(DataError, match="is longer than"):
        read_baseline(path)
