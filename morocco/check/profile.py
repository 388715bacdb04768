"""What a submission is held against: the suite, its machine, and where doubt begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from morocco.errors import DataError
from morocco.logs.log import LogPath
from morocco.stats.anomalies import COLD_START, USUAL_RUNS, WIDE_SPREAD
from morocco.tasks import TASKS
from morocco.util.files import read_toml


@dataclass(frozen=True)
class Machine:
    """The machine on which numbers compare; None for what does not matter."""

    gpu: str | None = None
    """Part of the product's name: "V100"."""
    gpus: int | None = None
    gpu_ram: float | None = None
    """GB (2^30) of one GPU."""
    cores: int | None = None
    ram: float | None = None
    """GB (2^30)."""


@dataclass(frozen=True)
class Thresholds:
    """Where doubt begins."""

    gap_periods: float = 3.0
    """A longer gap between two lines hides what happened in it."""
    cold_start: float = COLD_START
    """Of the median start-up, by which start-ups may differ."""
    short_run: float = 0.3
    """Of the median run time, by which a run may be shorter and still count as finished."""
    spread: float = WIDE_SPREAD
    """Coefficient of variation of the speed."""
    gpu_busy: float = 0.8
    """Use of the GPU while it works."""


@dataclass(frozen=True)
class Profile:
    """What is asked of a submission."""

    name: str
    tasks: tuple[str, ...]
    runs: int = USUAL_RUNS
    """Of each size, or more."""
    sizes: tuple[tuple[int, int], ...] = ()
    """The long (input, batch) sizes that are asked for; empty where each task chooses its own."""
    machine: Machine | None = None
    thresholds: Thresholds = field(default_factory=Thresholds)


RUSSIAN_SUPERGLUE = Profile(
    name="Russian SuperGLUE",
    tasks=tuple(TASKS),
    machine=Machine(gpu="V100", gpus=1, gpu_ram=32, cores=8, ram=96),
)


@dataclass(frozen=True)
class _Kind:
    """What a key may hold."""

    needed: str
    """In words."""
    take: Callable[[Any], Any]
    """Returns the value as the profile holds it, None for one that will not do."""


def read_profile(path: Path) -> Profile:
    """Return the profile that a TOML file describes; DataError names the key that is wrong."""
    content = read_toml(path)
    values = _take(content, _PROFILE_KEYS, str(path), "")
    if "tasks" not in values:
        raise DataError(f"{path} needs `tasks`, {_PROFILE_KEYS['tasks'].needed}.")
    for key, of_table, keys in (
        ("machine", Machine, _MACHINE_KEYS),
        ("thresholds", Thresholds, _THRESHOLD_KEYS),
    ):
        if key in values:
            values[key] = of_table(**_take(values[key], keys, str(path), f"{key}."))
    return Profile(**{"name": path.stem, **values})


def _take(
    table: Mapping[str, Any], keys: Mapping[str, _Kind], source: str, prefix: str
) -> dict[str, Any]:
    taken = {}
    for key, value in table.items():
        kind = keys.get(key)
        if kind is None:
            allowed = ", ".join(prefix + name for name in keys)
            raise DataError(f"{source}: there is no key `{prefix}{key}`; allowed: {allowed}.")
        taken[key] = kind.take(value)
        if taken[key] is None:
            raise DataError(f"{source}: `{prefix}{key}` must be {kind.needed}, not {value!r}.")
    return taken


def _take_name(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() and value.isprintable() else None


def _take_tasks(value: object) -> tuple[str, ...] | None:
    names = value if isinstance(value, list) else []
    good = all(_take_name(name) and "/" not in name for name in names)
    return tuple(dict.fromkeys(names)) or None if good else None


def _take_sizes(value: object) -> tuple[tuple[int, int], ...] | None:
    texts = value if isinstance(value, list) else [None]
    paths = [LogPath.parse(f"task/{text}_1.jsonl") for text in texts]
    if not all(paths):
        return None
    sizes = [(path.input_size, path.batch_size) for path in paths if path]
    return tuple(size for size in dict.fromkeys(sizes) if size != (1, 1))  # is asked for anyway


def _take_count(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None  # bool is an int to isinstance


def _take_amount(value: object) -> float | None:
    return value if type(value) in (int, float) and 0 < value < 1e9 else None  # type: ignore[operator,return-value]


def _take_table(value: object) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


_NAME = _Kind("a text", _take_name)
_COUNT = _Kind("a whole number from 1 up", _take_count)
_AMOUNT = _Kind("a number above 0", _take_amount)
_TABLE = _Kind("a table", _take_table)

_PROFILE_KEYS = {
    "name": _NAME,
    "tasks": _Kind("a list of names of tasks", _take_tasks),
    "runs": _COUNT,
    "sizes": _Kind('a list of sizes such as ["2000_32"]', _take_sizes),
    "machine": _TABLE,
    "thresholds": _TABLE,
}
_MACHINE_KEYS = {"gpu": _NAME, "gpus": _COUNT, "gpu_ram": _AMOUNT, "cores": _COUNT, "ram": _AMOUNT}
_THRESHOLD_KEYS = {threshold.name: _AMOUNT for threshold in fields(Thresholds)}
