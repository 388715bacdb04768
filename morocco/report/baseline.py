"""What a model took, kept in a file, so that later ones can be compared with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from morocco import __version__
from morocco.errors import DataError, OutputError
from morocco.report.comparison import has_speed
from morocco.report.machines import Machines
from morocco.report.model import Readings
from morocco.stats.grouping import Clock
from morocco.util.files import write_atomically
from morocco.util.json import read_object

FORMAT = 1
_MAX_RUNS = 10_000
_MAX_NUMBER = 1e12
_SIZES = ("input_size", "batch_size")
_LISTS = tuple(field.name for field in fields(Readings) if field.name not in _SIZES)
_NEEDED = ("init_times", "run_times")
"""Without one of these there is no speed."""
_KEYS = ("format", "morocco", "model", "clock", "machines", "tasks")
_WAY_OUT = "Write one anew: `morocco report MODEL_LOGS --save-baseline FILE`."


@dataclass(frozen=True)
class Baseline:
    """One model to compare others with."""

    model: str
    clock: Clock
    machines: Machines
    tasks: Mapping[str, Readings]


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Write a baseline as JSON; OutputError where the file cannot be written."""
    tasks = {task: asdict(readings) for task, readings in baseline.tasks.items()}
    content = {"format": FORMAT, "morocco": __version__, **vars(baseline), "tasks": tasks}
    try:
        write_atomically(path, (json.dumps(content, indent=1, allow_nan=False) + "\n").encode())
    except OSError as error:
        raise OutputError(
            f"Cannot write {path}: {error.strerror}. Choose another file with --save-baseline."
        ) from None


def read_baseline(path: Path) -> Baseline:
    """Return the baseline of a file; DataError says what in it is not as it should be."""
    content = read_object(path)
    found = content.get("format")
    if type(found) is int and found != FORMAT:
        raise DataError(f"{path} is a baseline of format {found}, this is {FORMAT}. {_WAY_OUT}")
    try:
        return _parse(content)
    except ValueError as error:
        raise DataError(f"{path} is no baseline: {error}. {_WAY_OUT}") from None


def _parse(content: Mapping[str, Any]) -> Baseline:
    _require(tuple(sorted(content)) == tuple(sorted(_KEYS)), f"its keys are not {', '.join(_KEYS)}")
    model, clock, machines = content["model"], content["clock"], content["machines"]
    _require(_is_name(model), "`model` is no name")
    _require(clock in ("log", "gpu"), "`clock` is neither log nor gpu")
    texts = [*machines, *machines.values()] if isinstance(machines, dict) else [None]
    _require(all(map(_is_name, texts)), "`machines` is no table of names")
    tasks = content["tasks"]
    _require(isinstance(tasks, dict) and bool(tasks), "`tasks` is no table")
    _require(all(map(_is_name, tasks)), "`tasks` has a key that is no name")
    return Baseline(model, clock, machines, {task: _read(task, tasks[task]) for task in tasks})


def _read(task: str, value: Any) -> Readings:
    keys = {*_SIZES, *_LISTS}
    _require(isinstance(value, dict) and set(value) == keys, f"`{task}` lacks keys or has others")
    for key in _SIZES:
        good = type(value[key]) is int and 0 < value[key] < _MAX_NUMBER
        _require(good, f"`{task}.{key}` is no whole number from 1 up")
    lists = {key: _read_list(f"{task}.{key}", value[key]) for key in _LISTS}
    for key in _NEEDED:
        _require(bool(lists[key]), f"`{task}.{key}` is empty")
    readings = Readings(value["input_size"], value["batch_size"], **lists)
    _require(has_speed(readings), f"`{task}` has runs that are not longer than the start-up")
    return readings


def _read_list(where: str, value: Any) -> tuple[float, ...]:
    good = isinstance(value, list) and len(value) <= _MAX_RUNS and all(map(_is_amount, value))
    _require(good, f"`{where}` is no list of numbers from 0 up")
    return tuple(map(float, value))


def _is_amount(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value < _MAX_NUMBER  # type: ignore[operator]


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 1000 and value.isprintable()


def _require(holds: bool, fault: str) -> None:
    if not holds:
        raise ValueError(fault)
