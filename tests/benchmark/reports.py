"""How long a report on many models takes."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from figures import Figure
from startup import write_logs

_MODELS, _TASKS, _RUNS, _LINES = 6, 9, 5, 250
"""The published logs have 250 lines on average."""
_REPEATS = 3


def measure_reports(folder: Path) -> Iterator[Figure]:
    """Yield wall times of reports over 540 logs."""
    logs, scores, page = (folder / name for name in ("logs", "scores.json", "report.html"))
    models = [f"model{number}" for number in range(_MODELS)]
    for model in models:
        write_logs(logs / model, tasks=_TASKS, runs=_RUNS, lines=_LINES)
    wishes = ("--baseline", "model0", "--price", "75")
    tables = _time_report(logs, *wishes)
    yield _seconds("report on 540 logs: tables, all compared with one", tables, 4)
    scores.write_text(json.dumps({model: {"overall": 0.5} for model in models}))
    html = _time_report(logs, "--force", *wishes, "--scores", str(scores), "-o", str(page))
    yield _seconds("report on 540 logs: HTML with the disc chart and all plots", html, 8)


def _time_report(folder: Path, *options: str) -> float:
    """Return the median wall time of `morocco report`."""
    command = [sys.executable, "-m", "morocco", "report", str(folder), *options]
    times = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _seconds(name: str, measured: float, target: float) -> Figure:
    return Figure(name, "-", f"under {target} s", f"{measured:.2f} s", measured < target)
