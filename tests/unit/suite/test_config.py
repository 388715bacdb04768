"""The file of a suite: what it may contain, what is wrong with it, what takes precedence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from morocco.errors import DataError
from morocco.suite.options import (
    SIZES,
    ModelSettings,
    SizeSettings,
    SuiteFile,
    choose_models,
    read_suite_file,
)
from morocco.suite.plan import Model, Sizes
from morocco.tasks import TASKS

OPTIONS = {"target", "data_dir", "logs", "repeats", "env", "tasks", "timeout", "force"}
DEFAULTS = Sizes(input_size=2000, batch_size=32, repeats=5)
A_FILE = """
data-dir = "data/public"
repeats = 3
force = true
env = ["TOKEN", "COLOUR=red"]

[models]
small = "russiannlp/small-{task}"

[models.large]
target = "russiannlp/large-{task}"
tasks = ["parus", "rucos"]
batch-size = 8

[models.large.sizes]
rucos = { batch-size = 2 }

[sizes]
rucos = { input-size = 500, repeats = 2 }
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "suite.toml"


def read(path: Path, content: str) -> SuiteFile:
    path.write_text(content, encoding="utf-8")
    return read_suite_file(path, OPTIONS)


def complaint(path: Path, content: str) -> str:
    """Return the error about a file, which begins with the file's name."""
    with pytest.raises(DataError) as error:
        read(path, content)
    assert str(error.value).startswith(str(path)) or "Cannot read" in str(error.value)
    return str(error.value).removeprefix(f"{path}: ")


# Reading


def test_a_file_says_options_models_and_sizes(path: Path) -> None:
    config = read(path, A_FILE)
    assert config.options == {
        "data_dir": "data/public",
        "repeats": "3",
        "force": "True",
        "env": ("TOKEN", "COLOUR=red"),
    }
    assert config.models == {
        "small": ModelSettings(target="russiannlp/small-{task}"),
        "large": ModelSettings(
            target="russiannlp/large-{task}",
            tasks=("parus", "rucos"),
            batch_size=8,
            sizes={"rucos": SizeSettings(batch_size=2)},
        ),
    }
    assert config.sizes == {"rucos": SizeSettings(input_size=500, repeats=2)}


def test_an_empty_file_says_nothing(path: Path) -> None:
    assert read(path, "") == SuiteFile()


@pytest.mark.parametrize("key", ["data-dir", "data_dir"])
def test_a_setting_is_named_as_its_option_or_as_its_variable(key: str, path: Path) -> None:
    assert read(path, f'{key} = "data"').options == {"data_dir": "data"}


@pytest.mark.parametrize(
    ("line", "text"),
    [("timeout = 90", "90"), ("timeout = 0.0", "0.0"), ("repeats = 2.5", "2.5")],
)
def test_a_number_is_judged_by_the_rules_of_the_command_line(
    line: str, text: str, path: Path
) -> None:
    assert list(read(path, line).options.values()) == [text]


@pytest.mark.parametrize("value", ['"A=1"', '["A=1"]'])
def test_one_variable_needs_no_list(value: str, path: Path) -> None:
    assert read(path, f"env = {value}").options == {"env": ("A=1",)}


