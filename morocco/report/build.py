"""The report of a submission: its cells, the means and scores of its models, and comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, log
from statistics import fmean

from morocco.errors import DataError
from morocco.logs.record import RunRecord
from morocco.logs.submission import Submission
from morocco.report.baseline import Baseline
from morocco.report.cells import (
    CellRuns,
    Choice,
    Key,
    build_cell,
    choose_group,
    list_models,
    sort_runs,
)
from morocco.report.comparison import COMPARED, compare_tasks, measure_metric
from morocco.report.machines import (
    Machines,
    are_same,
    compare_gpus,
    list_machine_warnings,
    list_machines,
)
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
from morocco.report.notes import list_notes, list_remarks
from morocco.report.options import ModelScores, ReportSettings
from morocco.stats.estimates import summarise
from morocco.stats.grouping import Clock
from morocco.stats.intervals import average, bound, to_log
from morocco.util.units import Seconds

_MILLION = 1_000_000
_HOUR: Seconds = 3600

Cells = Mapping[str, Mapping[str, Cell]]
"""By model, then by task."""


def build_report(submission: Submission, settings: ReportSettings) -> Report:
    """Build the report of a submission; DataError for a baseline that does not fit it."""
    runs = sort_runs(submission)
    records = {entry.name: entry.record for entry in submission.entries if entry.record}
    choices = {
        key: choose_group(own, settings.clock, submission.many_models) for key, own in runs.items()
    }
    cells, warnings = _build_cells(runs, choices, records, settings)
    models, tasks = list_models(submission), tuple(dict.fromkeys(task for _, task in runs))
    by_model = sort_cells(cells)
    machines: dict[str, Machines] = {
        model: list_machines(records.get(log.name) for t in tasks for log in runs[model, t].logs)
        for model in models
    }
    baseline = _resolve_baseline(settings, by_model, machines)
    summaries = [_summarise(model, by_model, machines[model], settings) for model in models]
    ranks = rank_models(summaries, by_model, settings.without)
    report = Report(
        models=tuple(replace(model, rank=ranks.get(model.name)) for model in summaries),
        tasks=tasks,
        cells=cells,
        without=tuple(task for task in settings.without if task in tasks),
        price=settings.price,
        weights=settings.weights,
        comparison=_compare(baseline, by_model, machines, settings) if baseline else None,
        gpus=compare_gpus(runs, records, settings.clock) if settings.by_gpu else None,
    )
    if baseline and baseline is settings.baseline:
        machines[f"{baseline.model} (baseline)"] = baseline.machines
    return replace(
        report,
        notes=tuple(list_notes(report, runs, choices, machines)),
        warnings=(*list_remarks(submission), *warnings, *list_machine_warnings(machines)),
    )


def _build_cells(
    runs: Mapping[Key, CellRuns],
    choices: Mapping[Key, Choice],
    records: Mapping[str, RunRecord],
    settings: ReportSettings,
) -> tuple[dict[Key, Cell], tuple[str, ...]]:
    """Return all cells, and the warnings of `stats` about them."""
    groups = {key: choice.group for key, choice in choices.items() if choice.group is not None}
    stats = summarise(list(groups.values()), many_models=True)
    estimates = dict(zip(groups, stats.estimates, strict=True))
    cells = {}
    for key, choice in choices.items():
        estimate = estimates.get(key)
        cost = None
        if settings.price is not None and estimate is not None:
            cost = compute_cost(settings.price, estimate.rps)
        score = settings.scores.get(key[0], ModelScores()).tasks.get(key[1])
        cell = build_cell(key, runs[key], choice, estimate, records)
        cells[key] = replace(cell, score=score, cost=cost)
    return cells, stats.warnings


def sort_cells(cells: Mapping[Key, Cell]) -> dict[str, dict[str, Cell]]:
    """Return the cells by model, then by task."""
    by_model: dict[str, dict[str, Cell]] = {}
    for (model, task), cell in cells.items():
        by_model.setdefault(model, {})[task] = cell
    return by_model


def compute_cost(price: float, rps: float) -> float:
    """Return the cost of a million records beyond the start-up; `price` is that of an hour."""
    return price * _MILLION / rps / _HOUR


def compute_mean(values: Mapping[str, float | None]) -> Mean:
    """Return both means of the known values, by task."""
    known = {task: value for task, value in values.items() if value is not None}
    numbers = known.values()
    return Mean(
        fmean(numbers) if numbers else None,
        exp(fmean(map(log, numbers))) if numbers and all(n > 0 for n in numbers) else None,
        tuple(known),
        tuple(task for task in values if task not in known),
    )


def rank_models(
    models: Sequence[ModelSummary], cells: Cells, without: Sequence[str]
) -> dict[str, int]:
    """Return the place of each model by speed; those that cannot be told apart share a place.

    A model shares the place of the first above it from which no difference is shown. Those that
    lack tasks have none.
    """
    speeds = {model.name: model.means["rps"] for model in models}
    whole = {
        name: mean.geometric for name, mean in speeds.items() if mean.geometric and not mean.missing
    }
    ranks: dict[str, int] = {}
    head = ""
    for place, name in enumerate(sorted(whole, key=lambda name: -whole[name]), start=1):
        if head:
            readings = _get_readings(name, cells), _get_readings(head, cells)
            ratio = compare_tasks(*readings, without)[0].get("rps")
        if head and not (ratio and ratio.real):
            ranks[name] = ranks[head]
        else:
            head, ranks[name] = name, place
    return ranks


def _bound_mean(metric: Metric, mean: Mean, cells: Mapping[str, Cell]) -> Mean:
    """Return a mean with its intervals, where the runs of all its tasks tell them."""
    readings = [cells[task].readings for task in mean.tasks] if metric in COMPARED else []
    moments = [measure_metric(metric, of_task) for of_task in readings if of_task]
    known = [one for one in moments if one is not None]
    if not known or len(known) < len(mean.tasks) or mean.arithmetic is None:
        return mean
    bounds = bound(average(known), mean.arithmetic)
    if mean.geometric is None:
        return replace(mean, bounds=bounds)
    low, high = bound(average(list(map(to_log, known))), log(mean.geometric))
    return replace(mean, bounds=bounds, geometric_bounds=(exp(low), exp(high)))


def compute_weighted_score(
    cells: Mapping[str, Cell], weights: Mapping[str, float]
) -> WeightedScore:
    """Return the score that `suite` computes: exp(sum(w log perf_adj) / sum w).

    perf_adj = rps * (1 - spread) * (1 - failed / tried). Where a task has a weight but no perf_adj
    above 0, the model has no score.
    """
    adjusted: dict[str, float] = {}
    missing: dict[str, str] = {}
    weights = {task: weight for task, weight in weights.items() if weight > 0}
    for task in weights:
        cell = cells.get(task)
        if cell is None or cell.estimate is None:
            missing[task] = (cell.reason if cell else None) or "no runs"
            continue
        perf = compute_adjusted_rps(cell.estimate.rps, cell.spread, cell.failed, cell.tried)
        if perf > 0:
            adjusted[task] = perf
        else:
            missing[task] = "the speed varies by 100 % or more"
    partial = None
    if adjusted:
        total = sum(weights[task] for task in adjusted)
        partial = exp(sum(weights[task] * log(perf) for task, perf in adjusted.items()) / total)
    return WeightedScore(None if missing else partial, partial, adjusted, missing)


def compute_adjusted_rps(rps: float, spread: float | None, failed: int, tried: int) -> float:
    """Return the speed less its spread and less the share of failed runs.

    A single run, which has no spread, counts as if it were 0.
    """
    return rps * (1 - (spread or 0.0)) * (1 - failed / tried)


def _summarise(
    model: str, cells: Cells, machines: Machines, settings: ReportSettings
) -> ModelSummary:
    own = cells[model]
    means = {}
    for metric in METRICS:
        left_out = settings.without if metric in SCALED else ()
        counted = {task: cell for task, cell in own.items() if task not in left_out}
        mean = compute_mean({task: cell.value(metric) for task, cell in counted.items()})
        means[metric] = _bound_mean(metric, mean, counted)
    weighted = compute_weighted_score(own, settings.weights or dict.fromkeys(own, 1.0))
    return ModelSummary(
        model,
        settings.scores.get(model, ModelScores()).overall,
        means,
        weighted,
        settings.price / weighted.score if settings.price and weighted.score else None,
        machines,
    )


def _resolve_baseline(
    settings: ReportSettings, cells: Cells, machines: Mapping[str, Machines]
) -> Baseline | None:
    """Return what to compare with; DataError where it has no numbers or another clock."""
    baseline = settings.baseline
    if isinstance(baseline, str):
        return build_baseline(baseline, cells, machines[baseline], settings.clock)
    if baseline and baseline.clock != settings.clock:
        raise DataError(
            f"The baseline was measured with --clock {baseline.clock}; use the same here."
        )
    return baseline


def build_baseline(model: str, cells: Cells, machines: Machines, clock: Clock) -> Baseline:
    """Return a model of the report as a baseline; DataError where it has no numbers."""
    readings = _get_readings(model, cells)
    if not readings:
        raise DataError(f"{model} has no numbers, so it cannot be a baseline. Choose another one.")
    return Baseline(model, clock, machines, readings)


def _get_readings(model: str, cells: Cells) -> dict[str, Readings]:
    own = cells.get(model, {})
    return {task: cell.readings for task, cell in own.items() if cell.readings is not None}


def _compare(
    baseline: Baseline, cells: Cells, machines: Mapping[str, Machines], settings: ReportSettings
) -> Comparison:
    """Compare all models, except the baseline itself, with the baseline."""
    models = []
    for model in machines:
        if model == settings.baseline:
            continue
        readings = _get_readings(model, cells)
        overall, by_task = compare_tasks(readings, baseline.tasks, settings.without)
        models.append(
            ModelRatios(
                model,
                overall,
                by_task,
                are_same(machines[model], baseline.machines),
                missing=tuple(task for task in baseline.tasks if task not in readings),
                other_sizes=tuple(
                    task for task in by_task if readings[task].size != baseline.tasks[task].size
                ),
            )
        )
    return Comparison(baseline.model, tuple(models))
