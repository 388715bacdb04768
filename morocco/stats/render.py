"""Render estimates as text: JSON lines and CSV at full precision, a rounded table for people."""

from __future__ import annotations

import csv
import json
from io import StringIO
from typing import Literal

from morocco.stats.estimates import Estimate, Stats
from morocco.util.text import align, format_number, guard_cells

Format = Literal["jsonl", "csv", "table"]

Row = dict[str, str | int | float | None]


def render(stats: Stats, form: Format) -> str:
    """Return the estimates in a format, with a newline at the end of every line."""
    renderers = {"jsonl": render_jsonl, "csv": render_csv, "table": render_table}
    return renderers[form](stats)


def to_rows(stats: Stats) -> list[Row]:
    """Return one row per estimate, its keys in order; `model` only if there are several."""
    rows = [dict(vars(estimate)) for estimate in stats.estimates]
    if not stats.many_models:
        for row in rows:
            del row["model"]
    return rows


def render_jsonl(stats: Stats) -> str:
    """Return one JSON object per line; unknown values are null."""
    return "".join(json.dumps(row, allow_nan=False) + "\n" for row in to_rows(stats))


def render_csv(stats: Stats) -> str:
    """Return a header and one line per estimate; unknown values are empty."""
    rows = to_rows(stats)
    text = StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(guard_cells(row) for row in rows)
    return text.getvalue()


def render_table(stats: Stats) -> str:
    """Return aligned columns of rounded numbers; unknown values are a dash."""
    rows = [_format_cells(estimate) for estimate in stats.estimates]
    names = [name for name in (rows[0] if rows else ()) if stats.many_models or name != "model"]
    cells = [names, *([row[name] for name in names] for row in rows)]
    left = [number for number, name in enumerate(names) if name in ("model", "task")]
    return "".join(line + "\n" for line in align(cells, left)) if names else ""


def _format_cells(estimate: Estimate) -> dict[str, str]:
    measured = ("rps", "rps_low", "rps_high", "init_time", "gpu_ram", "gpu_ram_batch", "ram")
    return {
        "model": estimate.model,
        "task": estimate.task,
        "input_size": str(estimate.input_size),
        "batch_size": str(estimate.batch_size),
        **{name: format_number(getattr(estimate, name)) for name in measured},
        "runs + init_runs": f"{estimate.runs} + {estimate.init_runs}",
    }
