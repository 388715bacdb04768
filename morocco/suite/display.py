"""What a suite shows: its plan; on stderr its progress, the current runs and failures."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING, TextIO

from morocco.bench.display import format_progress
from morocco.bench.run import Progress
from morocco.errors import MoroccoError
from morocco.suite.plan import Block, Forecast, Job
from morocco.suite.preflight import SuiteState
from morocco.util.text import align, format_elapsed, make_printable
from morocco.util.units import Seconds, plural

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live


class SuiteDisplay:
    """A bar and one line for each current run on a terminal, one line per finished run elsewhere.

    Shared by many threads. Failures and warnings are printed in either case.
    """

    def __init__(self, *, live: bool, quiet: bool, stream: TextIO | None = None) -> None:
        self._stream: TextIO | None = stream or sys.stderr
        """None if the calling process has closed it."""
        self._has_bar = live and not quiet and os.environ.get("TERM") != "dumb"
        self._quiet = quiet
        self._live: Live | None = None
        self._lock = threading.Lock()
        self._current: dict[str, tuple[Job, Progress | None]] = {}
        self._warnings: set[str] = set()
        self._started = time.monotonic()
        self._total = self._skipped = 0
        self.done = 0
        """Runs that are done, not counting warm-ups."""
        self._left: Seconds | None = None

    def start(self, total: int, done: int) -> None:
        """Start with this many runs in all, some of which were done before."""
        self._started = time.monotonic()
        self._total, self.done = total, done
        if self._has_bar:
            from rich.console import Console
            from rich.live import Live

            live = Live(console=Console(file=self._stream), auto_refresh=False, transient=True)
            with suppress(OSError):  # a closed terminal ends the suite by its signal, not here
                live.start()
                self._live = live
            self._draw()

    def stop(self) -> None:
        """Leave nothing on the screen but what was printed."""
        with self._lock:
            live, self._live = self._live, None
            if live is not None:
                with suppress(OSError):
                    live.stop()

    def begin(self, lane: str, job: Job) -> None:
        """Show that a lane has started a job."""
        with self._lock:
            self._current[lane] = job, None

    def progress(self, lane: str, progress: Progress) -> None:
        """Note the progress of the job of a lane."""
        with self._lock:
            if lane in self._current:
                self._current[lane] = self._current[lane][0], progress

    def drop(self, lane: str) -> None:
        """Stop showing the job of a lane."""
        with self._lock:
            self._current.pop(lane, None)

    def finish(self, lane: str, job: Job, duration: Seconds, left: Seconds | None) -> None:
        """Report a job that is done, and how long all others will take."""
        self.drop(lane)
        with self._lock:
            self._left = left
            self.done += job.index is not None
        label = job.label if job.index is not None else f"{job.label}, not kept"
        if not self._has_bar and not self._quiet:
            counts = f"[{self.done}/{self._total}]"
            self._print(f"{counts} {label}: {duration:.1f} s{self._format_left()}")

    def retry(self, lane: str, job: Job, error: MoroccoError) -> None:
        """Report a failed run that is tried again, in one line; `fail` prints the details."""
        self.drop(lane)
        self._print(f"morocco: {job.label} failed: {str(error).splitlines()[0]} Trying again.")

    def fail(self, lane: str, job: Job, error: MoroccoError, then: str, skipped: int = 0) -> None:
        """Report a run that was given up, what happens next, and how many runs are skipped."""
        self.drop(lane)
        with self._lock:
            self._skipped += skipped
        self._print(f"morocco: {job.label} failed: {error}\n  {then}")

    def warn(self, job: Job | None, message: str) -> None:
        """Print a warning with the first run it concerns; the record of each run has its own."""
        with self._lock:
            is_new = message not in self._warnings
            self._warnings.add(message)
        if is_new:
            label = f"{job.label}: " if job else ""
            self._print(f"morocco: warning: {label}{message}")

    def say(self, message: str) -> None:
        """Print a line, except with --quiet."""
        if not self._quiet:
            self._print(message)

    def refresh(self) -> None:
        """Redraw what is shown on a terminal."""
        with self._lock:
            self._draw()

    def _print(self, text: str) -> None:
        text = make_printable(text)
        with self._lock, suppress(OSError):
            if self._live is not None:
                self._live.console.print(text, markup=False, highlight=False, soft_wrap=True)
            elif self._stream is not None:
                self._stream.write(text + "\n")
                self._stream.flush()

    def _draw(self) -> None:
        if self._live is not None:
            with suppress(OSError):
                self._live.update(self._render(), refresh=True)

    def _render(self) -> RenderableType:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        bar = ProgressBar(self._total, self.done + self._skipped, width=30)
        skipped = f", {self._skipped} skipped" if self._skipped else ""
        elapsed = format_elapsed(time.monotonic() - self._started)
        counts = f"{self.done}/{self._total} runs{skipped}  {elapsed}{self._format_left()}"
        overall = Table.grid(padding=(0, 1))
        overall.add_row(bar, counts)
        lines = [
            Text(
                make_printable(f"{job.label}  ")
                + (format_progress(progress) if progress else "starting"),
                no_wrap=True,
                overflow="ellipsis",
            )
            for job, progress in self._current.values()
        ]
        return Group(overall, *lines)

    def _format_left(self) -> str:
        return "" if self._left is None else f", about {format_elapsed(self._left)} left"


class JobObserver:
    """Passes what is observed of a run on to the display."""

    def __init__(self, display: SuiteDisplay, lane: str, job: Job) -> None:
        self._display, self._lane, self._job = display, lane, job

    def progress(self, progress: Progress) -> None:
        """Show the progress of the run."""
        self._display.progress(self._lane, progress)

    def warn(self, message: str) -> None:
        """Print why the measurement is doubtful."""
        self._display.warn(self._job, message)


def render_plan(
    blocks: Sequence[Block], state: SuiteState, forecast: Forecast, lanes: int = 1
) -> str:
    """Return one line for each kind of run, and a last one with the totals."""
    header = ["model", "task", "target", "input", "batch", "runs", "done", "a run", "left"]
    rows = [header, *(row for block in blocks for row in _build_rows(block, state, forecast))]
    left = [0, 1, 2]
    if not any(model for model, *_ in rows[1:]):
        rows, left = [row[1:] for row in rows], [0, 1]
    return "\n".join([*align(rows, left), _format_totals(blocks, state, forecast, lanes)]) + "\n"


def _build_rows(block: Block, state: SuiteState, forecast: Forecast) -> Iterator[list[str]]:
    target = " ".join(block.warm_up.target.split())  # a command may have several lines
    by_kind = groupby(sorted(block.jobs, key=lambda job: job.kind), key=lambda job: job.kind)
    for (model, task, size, batch), alike in by_kind:
        jobs = list(alike)
        due = sum(job in state.due for job in jobs)
        time = forecast.time_of(jobs[0])
        times = ["?", "?"] if time is None else [format_elapsed(time), format_elapsed(time * due)]
        counts = map(str, (size, batch, len(jobs), len(jobs) - due))
        yield [model, task, target, *counts, *times]


def _format_totals(
    blocks: Sequence[Block], state: SuiteState, forecast: Forecast, lanes: int
) -> str:
    warm_ups = [block.warm_up for block in blocks if state.due.intersection(block.jobs)]
    times = [forecast.time_of(job) for job in (*state.due, *warm_ups)]
    known = [time for time in times if time is not None]
    total = format_elapsed(sum(known) / max(1, lanes))
    counts = (
        f"{plural(len(state.due), 'run')} to do, {len(state.finished)} done, "
        f"{plural(len(warm_ups), 'warm-up')}"
    )
    if len(known) == len(times):
        return f"{counts}: {total}"
    if not known:
        return f"{counts}: the time needed will be known after the first runs"
    return f"{counts}: more than {total}, as some kinds of run have not been measured yet"
