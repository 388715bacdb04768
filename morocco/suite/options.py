"""The options of a suite, and its file: several models, sizes for some tasks or models."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from morocco.errors import DataError
from morocco.suite.plan import Model, Sizes
from morocco.targets.options import RunOptions, parse_env
from morocco.tasks import TASKS
from morocco.util.files import read_toml
from morocco.util.schema import Count, convert

SIZES = ("input_size", "batch_size", "repeats")
_LISTS = ("tasks", "env")
_ModelName = Annotated[
    str,
    Meta(
        pattern=r"^(?!\.{1,2}\Z)[\w.+-]+\Z",
        description="a name for the model's folder, of letters, digits and -_.+",
    ),
]
_Target = Annotated[
    str, Meta(pattern=r"\S", description="a target, such as 'russiannlp/rubert-{task}'")
]
_Tasks = Annotated[tuple[str, ...], Meta(min_length=1, description="a list of task names")]


@dataclass(frozen=True, kw_only=True)
class SizeSettings:
    """Sizes that the file sets; None for those it leaves out."""

    input_size: Count | None = None
    batch_size: Count | None = None
    repeats: Count | None = None


@dataclass(frozen=True, kw_only=True)
class ModelSettings(SizeSettings):
    """One model of the file, with sizes for all its tasks."""

    target: _Target
    tasks: _Tasks | None = None
    sizes: Mapping[str, SizeSettings] = field(default_factory=dict)
    """By task."""


@dataclass(frozen=True, kw_only=True)
class SuiteFile:
    """The content of a suite file."""

    models: Mapping[_ModelName, ModelSettings] = field(default_factory=dict)
    sizes: Mapping[str, SizeSettings] = field(default_factory=dict)
    """By task, for all models."""
    options: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    """Options of the command line by name, as text: click converts and checks them."""


def read_suite_file(path: Path, options: Collection[str]) -> SuiteFile:
    """Return the content of a file that may set `options`; DataError names file and key."""
    content = _rename_keys(read_toml(path))
    tables = {name: content.pop(name) for name in ("models", "sizes") if name in content}
    unknown = next((key for key in content if key not in options), None)
    if unknown is not None:
        allowed = ", ".join(sorted([*options, "models", "sizes"]))
        raise DataError(f"{path}: there is no key {unknown!r}; allowed: {allowed}.")
    models = tables.get("models")
    if isinstance(models, dict):  # of a model without settings of its own, the target is enough
        models |= {name: {"target": model} for name, model in models.items() if type(model) is str}
    texts = {key: _to_text(path, key, value) for key, value in content.items()}
    return convert(tables | {"options": texts}, SuiteFile, path)


def _rename_keys(table: Mapping[str, Any], *, are_names: bool = False) -> dict[str, Any]:
    """Write keys with `_` instead of `-`, except the names of models and tasks."""
    renamed = {}
    for key, value in table.items():
        name = key if are_names else key.replace("-", "_")
        holds_names = not are_names and name in ("models", "sizes")
        is_table = isinstance(value, dict)
        renamed[name] = _rename_keys(value, are_names=holds_names) if is_table else value
    return renamed


def _to_text(path: Path, key: str, value: Any) -> str | list[str]:
    """Return a setting as the command line has it."""
    items = value if isinstance(value, list) and key in _LISTS else [value]
    if any(isinstance(item, (dict, list)) for item in items):
        raise DataError(f"{path}: {key!r} must be a single text or number.")
    texts = [str(item) for item in items]
    return texts if isinstance(value, list) or key == "env" else texts[0]


def choose_models(options: Mapping[str, Any], explicit: Collection[str]) -> list[Model]:
    """Return the models with the sizes of their tasks; DataError for names that do not exist.

    `options` are those of the command, `explicit` the names of those that do not come from the
    file or from a default. These take precedence over the file. In the file, the sizes of a task
    of a model take precedence over those of the task, and these over those of the model.
    """
    file, names = options["config"] or SuiteFile(), options["models"] or ()
    if options["target"] is not None:
        if names:
            remedy = "leave out TARGET" if file.models else "name that file"
            raise DataError(f"--models selects models of a --config file; {remedy}.")
        models: Mapping[str, ModelSettings] = {"": ModelSettings(target=options["target"])}
    elif not file.models:
        raise DataError(
            "There is nothing to measure: name a TARGET, or models in the --config file."
        )
    else:
        unknown = [name for name in names if name not in file.models]
        if unknown:
            available = ", ".join(file.models)
            raise DataError(f"--models: the file has no {unknown[0]!r}, only {available}.")
        models = {name: file.models[name] for name in names or file.models}
    return [
        Model(name, model.target, _choose_sizes(model, file, options, explicit))
        for name, model in models.items()
    ]


def _choose_sizes(
    model: ModelSettings, file: SuiteFile, options: Mapping[str, Any], explicit: Collection[str]
) -> dict[str, Sizes]:
    """Return the sizes of each task of a model."""
    own_tasks = None if "tasks" in explicit else model.tasks
    tasks: Sequence[str] = own_tasks or options["tasks"] or tuple(TASKS)
    for task in (*file.sizes, *model.sizes):
        if task not in {*TASKS, *tasks}:
            raise DataError(f"The file has sizes for {task!r}, which is not a task of this suite.")
    defaults = {name: options[name] for name in SIZES}
    asked = {name: options[name] for name in SIZES if name in explicit}
    chosen = {}
    for task in tasks:
        layers = filter(None, (model, file.sizes.get(task), model.sizes.get(task)))
        settings = {
            name: value
            for layer in layers
            for name in SIZES
            if (value := getattr(layer, name)) is not None
        }
        chosen[task] = Sizes(**{**defaults, **settings, **asked})
    return chosen


@dataclass(frozen=True)
class SuiteOptions:
    """The command line of `suite` and its file, merged."""

    models: Sequence[Model]
    data_dir: Path
    logs: Path
    retries: int
    force: bool
    redo: tuple[str, ...] | None
    """Runs to measure again, as parus/1_1_03 or model/parus/1_1_03."""
    repair: bool
    """Whether to measure again all that `check` finds wrong for a cause."""
    no_doctor: bool
    one_by_one: bool
    parallel: bool
    cluster: str | None
    tls: Mapping[str, str]
    """The files that a cluster with TLS asks for; empty where Dask's own settings name them."""
    quiet: bool
    run: RunOptions


