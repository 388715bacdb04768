"""What a person sees on stderr while a run goes on."""

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
from morocco.util.text import format_elapsed, format_number, indent_lines, make_printable
from morocco.util.units import GIB, plural

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

_CLEAR_LINE = "\r\x1b[K"


class RunDisplay:
    """Prints warnings, and on a terminal a live line and the progress of a pull."""

    def __init__(self, *, live: bool, quiet: bool, stream: TextIO | None = None) -> None:
        self._stream: TextIO | None = stream or sys.stderr
        """None if the parent process closed it."""
        self._live, self._quiet = live and not quiet, quiet
        self._pull: _PullBars | None = None
        self._line_drawn = False

    def __enter__(self) -> RunDisplay:
        return self

    def __exit__(self, *_: object) -> None:
        self._print("")

    def progress(self, progress: Progress) -> None:
        """Redraw the live line."""
        self._end_pull()
        if self._live and self._stream is not None:
            line = format_progress(progress)[: _get_width(self._stream) - 1]  # one that wraps stays
            self._write(_CLEAR_LINE + line)
            self._line_drawn = True

    def warn(self, message: str) -> None:
        """Print a warning on a line of its own."""
        self._print(f"morocco: warning: {indent_lines(make_printable(message))}\n")

    def say(self, message: str) -> None:
        """Print a line, unless quiet."""
        self._print("" if self._quiet else make_printable(message) + "\n")

    def pull(self, event: PullEvent) -> None:
        """Show how far the pull of an image has come."""
        if self._pull is None:
            self.say("Pulling the image …")
            self._pull = _PullBars(shown=self._live)
        self._pull.update(event)

    def _print(self, text: str) -> None:
        self._end_pull()
        if self._line_drawn:
            text = _CLEAR_LINE + text
            self._line_drawn = False
        if text:
            self._write(text)

    def _end_pull(self) -> None:
        pull, self._pull = self._pull, None
        if pull is not None:
            pull.stop()

    def _write(self, text: str) -> None:
        if self._stream is not None:
            with suppress(OSError):  # a closed terminal ends the run by its signal, not here
                self._stream.write(text)
                self._stream.flush()


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is shown to a person; None is one that the parent closed."""
    return stream is not None and stream.isatty()


def _get_width(stream: TextIO) -> int:
    with suppress(OSError):
        if columns := os.get_terminal_size(stream.fileno()).columns:
            return columns
    return shutil.get_terminal_size().columns


def format_progress(progress: Progress) -> str:
    """Return the live line: what is most wanted comes first, for a narrow terminal cuts the end."""
    sample = progress.sample or Sample(0)
    parts = [format_elapsed(progress.elapsed), f"RAM {_format(sample.ram, GIB)} GB"]
    if sample.gpu_ram is not None:
        use, ram = _format(sample.gpu_usage, 0.01, 0), _format(sample.gpu_ram, GIB)
        parts.append(f"GPU {use} % {ram} GB")
    parts += [
        f"CPU {_format(sample.cpu_usage, 1)} cores",
        f"fed {progress.fed:,}/{progress.records:,}",
        f"predicted {progress.predicted:,}",
    ]
    return "  ".join(parts)


def format_summary(record: RunRecord, output: Path | TextIO) -> str:
    """Return the result of a run in one line."""
    size, time = record.input_size or 0, record.run_time or 0.0
    speed = f" ({format_number(size / time)} a second)" if size > 1 and time else ""
    parts = [
        f"{record.task}: {plural(size, 'record')} in {time:.2f} s{speed}, start-up included",
        plural(record.prediction_count or 0, "prediction"),
        f"peak RAM {_format(record.peaks.ram, GIB)} GB",
    ]
    if record.peaks.gpu_ram is not None:
        parts.append(f"peak GPU RAM {_format(record.peaks.gpu_ram, GIB)} GB")
    kept = ""
    if isinstance(output, Path):
        kept = " (no log: give -o)" if output == Path(os.devnull) else f" -> {output}"
    return ", ".join(parts) + kept


def _format(value: float | None, unit: float, digits: int = 2) -> str:
    return "-" if value is None else f"{value / unit:.{digits}f}"


class _PullBars:
    """One bar for each layer of an image."""

    def __init__(self, *, shown: bool) -> None:
        self._bars = _start_bars() if shown else None
        self._layers: dict[str, TaskID] = {}

    def update(self, event: PullEvent) -> None:
        if self._bars is None or not event.layer or not event.total:
            return
        if event.layer not in self._layers:
            self._layers[event.layer] = self._bars.add_task("", total=event.total)
        self._bars.update(
            self._layers[event.layer],
            description=make_printable(f"{event.layer} {event.status}"),
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

    text = TextColumn("{task.description}", markup=False)
    columns = (text, BarColumn(), DownloadColumn(), TransferSpeedColumn())
    bars = Progress(*columns, console=Console(stderr=True), transient=True)
    bars.start()
    return bars
