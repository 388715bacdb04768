"""The scores of models, as `morocco score` writes them, read for a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from morocco.errors import DataError
from morocco.report.baseline import Baseline
from morocco.stats.grouping import Clock
from morocco.util.files import read_toml
from morocco.util.json import read_object

_WAY_OUT = (
    'Give what `morocco score --format json` prints, or {"MODEL": {"overall": 0.5}} for several.'
)


@dataclass(frozen=True)
class ModelScores:
    """How good the predictions of a model are."""

    overall: float | None
    tasks: Mapping[str, float] = field(default_factory=dict)


def read_qualities(texts: Sequence[str], models: Sequence[str]) -> dict[str, ModelScores]:
    """Return the qualities by model; each text is FILE or MODEL=FILE.

    DataError for a file that is none, for a model that the report does not have, and for a file of
    one model's scores where there are several.
    """
    found: dict[str, ModelScores] = {}
    for text in texts:
        found |= _read(text, models)
    return found


def split_model(text: str, models: Sequence[str]) -> tuple[str | None, str]:
    """Return the model that MODEL=REST begins with, None for no model, and the rest."""
    named = [model for model in models if text.startswith(f"{model}=")]
    model = max(named, key=len, default=None)
    return model, text if model is None else text.removeprefix(f"{model}=")


def _read(text: str, models: Sequence[str]) -> dict[str, ModelScores]:
    model, file = split_model(text, models)
    if model is not None:
        return {model: _to_quality(read_object(Path(file)), f"--scores {file}")}
    if "=" in text and not Path(text).exists():
        name = text.partition("=")[0]
        raise DataError(f"--scores: there is no model {name!r}, only {', '.join(models)}.")
    return _read_file(Path(text), models)


def _read_file(path: Path, models: Sequence[str]) -> dict[str, ModelScores]:
    content = read_object(path)
    where = f"--scores {path}"
    if "overall" in content or "tasks" in content:
        if len(models) > 1:
            raise DataError(f"{where} is of one model; say of which: --scores {models[0]}={path}.")
        return {models[0]: _to_quality(content, where)}
    known = [name for name in models if name in content]
    if not known:
        raise DataError(f"{where} has no scores of {', '.join(models)}. {_WAY_OUT}")
    return {name: _to_quality(content[name], f"{where}, {name}") for name in known}


def _to_quality(value: Any, where: str) -> ModelScores:
    if not isinstance(value, dict):
        return ModelScores(_to_score(value, where))
    tasks = value.get("tasks", {})
    if not isinstance(tasks, dict) or not ("overall" in value or "tasks" in value):
        raise DataError(f"{where}: these are no scores. {_WAY_OUT}")
    overall = value.get("overall")
    return ModelScores(
        None if overall is None else _to_score(overall, f"{where}, overall"),
        {task: _read_task(of_task, f"{where}, {task}") for task, of_task in tasks.items()},
    )


def _read_task(value: Any, where: str) -> float:
    return _to_score(value.get("value") if isinstance(value, dict) else value, where)


def _to_score(value: Any, where: str) -> float:
    if type(value) not in (int, float) or not -1 <= value <= 1:
        raise DataError(f"{where}: a score is a number up to 1, not {value!r:.60}. {_WAY_OUT}")
    return float(value)


WITHOUT = ("rucos", "muserc")
"""Their records are long texts, so their speeds are of another scale."""


@dataclass(frozen=True)
class ReportSettings:
    """What is asked."""

    clock: Clock = "log"
    without: tuple[str, ...] = WITHOUT
    """Tasks that the means of speed, energy and cost leave out."""
    weights: Mapping[str, float] | None = None
    """By task; None gives all tasks the same."""
    price: float | None = None
    """Of an hour."""
    qualities: Mapping[str, ModelScores] = field(default_factory=dict)
    """By model."""
    baseline: str | Baseline | None = None
    """A model of the report, or one from a file."""
    by_gpu: bool = False


def read_weights(path: Path) -> dict[str, float]:
    """Return the weights that a TOML file gives to tasks; DataError names what is wrong."""
    weights = read_toml(path)
    for task, weight in weights.items():
        good = type(weight) in (int, float) and isfinite(weight) and weight >= 0
        if not good:
            raise DataError(f"{path}: {task} = {weight!r:.40} is no weight; write `{task} = 2.5`.")
    if not any(weights.values()):
        raise DataError(f"{path} gives no task a weight above 0; write lines such as `parus = 1`.")
    return {task: float(weight) for task, weight in weights.items()}