@pytest.mark.parametrize("name", ["ruBERT-base_v1.2+fp16", "модель", "3"])
def test_a_model_may_be_called_what_a_folder_may_be_called(name: str, path: Path) -> None:
    assert list(read(path, f'[models]\n"{name}" = "x"').models) == [name]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("repeat = 3", "'repeat'; allowed: data_dir, env, "),
        ("config = 'other.toml'", "'config'"),
        ("target = ['a']", "'target' must be a single text or number."),
        ("logs = {a = 1}", "'logs' must be a single text or number."),
        ("env = [['A=1']]", "'env' must be a single text or number."),
        ("models = 5", "'models' must be a table, not 5."),
        ("sizes = ['parus']", "'sizes' must be a table, not ['parus']."),
        ("sizes.parus = 5", "'sizes.parus' must be a table, not 5."),
        ("sizes.parus.speed = 5", "'sizes.parus.speed'; allowed: sizes.parus.input_size, "),
        ("sizes.parus.repeats = 0", "'sizes.parus.repeats' must be a whole number from 1 up"),
        ("sizes.parus.repeats = 2.0", "'sizes.parus.repeats' must be a whole number from 1 up"),
        ("sizes.parus.repeats = true", "'sizes.parus.repeats' must be a whole number from 1 up"),
        ("sizes.parus.repeats = '2'", "'sizes.parus.repeats' must be a whole number from 1 up"),
        ("models.a = 5", "'models.a' must be a table, not 5."),
        ("models.a.tasks = ['parus']", "'models.a.target' is missing"),
        ("models.a.target = 5", "'models.a.target' must be a target, such as 'russiannlp/"),
        ("models.a = {target = 'x', tasks = 'parus'}", "'models.a.tasks' must be a list of task"),
        ("models.a = {target = 'x', tasks = []}", "'models.a.tasks' must be a list of task names"),
        ("models.a = {target = 'x', tasks = [1]}", "'models.a.tasks' must be a list of task names"),
        ("models.a = {target = 'x', memory = '8g'}", "'models.a.memory'; allowed: "),
        ("models.a = {target = 'x', repeats = -1}", "'models.a.repeats' must be a whole number"),
        ("models.a = {target = 'x', sizes = 5}", "'models.a.sizes' must be a table, not 5."),
        ("models.a = {target = 'x', sizes = {rcb = 5}}", "'models.a.sizes.rcb' must be a table"),
        ("models.a = {target = 'x', sizes = {rcb = {n = 5}}}", "'models.a.sizes.rcb.n'; allowed"),
        ("models.'a/b' = 'x'", "'models.a/b' must be a name for the model's folder"),
        ("models.'..' = 'x'", "'models...' must be a name for the model's folder"),
        ("models.'.' = 'x'", "'models..' must be a name for the model's folder"),
        ("models.'' = 'x'", "'models.' must be a name for the model's folder"),
    ],
)
def test_what_is_wrong_is_named(content: str, expected: str, path: Path) -> None:
    assert expected in complaint(path, content)


@pytest.mark.parametrize("key", ["batch-size", "batch_size"])
def test_the_keys_of_sizes_may_be_written_either_way(key: str, path: Path) -> None:
    content = f"sizes.my-task.{key} = 8\n[models.my-model]\ntarget = 'x'\n{key} = 4"
    file = read(path, content)
    assert file.sizes == {"my-task": SizeSettings(batch_size=8)}
    assert file.models == {"my-model": ModelSettings(target="x", batch_size=4)}


def test_a_file_that_is_not_toml_is_reported_with_the_line(path: Path) -> None:
    assert "is not TOML" in complaint(path, "repeats = 3\nrepeats: 5\n")
    assert "line 2" in complaint(path, "repeats = 3\nrepeats: 5\n")


def test_a_file_that_is_not_there_is_reported(path: Path) -> None:
    with pytest.raises(DataError, match=rf"Cannot read {path}: No such file"):
        read_suite_file(path, OPTIONS)


# Precedence


def choose(
    config: SuiteFile | None = None,
    *,
    target: str | None = None,
    models: Sequence[str] = (),
    tasks: Sequence[str] = (),
    file_tasks: Sequence[str] = (),
    sizes: Mapping[str, int] | None = None,
) -> list[Model]:
    """Choose models as the command does; `tasks` and `sizes` are those of the command line."""
    explicit = {*(sizes or {}), *(["tasks"] if tasks else [])}
    options = {**vars(DEFAULTS), **(sizes or {}), "tasks": tasks or file_tasks}
    return choose_models(
        {"config": config, "target": target, "models": models, **options}, explicit
    )


def one_model(**facts: Any) -> SuiteFile:
    return SuiteFile(models={"a": ModelSettings(target="a-{task}", **facts)})


def test_a_target_alone_is_a_model_without_a_name_on_all_tasks() -> None:
    (model,) = choose(target="x-{task}")
    assert (model.name, model.target) == ("", "x-{task}")
    assert model.sizes == dict.fromkeys(TASKS, DEFAULTS)


