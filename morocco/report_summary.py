"""One model over all its tasks, and against a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from morocco.baseline import Baseline
from morocco.case import Size
from morocco.errors import DataError
from morocco.machines import Machines, is_same
from morocco.means import compute_mean, compute_weighted_score
from morocco.quality import Quality
from morocco.ratios import compare_tasks
from morocco.report import (
    METRICS,
    SCALED,
    Cell,
    Comparison,
    Metric,
    ModelRatios,
    ModelSummary,
    Readings,
)
from morocco.report_options import Wishes
from morocco.report_runs import Key
from morocco.runs import Clock

Cells = Mapping[Key, Cell]


def summarise_model(
    model: str, tasks: Sequence[str], cells: Cells, machines: Machines, wishes: Wishes
) -> ModelSummary:
    """Return the means, the scores and the price of a model."""
    own = {task: cells[model, task] for task in tasks}
    weighted = compute_weighted_score(own, wishes.weights or dict.fromkeys(tasks, 1.0))
    score, price = weighted.score, wishes.price
    return ModelSummary(
        model,
        wishes.qualities.get(model, Quality(None)).overall,
        {metric: compute_mean(_get_values(metric, own, wishes.without)) for metric in METRICS},
        weighted,
        price / score if price is not None and score is not None else None,
        machines,
    )


def _get_values(
    metric: Metric, cells: Mapping[str, Cell], without: Sequence[str]
) -> dict[str, float | None]:
    left_out = without if metric in SCALED else ()
    return {task: cell.value(metric) for task, cell in cells.items() if task not in left_out}


def find_baseline(
    cells: Cells, machines: Mapping[str, Machines], wishes: Wishes
) -> Baseline | None:
    """Return what to compare with; DataError where it has no numbers, or by another clock."""
    if isinstance(wishes.baseline, str):
        return to_baseline(wishes.baseline, cells, machines[wishes.baseline], wishes.clock)
    if wishes.baseline and wishes.baseline.clock != wishes.clock:
        raise DataError(
            f"The baseline was measured with --clock {wishes.baseline.clock}; give the same here."
        )
    return wishes.baseline


def to_baseline(model: str, cells: Cells, machines: Machines, clock: Clock) -> Baseline:
    """Return a model of the report as something to compare others with."""
    tasks = _get_readings(model, cells)
    if not tasks:
        raise DataError(f"{model} has no numbers, so it cannot be a baseline. Choose another one.")
    return Baseline(model, clock, machines, tasks)


def _get_readings(model: str, cells: Cells) -> dict[str, Readings]:
    of_model = (cell for (name, _), cell in cells.items() if name == model)
    return {cell.task: cell.readings for cell in of_model if cell.readings is not None}


def compare(
    baseline: Baseline, cells: Cells, machines: Mapping[str, Machines], wishes: Wishes
) -> Comparison:
    """Return all models, but for the baseline itself, against the baseline."""
    models = [name for name in machines if name != wishes.baseline]
    return Comparison(
        baseline.model, tuple(_compare(name, baseline, cells, machines, wishes) for name in models)
    )


def _compare(
    model: str, baseline: Baseline, cells: Cells, machines: Mapping[str, Machines], wishes: Wishes
) -> ModelRatios:
    readings = _get_readings(model, cells)
    overall, by_task = compare_tasks(readings, baseline.tasks, wishes.without)
    return ModelRatios(
        model,
        overall,
        by_task,
        is_same(machines[model], baseline.machines),
        missing=tuple(task for task in baseline.tasks if task not in readings),
        other_sizes=tuple(
            task for task in by_task if _get_size(readings[task]) != _get_size(baseline.tasks[task])
        ),
    )


def _get_size(readings: Readings) -> Size:
    return readings.input_size, readings.batch_size
