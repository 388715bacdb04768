"""The file of a suite: what may stand in it, what is wrong with it, what goes over what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from morocco.errors import DataError
from morocco.suite.options import SIZES, Config, ModelConfig, Request, choose_models, read_config
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


def read(path: Path, content: str) -> Config:
    path.write_text(content, encoding="utf-8")
    return read_config(path, OPTIONS)


def complaint(path: Path, content: str) -> str:
    """Return what is said of a file; it always begins with the file's name."""
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
        "env": ["TOKEN", "COLOUR=red"],
    }
    assert config.models == {
        "small": ModelConfig("russiannlp/small-{task}"),
        "large": ModelConfig(
            "russiannlp/large-{task}",
            ("parus", "rucos"),
            {"batch_size": 8},
            {"rucos": {"batch_size": 2}},
        ),
    }
    assert config.sizes_by_task == {"rucos": {"input_size": 500, "repeats": 2}}


def test_an_empty_file_says_nothing(path: Path) -> None:
    assert read(path, "") == Config()


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
    assert read(path, f"env = {value}").options == {"env": ["A=1"]}


@pytest.mark.parametrize("name", ["ruBERT-base_v1.2+fp16", "модель", "3"])
def test_a_model_may_be_called_what_a_folder_may_be_called(name: str, path: Path) -> None:
    assert list(read(path, f'[models]\n"{name}" = "x"').models) == [name]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("repeat = 3", "unknown setting 'repeat'; use one of data_dir, env, "),
        ("config = 'other.toml'", "unknown setting 'config'"),
        ("target = ['a']", "target must be a single string or number."),
        ("logs = {a = 1}", "logs must be a single string or number."),
        ("env = [['A=1']]", "env must be a single string or number."),
        ("models = 5", "models must be a table."),
        ("sizes = ['parus']", "sizes must be a table."),
        ("sizes.parus = 5", "sizes.parus must be a table."),
        ("sizes.parus.speed = 5", "sizes.parus has no setting 'speed'; use input_size, batch_size"),
        ("sizes.parus.repeats = 0", "sizes.parus.repeats must be a whole number of at least 1."),
        ("sizes.parus.repeats = 2.0", "sizes.parus.repeats must be a whole number of at least 1."),
        ("sizes.parus.repeats = true", "sizes.parus.repeats must be a whole number of at least 1."),
        ("sizes.parus.repeats = '2'", "sizes.parus.repeats must be a whole number of at least 1."),
        ("models.a = 5", "models.a must be a table."),
        ("models.a.tasks = ['parus']", "models.a needs a target, such as 'russiannlp/a-{task}'."),
        ("models.a.target = 5", "models.a needs a target, such as 'russiannlp/a-{task}'."),
        (
            "models.a = {target = 'x', tasks = 'parus'}",
            "models.a.tasks must be a list of task names",
        ),
        ("models.a = {target = 'x', tasks = []}", "models.a.tasks must be a list of task names"),
        ("models.a = {target = 'x', tasks = [1]}", "models.a.tasks must be a list of task names"),
        ("models.a = {target = 'x', memory = '8g'}", "models.a has no setting 'memory'; use "),
        ("models.a = {target = 'x', repeats = -1}", "models.a.repeats must be a whole number"),
        ("models.a = {target = 'x', sizes = 5}", "models.a.sizes must be a table."),
        ("models.a = {target = 'x', sizes = {rcb = 5}}", "models.a.sizes.rcb must be a table."),
        ("models.a = {target = 'x', sizes = {rcb = {n = 5}}}", "models.a.sizes.rcb has no setting"),
        ("models.'a/b' = 'x'", "the model's name 'a/b' cannot be the name of its folder"),
        ("models.'..' = 'x'", "the model's name '..' cannot be the name of its folder"),
        ("models.'.' = 'x'", "the model's name '.' cannot be the name of its folder"),
        ("models.'' = 'x'", "the model's name '' cannot be the name of its folder"),
    ],
)
def test_what_is_wrong_is_named(content: str, told: str, path: Path) -> None:
    assert complaint(path, content).startswith(told)


