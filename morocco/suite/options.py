"""The options of a suite, and its file: several models, sizes for some tasks or models."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from morocco.errors import DataError
from morocco.suite.plan import Model, Sizes, build_targets
from morocco.targets.options import RunOptions, parse_env
from morocco.tasks import TASKS
from morocco.util.files import read_toml

SIZES = ("input_size", "batch_size", "repeats")
_LISTS = ("tasks", "env")
_NAME = re.compile(r"[\w.+-]+")


@dataclass(frozen=True)
class SuiteOptions:
    """The command line of `suite` and its file, merged."""

    models: Sequence[Model]
    data_dir: Path
    logs: Path
    retries: int
    force: bool
    parallel: bool
    cluster: str | None
    quiet: bool
    run: RunOptions


@dataclass(frozen=True)
class ModelConfig:
    """One model of the file."""

    target: str
    tasks: tuple[str, ...] | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    """For all its tasks."""
    sizes_by_task: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Config:
    """The content of a suite file; what it leaves out is empty."""

    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the command line, by their names there."""
    models: Mapping[str, ModelConfig] = field(default_factory=dict)
    sizes_by_task: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def read_config(path: Path, options: Collection[str]) -> Config:
    """Return the content of a file that may set `options`; DataError names what is wrong."""
    content = {_to_name(key): value for key, value in read_toml(path).items()}
    models, sizes = content.pop("models", {}), content.pop("sizes", {})
    unknown = [key for key in content if key not in options]
    if unknown:
        allowed = ", ".join(sorted([*options, "models", "sizes"]))
        raise DataError(f"{path}: unknown setting {unknown[0]!r}; use one of {allowed}.")
    return Config(
        {key: _as_argument(path, key, value) for key, value in content.items()},
        {name: _read_model(path, name, value) for name, value in _table(path, "models", models)},
        _read_sizes_by_task(path, "sizes", sizes),
    )


def _as_argument(path: Path, key: str, value: Any) -> str | list[str]:
    """Return a setting as the command line has it, so that the same rules apply to it."""
    if isinstance(value, list) and key in _LISTS:
        return [_as_text(path, key, item) for item in value]
    text = _as_text(path, key, value)
    return [text] if key == "env" else text


def _as_text(path: Path, key: str, value: Any) -> str:
    if isinstance(value, (dict, list)):
        raise DataError(f"{path}: {key} must be a single string or number.")
    return str(value)


def _read_model(path: Path, name: str, value: Any) -> ModelConfig:
    where = f"models.{name}"
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise DataError(
            f"{path}: the model's name {name!r} cannot be the name of its folder; use letters, "
            "digits and -_.+ only."
        )
    settings = {"target": value} if isinstance(value, str) else dict(_table(path, where, value))
    target, tasks = settings.pop("target", None), settings.pop("tasks", None)
    by_task = _read_sizes_by_task(path, f"{where}.sizes", settings.pop("sizes", {}))
    if not isinstance(target, str):
        raise DataError(f"{path}: {where} needs a target, such as 'russiannlp/{name}-{{task}}'.")
    if tasks is not None and not _is_list_of_names(tasks):
        raise DataError(f"{path}: {where}.tasks must be a list of task names.")
    sizes = _read_sizes(path, where, settings)
    return ModelConfig(target, None if tasks is None else tuple(tasks), sizes, by_task)


def _read_sizes_by_task(path: Path, where: str, value: Any) -> dict[str, dict[str, int]]:
    return {
        task: _read_sizes(path, f"{where}.{task}", dict(_table(path, f"{where}.{task}", sizes)))
        for task, sizes in _table(path, where, value)
    }


def _read_sizes(path: Path, where: str, settings: Mapping[str, Any]) -> dict[str, int]:
    sizes = {_to_name(key): value for key, value in settings.items()}
    for key, value in sizes.items():
        if key not in SIZES:
            raise DataError(f"{path}: {where} has no setting {key!r}; use {', '.join(SIZES)}.")
        if type(value) is not int or value < 1:
            raise DataError(f"{path}: {where}.{key} must be a whole number of at least 1.")
    return sizes


