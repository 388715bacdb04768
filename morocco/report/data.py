"""A report for programs: CSV, one row a model and task; JSON, everything; nothing is rounded."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from io import StringIO
from typing import Any

from morocco.report.comparison import COMPARED
from morocco.report.model import METRICS, Cell, Metric, ModelSummary, Ratio, Report

FORMAT = 1
_OF_RUNS = ("input_size", "batch_size", "runs", "init_runs", "rps_low", "rps_high")
_OF_CELL = ("score", "spread", "failed", "tried", "reason")

Row = dict[str, Any]


def render_csv(report: Report) -> str:
    """Return a header and one line for each model and task; what is not known is empty."""
    rows = [_to_row(report, cell) for cell in report.cells.values()]
    text = StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _to_row(report: Report, cell: Cell) -> Row:
    row = _to_dict(cell)
    if report.comparison:
        ratios = find_ratios(report, cell)
        for metric in COMPARED:
            ratio = ratios.get(metric)
            row |= {
                f"{metric}_ratio": ratio and ratio.value,
                f"{metric}_ratio_low": ratio and ratio.low,
                f"{metric}_ratio_high": ratio and ratio.high,
                f"{metric}_ratio_real": ratio and ratio.real,
            }
    return row


def find_ratios(report: Report, cell: Cell) -> Mapping[Metric, Ratio]:
    """Return the ratios of a cell to the baseline; none where it is the baseline itself."""
    models = report.comparison.models if report.comparison else ()
    of_model = (model.by_task for model in models if model.model == cell.model)
    return next(of_model, {}).get(cell.task, {})


def _to_dict(cell: Cell) -> Row:
    runs = {name: getattr(cell.estimate, name, None) for name in _OF_RUNS}
    return {
        "model": cell.model,
        "task": cell.task,
        **{metric: cell.value(metric) for metric in METRICS},
        **runs,
        **{name: getattr(cell, name) for name in _OF_CELL},
    }


def render_json(report: Report) -> str:
    """Return one JSON object; what is not known is null."""
    content = {
        "format": FORMAT,
        "tasks": report.tasks,
        "without": report.without,
        "weights": report.weights,
        "price": report.price,
        "models": [_summarise(model) for model in report.models],
        "cells": [
            {**_to_dict(cell), "logs": [log.name for log in cell.logs]}
            for cell in report.cells.values()
        ],
        "comparison": _compare(report),
        "cards": report.gpus and [vars(gpu) for gpu in report.gpus],
        "notes": report.notes,
        "warnings": report.warnings,
    }
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def _summarise(model: ModelSummary) -> Row:
    means = {metric: vars(mean) for metric, mean in model.means.items()}
    return vars(model) | {"means": means, "weighted": vars(model.weighted)}


def _compare(report: Report) -> Row | None:
    if report.comparison is None:
        return None
    models = [
        {
            "model": model.model,
            "same_machine": model.same_machine,
            "missing": model.missing,
            "other_sizes": model.other_sizes,
            "overall": _to_numbers(model.overall),
            "by_task": {task: _to_numbers(ratios) for task, ratios in model.by_task.items()},
        }
        for model in report.comparison.models
    ]
    return {"baseline": report.comparison.baseline, "models": models}


def _to_numbers(ratios: Mapping[Metric, Ratio]) -> dict[Metric, Row]:
    return {metric: vars(ratio) for metric, ratio in ratios.items()}
