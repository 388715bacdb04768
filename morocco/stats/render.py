"""Render estimates as text: JSON lines and CSV at full precision, a rounded table for people."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from io import StringIO
from itertools import groupby
from typing import Literal

from morocco.stats.estimates import Estimate, Stats
from morocco.stats.single import RunSummary
from morocco.util.text import align, format_number, guard_cells

Format = Literal["jsonl", "csv", "table"]

Row = Mapping[str, str | int | float | None]
_Columns = Mapping[tuple[str, str], str]
"""The cells of a row of the table, by heading and unit."""
_DASH = "-"


def render(stats: Stats, form: Format) -> str:
    """Return the estimates in a format, with a newline at the end of every line."""
    return render_table(stats) if form == "table" else _render_rows(to_rows(stats), form)


def render_runs(runs: Sequence[RunSummary], form: Format) -> str:
    """Return what each of some runs says by itself, in a format."""
    if form != "table":
        return _render_rows([vars(run) for run in runs], form)
    return _join(_align([_format_run(run) for run in runs]))


def to_rows(stats: Stats) -> list[Row]:
    """Return one row per estimate, its keys in order; `model` only if there are several."""
    rows = [dict(vars(estimate)) for estimate in stats.estimates]
    if not stats.many_models:
        for row in rows:
            del row["model"]
    return [*rows]


def _render_rows(rows: Sequence[Row], form: Format) -> str:
    return _render_csv(rows) if form == "csv" else _render_jsonl(rows)


def _render_jsonl(rows: Sequence[Row]) -> str:
    """Return one JSON object per line; unknown values are null."""
    return "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows)


def _render_csv(rows: Sequence[Row]) -> str:
    """Return a header and one line per row; unknown values are empty."""
    text = StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(guard_cells(row) for row in rows)
    return text.getvalue()


def render_table(stats: Stats) -> str:
    """Return rounded numbers under their units; each of several models has a line above its rows.

    Unknown values are a dash; a column of which nothing is known is left out.
    """
    if not stats.estimates:
        return ""
    lines = _align([_format_estimate(estimate) for estimate in stats.estimates])
    header, rows = lines[:2], lines[2:]
    if not stats.many_models:
        return _join([*header, *rows])
    pairs = zip(stats.estimates, rows, strict=True)
    for model, own in groupby(pairs, key=lambda pair: pair[0].model):
        header += [f"{model}:", *(row for _, row in own)]
    return _join(header)


def _align(rows: Sequence[_Columns]) -> list[str]:
    """Return two lines of headings and units, and a line for each row."""
    shown = [key for key in rows[0] if any(row[key] != _DASH for row in rows)]
    headings = [[heading for heading, _ in shown], [unit for _, unit in shown]]
    return align([*headings, *([row[key] for key in shown] for row in rows)], left=[0])


def _join(lines: Sequence[str]) -> str:
    return "".join(line + "\n" for line in lines)


def _format_estimate(estimate: Estimate) -> _Columns:
    return {
        ("task", ""): estimate.task,
        ("records", ""): str(estimate.input_size),
        ("batch", ""): str(estimate.batch_size),
        ("speed", "rec/s"): format_number(estimate.rps),
        ("+-", "%"): _format_half_width(estimate),
        ("by", ""): estimate.limit or _DASH,
        ("init", "s"): format_number(estimate.init_time),
        ("RAM", "GB"): format_number(estimate.ram),
        ("GPU RAM", "GB"): format_number(estimate.gpu_ram),
        ("+ batch", "GB"): format_number(estimate.gpu_ram_batch),
        ("runs", ""): f"{estimate.runs}+{estimate.init_runs}",
    }


def _format_half_width(estimate: Estimate) -> str:
    """Return the half-width of the interval of the speed, in percent of the speed."""
    if estimate.rps_low is None:
        return _DASH
    if estimate.rps_high is None:
        return "open"
    return f"{(estimate.rps_high - estimate.rps_low) / 2 / estimate.rps * 100:.2g}"


def _format_run(run: RunSummary) -> _Columns:
    return {
        ("log", ""): run.log,
        ("run time", "s"): format_number(run.run_time),
        ("records", ""): _DASH if run.input_size is None else str(run.input_size),
        ("batch", ""): _DASH if run.batch_size is None else str(run.batch_size),
        ("with init", "rec/s"): format_number(run.records_per_second),
        ("CPU", "cores"): format_number(run.cpu),
        ("RAM", "GB"): format_number(run.ram),
        ("GPU use", "%"): format_number(None if run.gpu_usage is None else 100 * run.gpu_usage),
        ("GPU RAM", "GB"): format_number(run.gpu_ram),
    }
