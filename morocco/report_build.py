"""From a submission to a report: a cell for each model and task, and what was asked of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from morocco.baseline import Baseline
from morocco.machines import Machines, find_machines, find_unequal
from morocco.means import compute_cost
from morocco.quality import Quality
from morocco.recorded import Recorded
from morocco.report import Cell, Report
from morocco.report_cards import compare_cards
from morocco.report_cells import Choice, choose, make_cell
from morocco.report_notes import find_notes, find_remarks
from morocco.report_options import Wishes
from morocco.report_runs import Key, Runs, list_models
from morocco.report_summary import compare, find_baseline, summarise_model
from morocco.stats import summarise
from morocco.submission import Submission
from morocco.tasks import TASKS


def build_report(submission: Submission, wishes: Wishes) -> Report:
    """Return the report on a submission; DataError for a baseline that does not fit it."""
    runs = Runs(submission)
    models = list_models(submission)
    choices = _choose(runs, models, wishes)
    cells, doubts = _make_cells(runs, choices, wishes)
    machines = {model: find_machines(_get_records(runs, model)) for model in models}
    baseline = find_baseline(cells, machines, wishes)
    tasks = tuple(dict.fromkeys(task for _, task in choices))
    report = Report(
        models=tuple(summarise_model(m, tasks, cells, machines[m], wishes) for m in models),
        tasks=tasks,
        cells=cells,
        without=tuple(task for task in wishes.without if task in tasks),
        price=wishes.price,
        weights=wishes.weights,
        comparison=compare(baseline, cells, machines, wishes) if baseline else None,
        cards=compare_cards(runs, wishes.clock) if wishes.by_gpu else None,
    )
    known = _add_baseline(machines, baseline, wishes)
    return replace(
        report,
        notes=tuple(find_notes(report, runs, choices, known)),
        warnings=(*find_remarks(submission), *doubts, *find_unequal(known)),
    )


def _choose(runs: Runs, models: list[str], wishes: Wishes) -> dict[Key, Choice]:
    """Return what counts of every model and task, in the order of both."""
    found = {task for _, task in (*runs.good, *runs.failed)}
    tasks = [*(task for task in TASKS if task in found), *sorted(found - set(TASKS))]
    return {
        (model, task): choose(
            runs.good.get((model, task), ()),
            runs.failed.get((model, task), ()),
            wishes.clock,
            many=runs.submission.many_models,
        )
        for model in models
        for task in tasks
    }


def _make_cells(
    runs: Runs, choices: Mapping[Key, Choice], wishes: Wishes
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
        cells[key] = _add_wishes(cell, wishes)
    return cells, stats.warnings


def _add_wishes(cell: Cell, wishes: Wishes) -> Cell:
    quality = wishes.qualities.get(cell.model, Quality(None))
    cell = replace(cell, score=quality.tasks.get(cell.task))
    if wishes.price is None or cell.estimate is None:
        return cell
    return replace(cell, cost=compute_cost(wishes.price, cell.estimate.rps))


def _get_records(runs: Runs, model: str) -> list[Recorded]:
    logs = [log for (name, _), of_task in runs.good.items() if name == model for log in of_task]
    return [runs.records[log.name] for log in logs if log.name in runs.records]


def _add_baseline(
    machines: Mapping[str, Machines], baseline: Baseline | None, wishes: Wishes
) -> dict[str, Machines]:
    """Return the machines with that of a baseline from a file, which is no model here."""
    if baseline is None or isinstance(wishes.baseline, str):
        return dict(machines)
    return {**machines, f"{baseline.model} (baseline)": baseline.machines}
