"""The plan of a suite as a table for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from morocco.board import format_time
from morocco.columns import align
from morocco.forecast import Forecast
from morocco.plan import Block, Job
from morocco.preflight import State
from morocco.units import Seconds, plural


def render_plan(blocks: Sequence[Block], state: State, forecast: Forecast, lanes: int = 1) -> str:
    """Return one line for each kind of run, and a last one for the whole."""
    header = ["model", "task", "target", "input", "batch", "runs", "done", "a run", "left"]
    rows = [row for block in blocks for row in _rows(block, state, forecast)]
    hidden = {0} if not any(row[0] for row in rows) else set()
    shown = [
        [cell for number, cell in enumerate(row) if number not in hidden] for row in [header, *rows]
    ]
    left = [0, 1] if hidden else [0, 1, 2]
    return "\n".join([*align(shown, left), _total(blocks, state, forecast, lanes)]) + "\n"


def _rows(block: Block, state: State, forecast: Forecast) -> Iterator[list[str]]:
    target = " ".join(block.warm_up.target.split())  # a command may have several lines
    by_kind = groupby(sorted(block.jobs, key=lambda job: job.kind), key=lambda job: job.kind)
    for (model, task, size, batch), alike in by_kind:
        jobs = list(alike)
        due = sum(job in state.due for job in jobs)
        time = forecast.expect(jobs[0])
        yield [
            *(model, task, target, str(size), str(batch), str(len(jobs))),
            *(str(len(jobs) - due), _tell(time), _tell(None if time is None else time * due)),
        ]


def _tell(time: Seconds | None) -> str:
    return "?" if time is None else format_time(time)


def _total(blocks: Sequence[Block], state: State, forecast: Forecast, lanes: int) -> str:
    warm_ups = [block.warm_up for block in blocks if state.due.intersection(block.jobs)]
    due: list[Job] = [*state.due, *warm_ups]
    times = [forecast.expect(job) for job in due]
    known = sum(time for time in times if time is not None) / max(1, lanes)
    done = len(state.finished)
    counts = (
        f"{plural(len(state.due), 'run')} to do, {done} done, {plural(len(warm_ups), 'warm-up')}"
    )
    if not due or None not in times:
        return f"{counts}: {format_time(known)}"
    if len(set(times)) == 1:
        return f"{counts}: how long they take will be known after the first runs"
    return f"{counts}: over {format_time(known)}, some were never measured"
