"""What a person sees on stderr while a suite goes: how far it is, the runs at work, failures."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from morocco.bench.display import format_progress
from morocco.bench.run import Progress
from morocco.errors import MoroccoError
from morocco.suite.plan import Job
from morocco.util.units import Seconds

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

from collections.abc import Iterator, Sequence
from itertools import groupby

from morocco.suite.plan import Block, Forecast
from morocco.suite.preflight import SuiteState
from morocco.util.text import align, format_elapsed
from morocco.util.units import plural


class SuiteDisplay:
    """A bar and one line for each run at work on a terminal, one line a run elsewhere.

    Used by many threads. Failures and warnings are printed wherever it writes to.
    """

    def __init__(self, *, live: bool, quiet: bool, stream: TextIO | None = None) -> None:
        self._stream: TextIO | None = stream or sys.stderr
        """None where whoever started us has closed it."""
        self._shown = live and not quiet and os.environ.get("TERM") != "dumb"
        self._quiet = quiet
        self._live: Live | None = None
        self._lock = threading.Lock()
        self._at_work: dict[str, tuple[Job, Progress | None]] = {}
        self._told: set[str] = set()
        self._started = time.monotonic()
        self._total = self._failed = 0
        self.done = 0
        """Runs that are done, warm-ups not counted."""
        self._left: Seconds | None = None

    def start(self, total: int, done: int) -> None:
        """Begin with so many runs in all, some of them done before."""
        self._started = time.monotonic()
        self._total, self.done = total, done
        if self._shown:
            with suppress(OSError):  # a closed terminal ends the suite by its signal, not here
                self._live = _start_live(self._stream)
            self._draw()

    def stop(self) -> None:
        """Leave nothing on the screen but what was printed."""
        with self._lock:
            live, self._live = self._live, None
            if live is not None:
                with suppress(OSError):
                    live.stop()

    def begin(self, lane: str, job: Job) -> None:
        """Show that a lane has begun a job."""
        with self._lock:
            self._at_work[lane] = job, None

    def progress(self, lane: str, progress: Progress) -> None:
        """Take note of how far the job of a lane is."""
        with self._lock:
            if lane in self._at_work:
                self._at_work[lane] = self._at_work[lane][0], progress

    def drop(self, lane: str) -> None:
        """Show no job of this lane any more."""
        with self._lock:
            self._at_work.pop(lane, None)

    def finish(self, lane: str, job: Job, taken: Seconds, left: Seconds | None) -> None:
        """Tell of a job that is done and how long all others will take."""
        self.drop(lane)
        with self._lock:
            self._left = left
            if job.index is None:
                what = f"{job.label}, not kept"
            else:
                self.done += 1
                what = job.label
        if not self._shown and not self._quiet:
            self._print(f"[{self.done}/{self._total}] {what}: {taken:.1f} s{self._tell_left()}")

    def retry(self, lane: str, job: Job, error: MoroccoError) -> None:
        """Tell of a run that failed and is tried again; if that is in vain, `fail` says more."""
        self.drop(lane)
        self._print(f"morocco: {job.label} failed: {str(error).splitlines()[0]} Trying again.")

    def fail(self, lane: str, job: Job, error: MoroccoError, then: str) -> None:
        """Tell of a run that was given up, and what comes next."""
        self.drop(lane)
        self._print(f"morocco: {job.label} failed: {error}\n  {then}")

    def pass_over(self, count: int) -> None:
        """Count runs that will not be done."""
        with self._lock:
            self._failed += count

    def warn(self, job: Job | None, message: str) -> None:
        """Print a warning with the first run it concerns; the record of each run has its own."""
        with self._lock:
            new = message not in self._told
            self._told.add(message)
        if new:
            whose = f"{job.label}: " if job else ""
            self._print(f"morocco: warning: {whose}{message}")

    def say(self, message: str) -> None:
        """Print a line, unless told to be quiet."""
        if not self._quiet:
            self._print(message)

    def refresh(self) -> None:
        """Draw anew what is shown on a terminal."""
        with self._lock:
            self._draw()

    def _print(self, text: str) -> None:
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

        bar = ProgressBar(self._total, self.done + self._failed, width=30)
        overall = Table.grid(padding=(0, 1))
        overall.add_row(bar, self._tell_overall())
        lines = [
            Text(f"{job.label}  {format_progress(progress) if progress else 'starting'}")
            for job, progress in self._at_work.values()
        ]
        for line in lines:
            line.no_wrap, line.overflow = True, "ellipsis"
        return Group(overall, *lines)

    def _tell_overall(self) -> str:
        failed = f", {self._failed} passed over" if self._failed else ""
        elapsed = format_elapsed(time.monotonic() - self._started)
        return f"{self.done}/{self._total} runs{failed}  {elapsed}{self._tell_left()}"

    def _tell_left(self) -> str:
        return "" if self._left is None else f", about {format_elapsed(self._left)} left"


class JobObserver:
    """What a run tells, passed on to the board."""

    def __init__(self, board: SuiteDisplay, lane: str, job: Job) -> None:
        self._board, self._lane, self._job = board, lane, job

    def progress(self, progress: Progress) -> None:
        """Show how far the run is."""
        self._board.progress(self._lane, progress)

    def warn(self, message: str) -> None:
        """Print what makes the run doubtful."""
        self._board.warn(self._job, message)


def _start_live(stream: TextIO | None) -> Live:
    from rich.console import Console
    from rich.live import Live

    live = Live(console=Console(file=stream), auto_refresh=False, transient=True)
    live.start()
    return live


def render_plan(
    blocks: Sequence[Block], state: SuiteState, forecast: Forecast, lanes: int = 1
) -> str:
    """Return one line for each kind of run, and a last one for the whole."""
    header = ["model", "task", "target", "input", "batch", "runs", "done", "a run", "left"]
    rows = [row for block in blocks for row in _rows(block, state, forecast)]
    hidden = {0} if not any(row[0] for row in rows) else set()
    shown = [
        [cell for number, cell in enumerate(row) if number not in hidden] for row in [header, *rows]
    ]
    left = [0, 1] if hidden else [0, 1, 2]
    return "\n".join([*align(shown, left), _total(blocks, state, forecast, lanes)]) + "\n"


def _rows(block: Block, state: SuiteState, forecast: Forecast) -> Iterator[list[str]]:
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
    return "?" if time is None else format_elapsed(time)


def _total(blocks: Sequence[Block], state: SuiteState, forecast: Forecast, lanes: int) -> str:
    warm_ups = [block.warm_up for block in blocks if state.due.intersection(block.jobs)]
    due: list[Job] = [*state.due, *warm_ups]
    times = [forecast.expect(job) for job in due]
    known = sum(time for time in times if time is not None) / max(1, lanes)
    done = len(state.finished)
    counts = (
        f"{plural(len(state.due), 'run')} to do, {done} done, {plural(len(warm_ups), 'warm-up')}"
    )
    if not due or None not in times:
        return f"{counts}: {format_elapsed(known)}"
    if len(set(times)) == 1:
        return f"{counts}: how long they take will be known after the first runs"
    return f"{counts}: over {format_elapsed(known)}, some were never measured"
