"""A report for programs, with nothing rounded: CSV by model and task, or everything as JSON."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict
from io import StringIO
from typing import Any

from morocco.report.comparison import COMPARED, measure_metric
from morocco.report.model import METRICS, Cell, Report
from morocco.stats.intervals import bound
from morocco.util.text import guard_cells

FORMAT = 1
_OF_ESTIMATE = (
    "input_size",
    "batch_size",
    "runs",
    "init_runs",
    *(
        f"{name}_{end}"
        for name in ("rps", "init_time", "gpu_ram", "ram")
        for end in ("low", "high")
    ),
)
_OF_CELL = ("score", "spread", "failed", "tried", "reason")


def render_csv(report: Report) -> str:
    """Return a header and one line per model and task; unknown values are empty."""
    rows = [_to_row(cell) | _get_ratios(report, cell) for cell in report.cells.values()]
    text = StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(guard_cells, rows))
    return text.getvalue()


def _to_row(cell: Cell) -> dict[str, Any]:
    return {
        "model": cell.model,
        "task": cell.task,
        **{metric: cell.value(metric) for metric in METRICS},
        **{name: getattr(cell.estimate, name, None) for name in _OF_ESTIMATE},
        **{name: getattr(cell, name) for name in _OF_CELL},
        **_bound_energy(cell),
    }


def _bound_energy(cell: Cell) -> dict[str, float | None]:
    moments = measure_metric("energy", cell.readings) if cell.readings else None
    low, high = bound(moments, cell.energy) if moments and cell.energy else (None, None)
    return {"energy_low": low, "energy_high": high}


def _get_ratios(report: Report, cell: Cell) -> dict[str, Any]:
    """Return the columns of the ratios to the baseline; None for the baseline itself."""
    if report.comparison is None:
        return {}
    by_task = {model.model: model.by_task for model in report.comparison.models}
    ratios = by_task.get(cell.model, {}).get(cell.task, {})
    columns = {"": "value", "_low": "low", "_high": "high", "_real": "real"}
    return {
        f"{metric}_ratio{suffix}": getattr(ratios.get(metric), name, None)
        for metric in COMPARED
        for suffix, name in columns.items()
    }


def render_json(report: Report) -> str:
    """Return one JSON object; unknown values are null."""
    cells = report.cells.values()
    content = {
        "format": FORMAT,
        "tasks": report.tasks,
        "without": report.without,
        "weights": report.weights,
        "price": report.price,
        "models": [asdict(model) for model in report.models],
        "cells": [_to_row(cell) | {"logs": [log.name for log in cell.logs]} for cell in cells],
        "comparison": report.comparison and asdict(report.comparison),
        "cards": report.gpus and [asdict(gpu) for gpu in report.gpus],
        "notes": report.notes,
        "warnings": report.warnings,
    }
    return json.dumps(content, indent=1, allow_nan=False) + "\n"
