"""Content of files as typed objects; what does not fit is named by file and key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, nan
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from morocco.errors import DataError
from morocco.util.schema import Amount, Count, Name, convert


@dataclass(frozen=True)
class Machine:
    gpus: Count | None = None
    ram: Amount | None = None


class Run(msgspec.Struct, frozen=True):
    size: Count
    times: Annotated[tuple[float, ...], Meta(description="a list of times")] = ()


@dataclass(frozen=True)
class Profile:
    name: Name
    clock: Literal["log", "gpu"] = "log"
    machine: Machine | None = None
    runs: tuple[Run, ...] = ()
    scores: Mapping[Name, float] = field(default_factory=dict)
    quality: Annotated[float | Machine, Meta(description="a score")] = 0
    strict: bool = False

    def __post_init__(self) -> None:
        if self.strict and not self.runs:
            raise ValueError("there are no runs")


def complaint(content: object, **options: Any) -> str:
    with pytest.raises(DataError) as error:
        convert(content, Profile, Path("profile.toml"), **options)
    return str(error.value)


def test_content_becomes_an_object() -> None:
    content = {
        "name": "mini",
        "clock": "gpu",
        "machine": {"gpus": 2, "ram": 96},
        "runs": [{"size": 5, "times": [1, 2.5]}],
        "scores": {"parus": 0.5},
        "quality": {"gpus": 1},
    }
    assert convert(content, Profile, "profile.toml") == Profile(
        name="mini",
        clock="gpu",
        machine=Machine(gpus=2, ram=96.0),
        runs=(Run(5, (1.0, 2.5)),),
        scores={"parus": 0.5},
        quality=Machine(gpus=1),
    )


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"name": 5}, "'name' must be a name, not 5."),
        ({"name": ""}, "'name' must be a name, not ''."),
        ({"name": " "}, "'name' must be a name, not ' '."),
        ({"name": "a\x1b[0m"}, "'name' must be a name, not 'a\\x1b[0m'."),
        ({"clock": "sun"}, "'clock' must be log or gpu, not 'sun'."),
        ({"machine": 5}, "'machine' must be a table, not 5."),
        ({"machine": {"gpus": "2"}}, "'machine.gpus' must be a whole number from 1 up, not '2'."),
        ({"machine": {"gpus": True}}, "'machine.gpus' must be a whole number from 1 up, not True."),
        ({"machine": {"gpus": 2**70}}, "'machine.gpus' must be a whole number from 1 up, not 1"),
        ({"machine": {"gpus": 0}}, "'machine.gpus' must be a whole number from 1 up, not 0."),
        ({"machine": {"ram": nan}}, "'machine.ram' must be a number above 0, not nan."),
        ({"machine": {"ram": inf}}, "'machine.ram' must be a number above 0, not inf."),
        (
            {"machine": {"gpu_count": 2}},
            "there is no key 'machine.gpu_count'; allowed: machine.gpus, machine.ram.",
        ),
        ({"runs": 5}, "'runs' must be a list, not 5."),
        ({"runs": [{"size": 1}, 5]}, "'runs[1]' must be a table, not 5."),
        (
            {"runs": [{}]},
            "the key 'runs[0].size' is missing; it must be a whole number from 1 up.",
        ),
        ({"runs": [{"size": 1, "times": ["a"]}]}, "'runs[0].times' must be a list of times"),
        ({"scores": {"parus": 1, "rcb": "x"}}, "'scores.rcb' must be a number, not 'x'."),
        ({"scores": {"\n": 1}}, "'scores.\\n' must be a name, not '\\n'."),
        ({"quality": "good"}, "'quality' must be a score, not 'good'."),
        ({"strict": 1}, "'strict' must be true or false, not 1."),
        ({"strict": True}, "there are no runs."),
    ],
)
def test_a_fault_is_named_by_file_and_key(change: Mapping[str, object], fault: str) -> None:
    message = complaint({"name": "mini", **change})
    assert message.startswith(f"profile.toml: {fault}")


def test_a_key_that_is_missing_is_named() -> None:
    assert complaint({}) == "profile.toml: the key 'name' is missing; it must be a name."


def test_content_that_is_no_table_is_refused() -> None:
    assert complaint([]) == "profile.toml: the content must be a table, not []."


def test_the_place_within_the_file_and_what_to_do_are_named() -> None:
    message = complaint({"name": "mini", "speed": 5}, key="models.a", hint="Write it anew.")
    assert "'models.a.speed'" in message
    assert "models.a.clock" in message
    assert message.endswith(". Write it anew.")
    assert "'models.a' cannot be used: there are no runs" in complaint(
        {"name": "mini", "strict": True}, key="models.a"
    )


def test_keys_of_later_versions_may_be_allowed() -> None:
    content = {"name": "mini", "new": 1, "machine": {"gpus": 2, "new": 1}}
    converted = convert(content, Profile, "profile.toml", allow_unknown=True)
    assert converted == Profile("mini", machine=Machine(gpus=2))


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from([*Profile.__dataclass_fields__]), _values)
def test_whatever_a_key_holds_there_is_an_object_or_an_error(key: str, value: object) -> None:
    try:
        assert isinstance(convert({"name": "mini", key: value}, Profile, "profile.toml"), Profile)
    except DataError as error:
        assert str(error).startswith("profile.toml: ")  # noqa: PT017
