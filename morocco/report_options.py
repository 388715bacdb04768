"""What can be asked of a report beside the logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path

from morocco.baseline import Baseline
from morocco.errors import DataError
from morocco.quality import Quality
from morocco.runs import Clock
from morocco.toml import read_toml

WITHOUT = ("rucos", "muserc")
"""Their records are long texts, so their speeds are of another scale."""


@dataclass(frozen=True)
class Wishes:
    """What is asked."""

    clock: Clock = "log"
    without: tuple[str, ...] = WITHOUT
    """Tasks that the means of speed, energy and cost leave out."""
    weights: Mapping[str, float] | None = None
    """By task; None gives all tasks the same."""
    price: float | None = None
    """Of an hour."""
    qualities: Mapping[str, Quality] = field(default_factory=dict)
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