def test_the_target_of_the_command_line_takes_precedence_over_the_models_of_the_file() -> None:
    assert [model.target for model in choose(one_model(), target="x-{task}")] == ["x-{task}"]


def test_all_models_of_the_file_are_measured_in_its_order() -> None:
    config = SuiteFile(
        models={"b": ModelSettings(target="b-{task}"), "a": ModelSettings(target="a-{task}")}
    )
    assert [model.name for model in choose(config)] == ["b", "a"]
    assert [model.name for model in choose(config, models=["a"])] == ["a"]


def test_a_model_that_is_not_in_the_file_is_reported() -> None:
    config = SuiteFile(models={"b": ModelSettings(target="b"), "a": ModelSettings(target="a")})
    with pytest.raises(DataError, match="the file has no 'c', only b, a"):
        choose(config, models=["a", "c"])


def test_a_choice_of_models_is_of_no_use_with_a_target() -> None:
    with pytest.raises(DataError, match="leave out TARGET"):
        choose(one_model(), target="x", models=["a"])


@pytest.mark.parametrize(
    ("asked", "of_model", "of_file", "chosen"),
    [
        (("rcb",), ("parus",), ("terra",), ["rcb"]),
        ((), ("parus",), ("terra",), ["parus"]),
        ((), None, ("terra",), ["terra"]),
        ((), None, (), list(TASKS)),
    ],
)
def test_the_tasks_of_the_command_line_take_precedence_over_those_of_a_model_and_the_file(
    asked: Sequence[str],
    of_model: Sequence[str] | None,
    of_file: Sequence[str],
    chosen: list[str],
) -> None:
    (model,) = choose(one_model(tasks=of_model), tasks=asked, file_tasks=of_file)
    assert list(model.sizes) == chosen


def test_a_task_of_ones_own_may_have_sizes_if_it_is_measured() -> None:
    config = SuiteFile(sizes={"mine": SizeSettings(repeats=2)})
    (model,) = choose(config, target="x-{task}", tasks=["mine", "parus"])
    assert model.sizes["mine"].repeats == 2
    assert model.sizes["parus"] == DEFAULTS


def test_sizes_for_a_task_of_the_nine_that_is_left_out_are_no_mistake() -> None:
    config = SuiteFile(sizes={"rcb": SizeSettings(repeats=2)})
    (model,) = choose(config, target="x-{task}", tasks=["parus"])
    assert list(model.sizes) == ["parus"]


@pytest.mark.parametrize(
    "config",
    [
        SuiteFile(sizes={"paruss": SizeSettings(repeats=2)}),
        one_model(sizes={"paruss": SizeSettings(repeats=2)}),
    ],
)
def test_sizes_for_what_is_no_task_are_reported(config: SuiteFile) -> None:
    target = None if config.models else "x-{task}"
    with pytest.raises(DataError, match="sizes for 'paruss', which is not a task of this suite"):
        choose(config, target=target)


SOME_SIZES = st.dictionaries(st.sampled_from(SIZES), st.integers(1, 99))


@given(SOME_SIZES, SOME_SIZES, SOME_SIZES, SOME_SIZES)
def test_sizes_have_five_layers(
    own: Mapping[str, int],
    of_task: Mapping[str, int],
    of_both: Mapping[str, int],
    asked: Mapping[str, int],
) -> None:
    """The command line over a task of a model over a task over a model over the defaults."""
    config = SuiteFile(
        models={
            "a": ModelSettings(
                target="a-{task}",
                tasks=("parus", "rcb"),
                sizes={"parus": SizeSettings(**of_both)},
                **own,
            )
        },
        sizes={"parus": SizeSettings(**of_task)},
    )
    (model,) = choose(config, sizes=asked)
    for name in SIZES:
        layers = [asked, of_both, of_task, own, vars(DEFAULTS)]
        assert getattr(model.sizes["parus"], name) == next(x[name] for x in layers if name in x)
        layers = [asked, own, vars(DEFAULTS)]
        assert getattr(model.sizes["rcb"], name) == next(x[name] for x in layers if name in x)
