"""The settings of a report: the command line, and the files of scores and weights it names."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from morocco.errors import DataError
from morocco.logs.submission import Submission
from morocco.report.baseline import Baseline, read_baseline
from morocco.report.cells import list_models
from morocco.stats.grouping import Clock
from morocco.tasks import TASKS
from morocco.util.files import read_toml
from morocco.util.json import read_object
from morocco.util.schema import convert

WITHOUT = ("rucos", "muserc")
"""Their records are long texts, so their speeds are of another scale."""
_Weight = Annotated[float, Meta(ge=0, le=1e9, description="a weight from 0 up")]
_WEIGHTS_HINT = "Write lines such as `parus = 2.5`."
_Score = Annotated[float, Meta(ge=-1, le=1, description="a score from -1 to 1")]
_SCORES_HINT = (
    'Give what `morocco score --format json` prints, or {"MODEL": {"overall": 0.5}} for several.'
)


@dataclass(frozen=True)
class ReportOptions:
    """The command line of `report`, as it was parsed."""

    paths: tuple[Path, ...]
    output: tuple[Path, ...]
    name: tuple[str, ...]
    scores: tuple[str, ...]
    clock: Clock
    without: tuple[str, ...]
    weights: Path | None
    price: float | None
    baseline: str | None
    save_baseline: Path | None
    by: str | None


@dataclass(frozen=True)
class ModelScores:
    """How good the predictions of a model are."""

    overall: _Score | None = None
    tasks: Mapping[str, _Score] = field(default_factory=dict)


@dataclass(frozen=True)
class ReportSettings:
    """The options of `report`, with the files they name read and checked."""

    clock: Clock = "log"
    without: tuple[str, ...] = WITHOUT
    """Tasks that the means of speed, energy and cost leave out."""
    weights: Mapping[str, float] | None = None
    """By task; None where all tasks weigh the same."""
    price: float | None = None
    """Of an hour."""
    scores: Mapping[str, ModelScores] = field(default_factory=dict)
    """By model."""
    baseline: str | Baseline | None = None
    """A model of the report, or one from a file."""
    by_gpu: bool = False


def read_settings(options: ReportOptions, submission: Submission) -> ReportSettings:
    """Check the options against a submission and read the files; DataError for a bad one."""
    models = list_models(submission)
    tasks = {entry.path.task for entry in submission.entries}
    return ReportSettings(
        clock=options.clock,
        without=_check_without(options.without, tasks),
        weights=None if options.weights is None else read_weights(options.weights),
        price=options.price,
        scores=read_scores(options.scores, models),
        baseline=_choose_baseline(options.baseline, models),
        by_gpu=options.by == "gpu",
    )


def read_names(texts: Sequence[str], models: Sequence[str]) -> dict[str, str]:
    """Read new names by old ones from NEW or OLD=NEW; DataError where that is ambiguous."""
    names: dict[str, str] = {}
    for text in texts:
        old, new = _split_model(text, models)
        if old is None and len(models) > 1:
            raise DataError(
                f"--name {text}: say which of the models {', '.join(models)} to call this, "
                f"such as --name {models[0]}=NAME."
            )
        if not new.strip() or not new.isprintable():
            raise DataError(f"--name {text!r}: a name is needed, as in --name {models[0]}=NAME.")
        names[old or models[0]] = new
    return names


def _split_model(text: str, models: Sequence[str]) -> tuple[str | None, str]:
    """Split MODEL=REST at the longest model that fits; None where no model does."""
    named = [model for model in models if text.startswith(f"{model}=")]
    model = max(named, key=len, default=None)
    return model, text if model is None else text.removeprefix(f"{model}=")


def _check_without(names: tuple[str, ...], tasks: Collection[str]) -> tuple[str, ...]:
    """Return the tasks to leave out; a misspelt one would silently leave out nothing."""
    if names == ("none",):
        return ()
    for name in names:
        if name not in tasks and name not in TASKS:
            raise DataError(
                f"--without: there is no task {name!r}, only {', '.join(sorted(tasks))}; or none."
            )
    return names


def _choose_baseline(text: str | None, models: Sequence[str]) -> str | Baseline | None:
    """Return the model of that name, or else read the file of that name."""
    if text is None or text in models:
        return text
    if Path(text).is_file():
        return read_baseline(Path(text))
    raise DataError(
        f"--baseline: {text} is neither a model of this report ({', '.join(models)}) nor a file. "
        "Write a file with --save-baseline."
    )


def choose_saved(options: ReportOptions, models: Sequence[str]) -> str:
    """Return the model that --save-baseline keeps; DataError where it could be any of several."""
    if options.baseline in models:
        return str(options.baseline)
    if options.save_baseline is not None and len(models) > 1:
        raise DataError(
            f"--save-baseline keeps one model, and there are {', '.join(models)}. Say which: "
            f"--baseline {models[0]}."
        )
    return models[0]


def read_weights(path: Path) -> dict[str, float]:
    """Read the weights that a TOML file gives to tasks; DataError names what is wrong."""
    weights = convert(read_toml(path), dict[str, _Weight], path, hint=_WEIGHTS_HINT)
    if not any(weights.values()):
        raise DataError(f"{path} gives no task a weight above 0. {_WEIGHTS_HINT}")
    return weights


def read_scores(texts: Sequence[str], models: Sequence[str]) -> dict[str, ModelScores]:
    """Read the scores by model; each text is FILE or MODEL=FILE.

    DataError for a file that holds no scores, for a model that the report does not have, and for
    a file about one model where there are several.
    """
    scores: dict[str, ModelScores] = {}
    for text in texts:
        model, file = _split_model(text, models)
        if model is not None:
            scores[model] = _parse_scores(read_object(Path(file)), Path(file))
        elif "=" in text and not Path(text).exists():
            name = text.partition("=")[0]
            raise DataError(f"--scores: there is no model {name!r}, only {', '.join(models)}.")
        else:
            scores |= _read_scores_file(Path(text), models)
    return scores


def _read_scores_file(path: Path, models: Sequence[str]) -> dict[str, ModelScores]:
    """Read a file about the only model, or about several by name."""
    content = read_object(path)
    if "overall" in content or "tasks" in content:
        if len(models) > 1:
            raise DataError(
                f"{path} has the scores of one model; say of which: --scores {models[0]}={path}."
            )
        return {models[0]: _parse_scores(content, path)}
    known = [name for name in models if name in content]
    if not known:
        raise DataError(f"{path} has no scores of {', '.join(models)}. {_SCORES_HINT}")
    return {name: _parse_scores(content[name], path, name) for name in known}


def _parse_scores(content: Any, path: Path, key: str = "") -> ModelScores:
    """Parse what `score` printed, or the overall score alone."""
    if not isinstance(content, dict):
        content = {"overall": content}
    if "overall" not in content and "tasks" not in content:
        raise DataError(f"{path}: there are no scores of {key or 'a model'}. {_SCORES_HINT}")
    tasks = content.get("tasks", {})
    if isinstance(tasks, dict):
        tasks = {name: t.get("value") if isinstance(t, dict) else t for name, t in tasks.items()}
    scores = {"overall": content.get("overall"), "tasks": tasks}
    return convert(scores, ModelScores, path, key=key, hint=_SCORES_HINT)
