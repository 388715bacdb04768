"""What a person sees: the live line, warnings, the progress of a pull, the summary."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from io import FileIO, StringIO, TextIOWrapper
from pathlib import Path

import pytest

from morocco.bench.display import RunDisplay, format_progress, format_summary
from morocco.bench.run import Progress
from morocco.hardware.info import HostInfo
from morocco.logs.record import DataFile, Output, RunRecord
from morocco.logs.samples import Peaks, Sample
from morocco.targets.target import Identity, PullEvent

GIB = 2**30
CLEAR = "\r\x1b[K"
PROGRESS = Progress(83.9, 2000, 1500, 32, Sample(0, 1.25, 3 * GIB))
PULL = [
    PullEvent("", "Pulling from library/alpine", 0, 0),
    PullEvent("a1", "Downloading", 10, 100),
    PullEvent("b2", "Downloading", 5, 50),
    PullEvent("a1", "Extracting", 100, 100),
    PullEvent("a1", "Pull complete", 0, 0),
]


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def stream() -> StringIO:
    return StringIO()


def test_the_live_line_tells_how_far_a_run_has_come() -> None:
    assert format_progress(PROGRESS) == (
        "1:24  RAM 3.00 GB  CPU 1.25 cores  fed 1,500/2,000  predicted 32"
    )


def test_the_gpu_has_its_place_in_the_line_once_the_target_is_on_it() -> None:
    sample = Sample(0, 0.0, GIB, 0.756, 5 * GIB // 2)
    line = format_progress(Progress(1, 1, 1, 0, sample))
    assert "RAM 1.00 GB  GPU 76 % 2.50 GB  CPU 0.00 cores" in line


@pytest.mark.parametrize("sample", [None, Sample(0)])
def test_what_is_not_measured_yet_is_a_dash(sample: Sample | None) -> None:
    line = format_progress(Progress(0, 1, 0, 0, sample))
    assert line == "0:00  RAM - GB  CPU - cores  fed 0/1  predicted 0"


def test_the_live_line_is_redrawn_in_its_place_and_cleared_at_the_end(stream: StringIO) -> None:
    with RunDisplay(live=True, quiet=False, stream=stream) as display:
        display.progress(PROGRESS)
        display.progress(PROGRESS)
    line = CLEAR + format_progress(PROGRESS)
    assert stream.getvalue() == line + line + CLEAR


def test_the_live_line_never_wraps(stream: StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    RunDisplay(live=True, quiet=False, stream=stream).progress(PROGRESS)
    assert len(stream.getvalue().removeprefix(CLEAR)) < 40


@pytest.mark.parametrize(("live", "quiet"), [(False, False), (False, True), (True, True)])
def test_there_is_no_live_line_where_nobody_sees_it_or_wants_it(
    stream: StringIO, live: bool, quiet: bool
) -> None:
    with RunDisplay(live=live, quiet=quiet, stream=stream) as display:
        display.progress(PROGRESS)
    assert stream.getvalue() == ""


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("quiet", [True, False])
def test_warnings_are_always_printed(stream: StringIO, live: bool, quiet: bool) -> None:
    RunDisplay(live=live, quiet=quiet, stream=stream).warn("It is hot.")
    assert stream.getvalue() == "morocco: warning: It is hot.\n"


def test_the_live_line_is_cleared_before_a_warning(stream: StringIO) -> None:
    display = RunDisplay(live=True, quiet=False, stream=stream)
    display.progress(PROGRESS)
    display.warn("It is hot.")
    display.warn("It is hotter.")
    drawn = CLEAR + format_progress(PROGRESS)
    assert stream.getvalue() == (
        f"{drawn}{CLEAR}morocco: warning: It is hot.\nmorocco: warning: It is hotter.\n"
    )


def test_a_quiet_display_says_nothing_else(stream: StringIO) -> None:
    RunDisplay(live=False, quiet=True, stream=stream).say("Done.")
    assert stream.getvalue() == ""


def test_a_pull_is_announced_once_where_there_is_no_terminal(stream: StringIO) -> None:
    with RunDisplay(live=False, quiet=False, stream=stream) as display:
        for event in PULL:
            display.pull(event)
        display.say("Done.")
    assert stream.getvalue() == "Pulling the image …\nDone.\n"


def test_a_pull_is_silent_where_that_was_asked_for(stream: StringIO) -> None:
    with RunDisplay(live=True, quiet=True, stream=stream) as display:
        for event in PULL:
            display.pull(event)
    assert stream.getvalue() == ""


def test_a_pull_shows_a_bar_for_each_layer_on_a_terminal(
    stream: StringIO, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with RunDisplay(live=True, quiet=False, stream=stream) as display:
        for event in PULL:
            display.pull(event)
        display.progress(PROGRESS)
    shown = capsys.readouterr().err
    assert "a1 Extracting" in shown
    assert "b2 Downloading" in shown
    assert stream.getvalue().endswith(CLEAR + format_progress(PROGRESS) + CLEAR)


def test_a_terminal_that_was_closed_raises_nothing() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    stream = TextIOWrapper(FileIO(writer, "w"), write_through=True)
    with RunDisplay(live=True, quiet=False, stream=stream) as display:
        display.progress(PROGRESS)
        display.warn("It is hot.")
    with suppress(OSError):
        stream.close()


def make_record(peaks: Peaks) -> RunRecord:
    return RunRecord(
        morocco="1.0",
        target=Identity("rubert"),
        arguments={},
        task="parus",
        input_size=2000,
        batch_size=32,
        data=DataFile("val.jsonl", "0"),
        host=HostInfo("CPU", 4, GIB, "6.1"),
        run_time=12.345,
        predictions=Output(1, "0", None, None),
        peaks=peaks,
    )


def test_the_summary_is_one_line_that_ends_with_the_log() -> None:
    record = make_record(Peaks(3 * GIB, 5 * GIB // 2, "process"))
    assert format_summary(record, Path("logs/parus/2000_32_01.jsonl")) == (
        "parus: 2,000 records in 12.35 s (162 a second), start-up included, 1 prediction, "
        "peak RAM 3.00 GB, peak GPU RAM 2.50 GB -> logs/parus/2000_32_01.jsonl"
    )


def test_the_summary_leaves_out_the_gpu_that_was_not_used() -> None:
    summary = format_summary(make_record(Peaks()), sys.stdout)
    assert summary.endswith("1 prediction, peak RAM - GB")


def test_the_summary_says_when_no_log_was_written() -> None:
    assert format_summary(make_record(Peaks()), Path(os.devnull)).endswith("(no log: give -o)")
