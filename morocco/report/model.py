"""The shape of a report: models x tasks, means over the tasks, ratios to a baseline.

Data without arithmetic: `build` makes a Report, and `text`, `data`, `chart` and `html` render it.
`Report.cells` has a Cell for every model and task; `Cell.value(metric)` is its number, and where
`Cell.estimate` is None, `Cell.reason` says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal, get_args

from msgspec import Meta

from morocco.logs.log import Log, Size
from morocco.stats.estimates import Estimate
from morocco.util.schema import Count

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
"""They depend on how large the records of a task are, so their means leave some tasks out."""
_MAX_RUNS = 10_000
_Number = Annotated[float, Meta(ge=0, lt=1e12)]
_Numbers = Annotated[
    tuple[_Number, ...], Meta(max_length=_MAX_RUNS, description="a list of numbers from 0 up")
]
_SomeNumbers = Annotated[
    tuple[_Number, ...],
    Meta(min_length=1, max_length=_MAX_RUNS, description="a list of one number or more, from 0 up"),
]


@dataclass(frozen=True)
class Readings:
    """What the runs of a cell took, one number per run; ratios are computed from these.

    A baseline file holds them by task, so the fields are its keys.
    """

    input_size: Count
    """Of the long runs, as is the batch size."""
    batch_size: Count
    init_times: _SomeNumbers
    """Seconds that the start-up runs took."""
    run_times: _SomeNumbers
    """Seconds that the long runs took."""
    gpu_ram: _Numbers
    """GB (2^30): peaks of the start-up runs that were seen on a GPU."""
    gpu_ram_batch: _Numbers
    """The same of the long runs."""
    ram: _Numbers
    """GB (2^30): peaks of the start-up runs."""
    ram_batch: _Numbers
    """The same of the long runs."""
    init_energy: _Numbers
    """Joules of the GPUs in the start-up runs whose record has it."""
    energy: _Numbers
    """The same of the long runs."""

    @property
    def size(self) -> Size:
        """Input and batch size of the long runs."""
        return self.input_size, self.batch_size


@dataclass(frozen=True)
class Cell:
    """One model on one task."""

    model: str
    task: str
    logs: tuple[Log, ...] = ()
    """All logs of good runs, of all sizes."""
    estimate: Estimate | None = None
    """Of the long runs of one size; None where there are no numbers."""
    reason: str | None = None
    """Why there are no numbers; None where there are."""
    readings: Readings | None = None
    """What the estimate is based on."""
    ram: float | None = None
    """GB (2^30): median peak of the start-up runs."""
    ram_batch: float | None = None
    """GB (2^30): highest peak of the long runs."""
    energy: float | None = None
    """Joules of the GPUs for 1000 records beyond the start-up; None where not recorded."""
    cost: float | None = None
    """Of a million records beyond the start-up, in the currency of the price."""
    score: float | None = None
    """Of the predictions, 0 to 1; None where no score was given."""
    spread: float | None = None
    """Standard deviation / mean of the speed over the long runs; None for a single run."""
    failed: int = 0
    """Runs of this size and start-up runs that failed or whose log cannot be read."""
    tried: int = 0
    """All runs of this size and all start-up runs: the good ones and `failed`."""

    def value(self, metric: Metric) -> float | None:
        """Return the number of a metric; None where it is not known."""
        estimated = metric in ("rps", "init_time", "gpu_ram", "gpu_ram_batch")
        value: float | None = getattr(self.estimate if estimated else self, metric, None)
        return value


@dataclass(frozen=True)
class Mean:
    """The means of one metric of a model over the tasks that have it."""

    arithmetic: float | None
    """None where no task has the metric."""
    geometric: float | None
    """None also where a value is 0."""
    tasks: tuple[str, ...]
    """The tasks that have the metric."""
    missing: tuple[str, ...]
    """The tasks that lack it; the mean does not compare with that of a model that has them."""
    bounds: tuple[float, float] | None = None
    """95 % interval of `arithmetic`; None where too few or too short runs leave it open."""
    geometric_bounds: tuple[float, float] | None = None
    """The same of `geometric`."""


@dataclass(frozen=True)
class WeightedScore:
    """exp(sum(w log perf_adj) / sum w), perf_adj = rps * (1 - spread) * (1 - failed / tried)."""

    score: float | None
    """None where a task that has a weight is missing."""
    partial: float | None
    """The same over the tasks that are not missing."""
    adjusted: Mapping[str, float]
    """perf_adj by task."""
    missing: Mapping[str, str]
    """Why a task has no perf_adj, by task."""


@dataclass(frozen=True)
class ModelSummary:
    """One model over all tasks."""

    name: str
    score: float | None
    """Overall, 0 to 1; None where no score was given."""
    means: Mapping[Metric, Mean]
    weighted: WeightedScore
    price_per_score: float | None
    """Price of an hour / weighted score; None where either is not known."""
    machines: Mapping[str, str]
    """Descriptions by fingerprint; empty where there are no records."""
    rank: int | None = None
    """By speed, from 1; models that cannot be told apart share one. None if tasks are missing."""


@dataclass(frozen=True)
class Ratio:
    """A metric of a model over that of the baseline."""

    value: float
    low: float | None
    """95 % interval of this ratio alone; None where there are too few runs, or too short ones."""
    high: float | None
    real: bool | None
    """Whether a difference is shown, judged together with those of all tasks; None if unknown."""
    runs: int = 0
    """Of both models and both kinds of run, the fewest."""
    visible: float | None = None
    """Where none is shown: the smallest that four of five such suites show; 0.04 is 4 %."""
    more_runs: int | None = None
    """Where none is shown: how many more runs of each size may show it; None if too many."""


@dataclass(frozen=True)
class ModelRatios:
    """One model against the baseline."""

    model: str
    overall: Mapping[Metric, Ratio]
    """Geometric means over the tasks that both have."""
    by_task: Mapping[str, Mapping[Metric, Ratio]]
    same_machine: bool | None
    """None where records do not say."""
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

    @cached_property
    def model_numbers(self) -> dict[str, int]:
        """The place of each model, from 1."""
        return {model.name: number for number, model in enumerate(self.models, start=1)}

    @cached_property
    def task_numbers(self) -> dict[str, int]:
        """The place of each task, from 1."""
        return {task: number for number, task in enumerate(self.tasks, start=1)}

    def metrics(self) -> tuple[Metric, ...]:
        """Return the metrics that at least one cell has."""
        cells = self.cells.values()
        return tuple(m for m in METRICS if any(cell.value(m) is not None for cell in cells))
