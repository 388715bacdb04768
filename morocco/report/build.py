"""Means over tasks, and the one number of a model: pure arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, log
from statistics import fmean

from morocco.errors import DataError
from morocco.logs.log import Size
from morocco.logs.record import RunRecord
from morocco.logs.submission import Submission
from morocco.report.baseline import Baseline
from morocco.report.cells import Choice, Key, SubmissionRuns, choose, list_models, make_cell
from morocco.report.comparison import compare_tasks
from morocco.report.gpus import compare_gpus
from morocco.report.machines import Machines, find_machines, find_unequal, is_same
from morocco.report.model import (
    METRICS,
    SCALED,
    Cell,
    Comparison,
    Mean,
    Metric,
    ModelRatios,
    ModelSummary,
    Readings,
    Report,
    WeightedScore,
)
from morocco.report.notes import find_notes, find_remarks
from morocco.report.options import ModelScores, ReportSettings
from morocco.stats.estimates import summarise
from morocco.stats.grouping import Clock
from morocco.tasks import TASKS

MILLION = 1_000_000
HOUR = 3600


def compute_mean(values: Mapping[str, float | None]) -> Mean:
    """Return both means of the values that are known, by task."""
    known = {task: value for task, value in values.items() if value is not None}
    numbers = tuple(known.values())
    return Mean(
        fmean(numbers) if numbers else None,
        geometric_mean(numbers) if numbers and all(n > 0 for n in numbers) else None,
        tuple(known),
        tuple(task for task in values if task not in known),
    )


def geometric_mean(numbers: Sequence[float]) -> float:
    """Return the geometric mean of numbers above 0."""
    return exp(fmean(map(log, numbers)))


def compute_cost(price: float, rps: float) -> float:
    """Return what a million records cost at the price of an hour, beyond the start-up."""
    return price * MILLION / rps / HOUR


def compute_weighted_score(
    cells: Mapping[str, Cell], weights: Mapping[str, float]
) -> WeightedScore:
    """Return the score of the suites: exp(sum(w log perf_adj) / sum w).

    perf_adj = rps * (1 - spread) * (1 - failed / tried). A task that weighs something and has no
    perf_adj above 0 leaves the model without a score.
    """
    adjusted: dict[str, float] = {}
    missing: dict[str, str] = {}
    weighing = {task: weight for task, weight in weights.items() if weight > 0}
    for task in weighing:
        cell = cells.get(task)
        if cell is None or cell.estimate is None:
            missing[task] = (cell.reason if cell else None) or "no runs"
        elif (found := adjust(cell.estimate.rps, cell.spread, cell.failed, cell.tried)) > 0:
            adjusted[task] = found
        else:
            missing[task] = "the speed varies by as much as it is"
    total = sum(weighing[task] for task in adjusted)
    partial = None
    if total:
        partial = exp(sum(weighing[task] * log(perf) for task, perf in adjusted.items()) / total)
    return WeightedScore(None if missing else partial, partial, adjusted, missing)


def adjust(rps: float, spread: float | None, failed: int, tried: int) -> float:
    """Return the speed less what it varies by, and less the share of runs that failed.

    A single run has no spread and counts as if it had none.
    """
    return rps * (1 - (spread or 0.0)) * (1 - failed / tried)


Cells = Mapping[Key, Cell]


def summarise_model(
    model: str, tasks: Sequence[str], cells: Cells, machines: Machines, settings: ReportSettings
) -> ModelSummary:
    """Return the means, the scores and the price of a model."""
    own = {task: cells[model, task] for task in tasks}
    weighted = compute_weighted_score(own, settings.weights or dict.fromkeys(tasks, 1.0))
    score, price = weighted.score, settings.price
    return ModelSummary(
        model,
        settings.scores.get(model, ModelScores()).overall,
        {metric: compute_mean(_get_values(metric, own, settings.without)) for metric in METRICS},
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
    cells: Cells, machines: Mapping[str, Machines], settings: ReportSettings
) -> Baseline | None:
    """Return what to compare with; DataError where it has no numbers, or by another clock."""
    if isinstance(settings.baseline, str):
        return build_baseline(settings.baseline, cells, machines[settings.baseline], settings.clock)
    if settings.baseline and settings.baseline.clock != settings.clock:
        raise DataError(
            f"The baseline was measured with --clock {settings.baseline.clock}; give the same here."
        )
    return settings.baseline


def build_baseline(model: str, cells: Cells, machines: Machines, clock: Clock) -> Baseline:
    """Return a model of the report as something to compare others with."""
    tasks = _get_readings(model, cells)
    if not tasks:
        raise DataError(f"{model} has no numbers, so it cannot be a baseline. Choose another one.")
    return Baseline(model, clock, machines, tasks)


def _get_readings(model: str, cells: Cells) -> dict[str, Readings]:
    of_model = (cell for (name, _), cell in cells.items() if name == model)
    return {cell.task: cell.readings for cell in of_model if cell.readings is not None}


def compare(
    baseline: Baseline, cells: Cells, machines: Mapping[str, Machines], settings: ReportSettings
) -> Comparison:
    """Return all models, but for the baseline itself, against the baseline."""
    models = [name for name in machines if name != settings.baseline]
    return Comparison(
        baseline.model,
        tuple(_compare(name, baseline, cells, machines, settings) for name in models),
    )


def _compare(
    model: str,
    baseline: Baseline,
    cells: Cells,
    machines: Mapping[str, Machines],
    settings: ReportSettings,
) -> ModelRatios:
    readings = _get_readings(model, cells)
    overall, by_task = compare_tasks(readings, baseline.tasks, settings.without)
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


def build_report(submission: Submission, settings: ReportSettings) -> Report:
    """Return the report on a submission; DataError for a baseline that does not fit it."""
    runs = SubmissionRuns(submission)
    models = list_models(submission)
    choices = _choose(runs, models, settings)
    cells, doubts = _make_cells(runs, choices, settings)
    machines = {model: find_machines(_get_records(runs, model)) for model in models}
    baseline = find_baseline(cells, machines, settings)
    tasks = tuple(dict.fromkeys(task for _, task in choices))
    report = Report(
        models=tuple(summarise_model(m, tasks, cells, machines[m], settings) for m in models),
        tasks=tasks,
        cells=cells,
        without=tuple(task for task in settings.without if task in tasks),
        price=settings.price,
        weights=settings.weights,
        comparison=compare(baseline, cells, machines, settings) if baseline else None,
        gpus=compare_gpus(runs, settings.clock) if settings.by_gpu else None,
    )
    known = _add_baseline(machines, baseline, settings)
    return replace(
        report,
        notes=tuple(find_notes(report, runs, choices, known)),
        warnings=(*find_remarks(submission), *doubts, *find_unequal(known)),
    )


def _choose(runs: SubmissionRuns, models: list[str], settings: ReportSettings) -> dict[Key, Choice]:
    """Return what counts of every model and task, in the order of both."""
    found = {task for _, task in (*runs.good, *runs.failed)}
    tasks = [*(task for task in TASKS if task in found), *sorted(found - set(TASKS))]
    return {
        (model, task): choose(
            runs.good.get((model, task), ()),
            runs.failed.get((model, task), ()),
            settings.clock,
            many=runs.submission.many_models,
        )
        for model in models
        for task in tasks
    }


def _make_cells(
    runs: SubmissionRuns, choices: Mapping[Key, Choice], settings: ReportSettings
) -> tuple[dict[Key, Cell], tuple[str, ...]]:
    """Return all cells, and what `stats` would warn of."""
    groups = {key: choice.group for key, choice in choices.items() if choice.group is not None}
    stats = summarise(list(groups.values()), runs.submission.many_models)
    estimates = dict(zip(groups, stats.estimates, strict=True))
    cells = {}
    for key, choice in choices.items():
        cell = make_cell(
            key,
            runs.good.get(key, ()),
            runs.failed.get(key, ()),
            choice,
            estimates.get(key),
            runs.records,
        )
        cells[key] = _add_score_and_cost(cell, settings)
    return cells, stats.warnings


def _add_score_and_cost(cell: Cell, settings: ReportSettings) -> Cell:
    scores = settings.scores.get(cell.model, ModelScores())
    cell = replace(cell, score=scores.tasks.get(cell.task))
    if settings.price is None or cell.estimate is None:
        return cell
    return replace(cell, cost=compute_cost(settings.price, cell.estimate.rps))


def _get_records(runs: SubmissionRuns, model: str) -> list[RunRecord]:
    logs = [log for (name, _), of_task in runs.good.items() if name == model for log in of_task]
    return [runs.records[log.name] for log in logs if log.name in runs.records]


def _add_baseline(
    machines: Mapping[str, Machines], baseline: Baseline | None, settings: ReportSettings
) -> dict[str, Machines]:
    """Return the machines with that of a baseline from a file, which is no model here."""
    if baseline is None or isinstance(settings.baseline, str):
        return dict(machines)
    return {**machines, f"{baseline.model} (baseline)": baseline.machines}
