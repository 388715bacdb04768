"""The file of a suite: several models, and sizes of their own for some tasks or models."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from morocco.errors import DataError
from morocco.suite.plan import Model, Sizes, make_targets
from morocco.suite.session import SuiteOptions
from morocco.targets.options import RunOptions
from morocco.tasks import TASKS
from morocco.util.files import read_toml

SIZES = ("input_size", "batch_size", "repeats")
_LISTS = ("tasks", "env")
_NAME = re.compile(r"[\w.+-]+")


@dataclass(frozen=True)
class ModelConfig:
    """One model of the file."""

    target: str
    tasks: tuple[str, ...] | None = None
    own: Mapping[str, int] = field(default_factory=dict)
    """Sizes for all its tasks."""
    by_task: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Config:
    """What a file says; what it does not say is empty."""

    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the command line, by their names there."""
    models: Mapping[str, ModelConfig] = field(default_factory=dict)
    by_task: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def read_config(path: Path, options: Collection[str]) -> Config:
    """Return what a file says; DataError names what is wrong. `options` may be set in it."""
    content = {_plain(key): value for key, value in read_toml(path).items()}
    models, sizes = content.pop("models", {}), content.pop("sizes", {})
    unknown = [key for key in content if key not in options]
    if unknown:
        allowed = ", ".join(sorted([*options, "models", "sizes"]))
        raise DataError(f"{path}: there is no setting {unknown[0]!r}. There are: {allowed}.")
    return Config(
        {key: _as_written(path, key, value) for key, value in content.items()},
        {name: _read_model(path, name, value) for name, value in _table(path, "models", models)},
        _read_by_task(path, "sizes", sizes),
    )


def _as_written(path: Path, key: str, value: Any) -> str | list[str]:
    """Return a setting as the command line has it, so that it is judged by the same rules."""
    if isinstance(value, list) and key in _LISTS:
        return [_as_text(path, key, item) for item in value]
    text = _as_text(path, key, value)
    return [text] if key == "env" else text


def _as_text(path: Path, key: str, value: Any) -> str:
    if isinstance(value, (dict, list)):
        raise DataError(f"{path}: {key} must be one text or number.")
    return str(value)


def _read_model(path: Path, name: str, value: Any) -> ModelConfig:
    where = f"models.{name}"
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise DataError(f"{path}: {name!r} is the name of a folder too; use letters, digits, -_.+")
    settings = {"target": value} if isinstance(value, str) else dict(_table(path, where, value))
    target, tasks = settings.pop("target", None), settings.pop("tasks", None)
    by_task = _read_by_task(path, f"{where}.sizes", settings.pop("sizes", {}))
    if not isinstance(target, str):
        raise DataError(f"{path}: {where} needs a target, such as 'russiannlp/{name}-{{task}}'.")
    if tasks is not None and not _is_list_of_names(tasks):
        raise DataError(f"{path}: {where}.tasks must be a list of names of tasks.")
    own = _read_sizes(path, where, settings)
    return ModelConfig(target, None if tasks is None else tuple(tasks), own, by_task)


def _read_by_task(path: Path, where: str, value: Any) -> dict[str, dict[str, int]]:
    return {
        task: _read_sizes(path, f"{where}.{task}", dict(_table(path, f"{where}.{task}", sizes)))
        for task, sizes in _table(path, where, value)
    }


def _read_sizes(path: Path, where: str, settings: Mapping[str, Any]) -> dict[str, int]:
    sizes = {_plain(key): value for key, value in settings.items()}
    for key, value in sizes.items():
        if key not in SIZES:
            raise DataError(f"{path}: {where} has no setting {key!r}; use {', '.join(SIZES)}.")
        if type(value) is not int or value < 1:
            raise DataError(f"{path}: {where}.{key} must be a whole number from 1 up.")
    return sizes


def _table(path: Path, where: str, value: Any) -> list[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise DataError(f"{path}: {where} must be a table.")
    return list(value.items())


def _is_list_of_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value) and bool(value)


def _plain(key: str) -> str:
    return key.replace("-", "_")


@dataclass(frozen=True)
class Asked:
    """What the command line says of models and sizes; None and empty where it is silent."""

    target: str | None = None
    models: Sequence[str] = ()
    tasks: Sequence[str] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)


def choose_models(
    asked: Asked, config: Config, tasks: Sequence[str], defaults: Sizes
) -> list[Model]:
    """Return the models with the sizes of their tasks: the command line over the file.

    In the file, what is said of a task goes over what is said of a model, and both together over
    either; `tasks` and `defaults` hold where nothing is said of a model. DataError for names that
    are not there.
    """
    if asked.target is not None:
        if asked.models:
            way_out = "leave out TARGET" if config.models else "name that file"
            raise DataError(f"--models chooses among those of a --config file; {way_out}.")
        return [_choose(asked, config, "", ModelConfig(asked.target), tasks, defaults)]
    if asked.models and not config.models:
        raise DataError("--models chooses among those of a --config file; there is none.")
    unknown = [name for name in asked.models if name not in config.models]
    if unknown:
        there = ", ".join(config.models)
        raise DataError(f"--models: there is no {unknown[0]!r} in the file, only {there}.")
    return [
        _choose(asked, config, name, config.models[name], tasks, defaults)
        for name in asked.models or config.models
    ]


def _choose(
    asked: Asked,
    config: Config,
    name: str,
    model: ModelConfig,
    tasks: Sequence[str],
    defaults: Sizes,
) -> Model:
    chosen = asked.tasks or model.tasks or tasks or tuple(TASKS)
    for task in (*config.by_task, *model.by_task):
        if task not in {*TASKS, *chosen}:
            raise DataError(f"The file has sizes for {task!r}, which is no task of this suite.")
    sizes = {}
    for task in chosen:
        layers = (model.own, config.by_task.get(task, {}), model.by_task.get(task, {}), asked.sizes)
        settled = vars(defaults) | {key: value for layer in layers for key, value in layer.items()}
        sizes[task] = Sizes(**settled)
    return Model(name, model.target, sizes)


def put_together(
    options: Mapping[str, Any], said: Collection[str], run: RunOptions
) -> SuiteOptions:
    """Return the options with the models chosen; `said` are those that no file stands behind.

    DataError for names that are not there and for options that exclude each other.
    """
    config = options["config"] or Config()
    if config.models and "target" in config.options:
        raise DataError("The --config file has both a target and models; leave out one of them.")
    asked = Asked(
        target=options["target"],
        models=options["models"] or (),
        tasks=(options["tasks"] or ()) if "tasks" in said else (),
        sizes={name: options[name] for name in SIZES if name in said},
    )
    defaults = Sizes(*(options[name] for name in SIZES))
    if asked.target is None and not config.models:
        raise DataError(
            "There is nothing to measure: name a TARGET, or models in the --config file."
        )
    models = choose_models(asked, config, options["tasks"] or (), defaults)
    make_targets(models)
    if options["cluster"] is not None and options["parallel"]:
        raise DataError(
            "--parallel shares out this machine, --cluster uses others; a machine of several GPUs "
            "takes part with one worker for each."
        )
    return SuiteOptions(
        models=models,
        run=run,
        **{
            name: options[name]
            for name in ("data_dir", "logs", "retries", "force", "parallel", "cluster", "quiet")
        },
    )