def _table(path: Path, where: str, value: Any) -> list[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise DataError(f"{path}: {where} must be a table.")
    return list(value.items())


def _is_list_of_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value) and bool(value)


def _to_name(key: str) -> str:
    return key.replace("-", "_")


@dataclass(frozen=True)
class Request:
    """The models, tasks and sizes that the command line asks for; empty where it does not."""

    target: str | None = None
    models: Sequence[str] = ()
    tasks: Sequence[str] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)


def choose_models(
    request: Request, config: Config, tasks: Sequence[str], defaults: Sizes
) -> list[Model]:
    """Return the models with the sizes of their tasks; DataError for names that do not exist.

    The command line takes precedence over the file. In the file, sizes of a task of a model take
    precedence over those of the task, and these over those of the model; `tasks` and `defaults`
    apply to what is still open.
    """
    if request.target is not None:
        if request.models:
            remedy = "leave out TARGET" if config.models else "name that file"
            raise DataError(f"--models selects models of a --config file; {remedy}.")
        return [_build_model(request, config, "", ModelConfig(request.target), tasks, defaults)]
    if request.models and not config.models:
        raise DataError("--models selects models of a --config file, and there are none.")
    unknown = [name for name in request.models if name not in config.models]
    if unknown:
        available = ", ".join(config.models)
        raise DataError(f"--models: the file has no {unknown[0]!r}, only {available}.")
    return [
        _build_model(request, config, name, config.models[name], tasks, defaults)
        for name in request.models or config.models
    ]


def _build_model(
    request: Request,
    config: Config,
    name: str,
    model: ModelConfig,
    tasks: Sequence[str],
    defaults: Sizes,
) -> Model:
    chosen = request.tasks or model.tasks or tasks or tuple(TASKS)
    for task in (*config.sizes_by_task, *model.sizes_by_task):
        if task not in {*TASKS, *chosen}:
            raise DataError(f"The file has sizes for {task!r}, which is not a task of this suite.")
    sizes = {}
    for task in chosen:
        layers = (
            model.sizes,
            config.sizes_by_task.get(task, {}),
            model.sizes_by_task.get(task, {}),
            request.sizes,
        )
        settled = vars(defaults) | {key: value for layer in layers for key, value in layer.items()}
        sizes[task] = Sizes(**settled)
    return Model(name, model.target, sizes)


def build_options(
    options: Mapping[str, Any], explicit: Collection[str], run: RunOptions
) -> SuiteOptions:
    """Merge the command line and the file; `explicit` names what the command line itself sets.

    DataError for names that do not exist and for options that exclude each other.
    """
    config = options["config"] or Config()
    if config.models and "target" in config.options:
        raise DataError("The --config file has both a target and models; leave out one of them.")
    request = Request(
        target=options["target"],
        models=options["models"] or (),
        tasks=(options["tasks"] or ()) if "tasks" in explicit else (),
        sizes={name: options[name] for name in SIZES if name in explicit},
    )
    defaults = Sizes(*(options[name] for name in SIZES))
    if request.target is None and not config.models:
        raise DataError(
            "There is nothing to measure: name a TARGET, or models in the --config file."
        )
    models = choose_models(request, config, options["tasks"] or (), defaults)
    build_targets(models)
    if options["parallel"] and options["cluster"] is not None:
        raise DataError(
            "--parallel divides this machine, --cluster uses others; start one worker per GPU on a "
            "machine with several GPUs."
        )
    if options["parallel"] and (run.container.memory or run.container.cpus):
        raise DataError("--parallel divides cores and RAM itself; leave out --memory and --cpus.")
    data_dir = options["data_dir"]
    if options["cluster"] is not None:  # other machines have another folder and other variables
        data_dir = data_dir.absolute()
        env = tuple(f"{name}={value}" for name, value in parse_env(run.env).items())
        run = replace(run, env=env)
    names = ("logs", "retries", "force", "parallel", "cluster", "quiet")
    return SuiteOptions(models, data_dir, run=run, **{name: options[name] for name in names})