def test_a_file_that_is_no_toml_is_told_with_the_line(path: Path) -> None:
    assert "is no TOML" in complaint(path, "repeats = 3\nrepeats: 5\n")
    assert "line 2" in complaint(path, "repeats = 3\nrepeats: 5\n")


def test_a_file_that_is_not_there_is_told(path: Path) -> None:
    with pytest.raises(DataError, match=rf"Cannot read {path}: No such file"):
        read_config(path, OPTIONS)


# What goes over what


def choose(
    config: Config | None = None,
    *,
    target: str | None = None,
    models: Sequence[str] = (),
    tasks: Sequence[str] = (),
    file_tasks: Sequence[str] = (),
    sizes: Mapping[str, int] | None = None,
) -> list[Model]:
    request = Request(target, models, tasks, sizes or {})
    return choose_models(request, config or Config(), file_tasks, DEFAULTS)


def one_model(**facts: object) -> Config:
    return Config(models={"a": ModelConfig("a-{task}", **facts)})  # type: ignore[arg-type]


def test_a_target_alone_is_a_model_without_a_name_on_all_tasks() -> None:
    (model,) = choose(target="x-{task}")
    assert (model.name, model.target) == ("", "x-{task}")
    assert model.sizes == dict.fromkeys(TASKS, DEFAULTS)


def test_the_target_of_the_command_line_goes_over_the_models_of_the_file() -> None:
    assert [model.target for model in choose(one_model(), target="x-{task}")] == ["x-{task}"]


def test_all_models_of_the_file_are_measured_in_its_order() -> None:
    config = Config(models={"b": ModelConfig("b-{task}"), "a": ModelConfig("a-{task}")})
    assert [model.name for model in choose(config)] == ["b", "a"]
    assert [model.name for model in choose(config, models=["a"])] == ["a"]


def test_a_model_that_is_not_in_the_file_is_told() -> None:
    config = Config(models={"b": ModelConfig("b"), "a": ModelConfig("a")})
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
def test_the_tasks_of_the_command_line_go_over_those_of_a_model_and_of_the_file(
    asked: Sequence[str],
    of_model: Sequence[str] | None,
    of_file: Sequence[str],
    chosen: list[str],
) -> None:
    (model,) = choose(one_model(tasks=of_model), tasks=asked, file_tasks=of_file)
    assert list(model.sizes) == chosen


def test_a_task_of_ones_own_may_have_sizes_if_it_is_measured() -> None:
    config = Config(sizes_by_task={"mine": {"repeats": 2}})
    (model,) = choose(config, target="x-{task}", tasks=["mine", "parus"])
    assert model.sizes["mine"].repeats == 2
    assert model.sizes["parus"] == DEFAULTS


def test_sizes_for_a_task_of_the_nine_that_is_left_out_are_no_mistake() -> None:
    config = Config(sizes_by_task={"rcb": {"repeats": 2}})
    (model,) = choose(config, target="x-{task}", tasks=["parus"])
    assert list(model.sizes) == ["parus"]


@pytest.mark.parametrize(
    "config",
    [
        Config(sizes_by_task={"paruss": {"repeats": 2}}),
        one_model(sizes_by_task={"paruss": {"repeats": 2}}),
    ],
)
def test_sizes_for_what_is_no_task_are_told(config: Config) -> None:
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
    config = Config(
        models={"a": ModelConfig("a-{task}", ("parus", "rcb"), own, {"parus": of_both})},
        sizes_by_task={"parus": of_task},
    )
    (model,) = choose(config, sizes=asked)
    for name in SIZES:
        layers = [asked, of_both, of_task, own, vars(DEFAULTS)]
        assert getattr(model.sizes["parus"], name) == next(x[name] for x in layers if name in x)
        layers = [asked, own, vars(DEFAULTS)]
        assert getattr(model.sizes["rcb"], name) == next(x[name] for x in layers if name in x)