def build_options(
    options: Mapping[str, Any], explicit: Collection[str], run: RunOptions
) -> SuiteOptions:
    """Merge the options of the command and the file, see `choose_models`.

    DataError for names that do not exist and for options that exclude each other.
    """
    file, data_dir = options["config"], options["data_dir"]
    if file and file.models and "target" in file.options:
        raise DataError("The --config file has both a target and models; leave out one of them.")
    models = choose_models(options, explicit)
    if options["parallel"] and options["cluster"] is not None:
        raise DataError(
            "--parallel divides this machine, --cluster uses others; start one worker per GPU on a "
            "machine with several GPUs."
        )
    if options["parallel"] and (run.container.memory or run.container.cpus):
        raise DataError("--parallel divides cores and RAM itself; leave out --memory and --cpus.")
    if options["cluster"] is not None:  # other machines have another folder and other variables
        data_dir = data_dir.absolute()
        env = tuple(f"{name}={value}" for name, value in parse_env(run.env).items())
        run = replace(run, env=env)
    names = (
        "logs",
        "retries",
        "force",
        "redo",
        "repair",
        "no_doctor",
        "one_by_one",
        "parallel",
        "cluster",
        "quiet",
    )
    plain = {name: options[name] for name in names}
    return SuiteOptions(models, data_dir, run=run, tls=_choose_tls(options), **plain)


def _choose_tls(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the files for TLS by option; DataError unless all or none of them are given."""
    names = ("tls_ca_file", "tls_cert", "tls_key")
    files = {name: str(options[name]) for name in names if options[name] is not None}
    if files and not (options["cluster"] or "").startswith("tls://"):
        raise DataError(
            "--tls-ca-file, --tls-cert and --tls-key are for --cluster tls://HOST:PORT."
        )
    if files and len(files) < len(names):
        raise DataError("Give all of --tls-ca-file, --tls-cert and --tls-key.")
    return files
