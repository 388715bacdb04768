"""The shape of a report: models x tasks, means over the tasks, ratios to a baseline.

Only data and no arithmetic: `report_build` makes a Report, renderers (tables, data, chart, page)
read it. `Report.cells` has a Cell for every model and task; `Cell.value(metric)` is its number, and
where `Cell.estimate` is None, `Cell.reason` says why. `Cell.logs` are the logs to plot.

The disc chart: x = `model.means["rps"].arithmetic`, y = `model.score`, area =
`model.means["gpu_ram"].arithmetic`; each may be None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from morocco.logs.log import Log
from morocco.stats.estimates import Estimate
from morocco.util.units import Seconds

Metric = Literal[
    "rps", "init_time", "gpu_ram", "gpu_ram_batch", "ram", "ram_batch", "energy", "cost"
]
METRICS: tuple[Metric, ...] = get_args(Metric)
"""In the order of the tables."""
TITLES: Mapping[Metric, str] = {
    "rps": "Speed, records a second",
    "init_time": "Init time, s",
    "gpu_ram": "GPU RAM, GB",
    "gpu_ram_batch": "GPU RAM with the batch, GB",
    "ram": "RAM, GB",
    "ram_batch": "RAM with the batch, GB",
    "energy": "Energy of 1000 records, J",
    "cost": "Cost of a million records",
}
SCALED: frozenset[Metric] = frozenset({"rps", "energy", "cost"})
"""They depend on how large the records of a task are: their means leave tasks out."""


@dataclass(frozen=True)
class Readings:
    """What the runs of a cell took, one number a run: ratios are resampled from these."""

    input_size: int
    batch_size: int
    """Of the long runs."""
    init_times: tuple[Seconds, ...]
    run_times: tuple[Seconds, ...]
    """Of the long runs."""
    gpu_ram: tuple[float, ...]
    """GB (2^30): peaks of the 1_1 runs that were seen on a GPU."""
    gpu_ram_batch: tuple[float, ...]
    """The same of the long runs."""
    ram: tuple[float, ...]
    """GB (2^30): peaks of the 1_1 runs."""
    ram_batch: tuple[float, ...]
    init_energy: tuple[float, ...]
    """Joules of the GPUs in the 1_1 runs whose record tells it."""
    energy: tuple[float, ...]
    """The same of the long runs."""


@dataclass(frozen=True)
class Cell:
    """One model on one task."""

    model: str
    task: str
    logs: tuple[Log, ...] = ()
    """All that can be read, of all sizes."""
    estimate: Estimate | None = None
    """Of the one long size that was chosen; None where there are no numbers."""
    reason: str | None = None
    """Why there are no numbers; None where there are."""
    readings: Readings | None = None
    """What the estimate was made from."""
    ram: float | None = None
    """GB (2^30): median peak of the 1_1 runs."""
    ram_batch: float | None = None
    """GB (2^30): highest peak of the long runs."""
    energy: float | None = None
    """Joules of the GPUs for 1000 records beyond the start-up; None where not recorded."""
    cost: float | None = None
    """Of a million records beyond the start-up, in the currency of the price."""
    score: float | None = None
    """Quality, 0 to 1; None where no score was given."""
    spread: float | None = None
    """Standard deviation / mean of the speed over the long runs; None for a single run."""
    failed: int = 0
    """Runs of this size, and 1_1 runs, that failed or whose log cannot be read."""
    tried: int = 0
    """All runs of this size, and all 1_1 runs: the good ones and `failed`."""

    def value(self, metric: Metric) -> float | None:
        """Return the number of a metric, None where it is not known."""
        if metric in ("rps", "init_time", "gpu_ram", "gpu_ram_batch"):
            found: float | None = getattr(self.estimate, metric, None)
        else:
            found = getattr(self, metric)
        return found


@dataclass(frozen=True)
class Mean:
    """A metric of one model over the tasks that have it."""

    arithmetic: float | None
    """None where no task has the metric."""
    geometric: float | None
    """None too where a value is 0."""
    tasks: tuple[str, ...]
    """Those it was made from."""
    missing: tuple[str, ...]
    """Those that should count and lack the metric: the mean does not compare with others."""


@dataclass(frozen=True)
class WeightedScore:
    """exp(sum(w log perf_adj) / sum w), perf_adj = rps * (1 - spread) * (1 - failed / tried)."""

    score: float | None
    """None where a task that has a weight is missing."""
    partial: float | None
    """The same over the tasks that are there; it equals `score` where none is missing."""
    adjusted: Mapping[str, float]
    """perf_adj by task."""
    missing: Mapping[str, str]
    """By task, why it has none."""


@dataclass(frozen=True)
class ModelSummary:
    """One model over all tasks."""

    name: str
    score: float | None
    """Overall quality, 0 to 1; None where no score was given."""
    means: Mapping[Metric, Mean]
    weighted: WeightedScore
    price_per_score: float | None
    """Price of an hour / weighted score; None where either is not known."""
    machines: Mapping[str, str]
    """As records describe them, by fingerprint; empty where there are no records."""


@dataclass(frozen=True)
class Ratio:
    """A metric of a model over that of the baseline."""

    value: float
    low: float | None
    """95 % interval (bootstrap over the runs of both); None where there are too few runs."""
    high: float | None
    real: bool | None
    """Whether the interval excludes 1; False is noise, None means too few runs to tell."""


@dataclass(frozen=True)
class ModelRatios:
    """One model against the baseline."""

    model: str
    overall: Mapping[Metric, Ratio]
    """Geometric means over the tasks that both have."""
    by_task: Mapping[str, Mapping[Metric, Ratio]]
    same_machine: bool | None
    """None where records do not tell."""
    missing: tuple[str, ...] = ()
    """Tasks of the baseline that the model has no numbers for."""
    other_sizes: tuple[str, ...] = ()
    """Tasks whose input or batch size is not that of the baseline."""


@dataclass(frozen=True)
class Comparison:
    """All other models against one."""

    baseline: str
    """The name of the model."""
    models: tuple[ModelRatios, ...]


@dataclass(frozen=True)
class GpuComparison:
    """A GPU, or a kind of GPU, against the others that ran the same model and task."""

    name: str
    runs: int
    """Long runs on it."""
    cells: int
    """Models x tasks that it has a speed for."""
    lowest: float
    """Of its speed / that of the best GPU, over these cells."""
    mean: float
    highest: float


@dataclass(frozen=True)
class Report:
    """Models x tasks, and what else was asked."""

    models: tuple[ModelSummary, ...]
    tasks: tuple[str, ...]
    cells: Mapping[tuple[str, str], Cell]
    """By model and task, every pair of them."""
    without: tuple[str, ...] = ()
    """Tasks that the means of `SCALED` leave out."""
    price: float | None = None
    """Of an hour."""
    weights: Mapping[str, float] | None = None
    """By task; None where all tasks weigh the same."""
    comparison: Comparison | None = None
    gpus: tuple[GpuComparison, ...] | None = None
    """None where it was not asked for."""
    notes: tuple[str, ...] = ()
    """What a reader has to know: choices that were made."""
    warnings: tuple[str, ...] = ()
    """Why some numbers should not be believed."""

    def metrics(self) -> tuple[Metric, ...]:
        """Return the metrics that at least one cell has."""
        cells = self.cells.values()
        return tuple(m for m in METRICS if any(cell.value(m) is not None for cell in cells))
