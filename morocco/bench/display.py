"""What a person sees on stderr while a run goes."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from morocco.bench.run import Progress
from morocco.logs.record import RunRecord
from morocco.logs.samples import Sample
from morocco.targets.target import PullEvent
from morocco.util.text import format_elapsed
from morocco.util.units import GIB, plural

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

_CLEAR = "\r\x1b[K"


class RunDisplay:
    """Warnings always; the live line and the progress of a pull where somebody can see them."""

    def __init__(self, *, live: bool, quiet: bool, stream: TextIO | None = None) -> None:
        self._stream: TextIO | None = stream or sys.stderr
        self._live = live and not quiet
        self._quiet = quiet
        self._pull: _PullBar | None = None
        self._drawn = False

    def __enter__(self) -> RunDisplay:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_pull()
        self._clear()

    def progress(self, progress: Progress) -> None:
        """Redraw the live line."""
        self._end_pull()
        if self._live and self._stream is not None:
            line = format_progress(progress)[: _width(self._stream) - 1]  # two cannot be cleared
            self._write(_CLEAR + line)
            self._drawn = True

    def warn(self, message: str) -> None:
        """Print a warning on a line of its own."""
        self._end_pull()
        self._clear()
        self._write(f"morocco: warning: {message}\n")

    def say(self, message: str) -> None:
        """Print a line, unless told to be quiet."""
        self._end_pull()
        self._clear()
        if not self._quiet:
            self._write(message + "\n")

    def pull(self, event: PullEvent) -> None:
        """Show how far the pull of an image has come."""
        if self._pull is None:
            self.say("Pulling the image …")
            self._pull = _PullBar(shown=self._live)
        self._pull.update(event)

    def _end_pull(self) -> None:
        pull, self._pull = self._pull, None
        if pull is not None:
            pull.stop()

    def _clear(self) -> None:
        if self._drawn:
            self._write(_CLEAR)
            self._drawn = False

    def _write(self, text: str) -> None:
        if self._stream is None:  # closed by whoever started us
            return
        with suppress(OSError):  # a closed terminal ends the run by its signal, not here
            self._stream.write(text)
            self._stream.flush()


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a person sees it; None is one that whoever started us has closed."""
    return stream is not None and stream.isatty()


def _width(stream: TextIO) -> int:
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except OSError:
        columns = 0
    return columns or shutil.get_terminal_size().columns


def format_progress(progress: Progress) -> str:
    """Return the live line: elapsed, records fed and predicted, CPU, RAM, GPU."""
    sample = progress.sample or Sample(0)
    parts = [
        f"{format_elapsed(progress.elapsed)}  fed {progress.fed:,}/{progress.records:,}",
        f"predicted {progress.predicted:,}",
        f"CPU {_number(sample.cpu_usage, 1)} cores",
        f"RAM {_number(sample.ram, GIB)} GB",
        f"GPU {_number(sample.gpu_usage, 0.01, 0)} %" if sample.gpu_ram is not None else "",
        f"GPU RAM {_number(sample.gpu_ram, GIB)} GB" if sample.gpu_ram is not None else "",
    ]
    return "  ".join(part for part in parts if part)


def summarise(record: RunRecord, output: Path | None) -> str:
    """Return what a run came to, in one line."""
    parts = [
        f"{record.task}: {plural(record.input_size or 0, 'record')} in "
        f"{record.run_time or 0:.2f} s, start-up included",
        plural(record.prediction_count or 0, "prediction"),
        f"peak RAM {_number(record.peaks.ram, GIB)} GB",
    ]
    if record.peaks.gpu_ram is not None:
        parts.append(f"peak GPU RAM {_number(record.peaks.gpu_ram, GIB)} GB")
    return ", ".join(parts) + (f" -> {output}" if output else "")


def _number(value: float | None, unit: float, digits: int = 2) -> str:
    return "-" if value is None else f"{value / unit:.{digits}f}"


class _PullBar:
    """The layers of an image, as one bar a layer."""

    def __init__(self, *, shown: bool) -> None:
        self._bars: Bars | None = _start_bars() if shown else None
        self._layers: dict[str, TaskID] = {}

    def update(self, event: PullEvent) -> None:
        if self._bars is None or not event.layer or not event.total:
            return
        if event.layer not in self._layers:
            self._layers[event.layer] = self._bars.add_task(event.status, total=event.total)
        self._bars.update(
            self._layers[event.layer],
            description=f"{event.layer} {event.status}",
            completed=event.current,
            total=event.total,
            refresh=True,
        )

    def stop(self) -> None:
        if self._bars is not None:
            self._bars.stop()


def _start_bars() -> Bars:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
    )
    bars = Progress(*columns, console=Console(stderr=True), transient=True)
    bars.start()
    return bars
