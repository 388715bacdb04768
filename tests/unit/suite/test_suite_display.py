"""What a person sees while a suite goes: on a terminal, and where there is none."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from io import StringIO

import pytest

from jobs import RUN, SINGLE, make_job
from morocco.bench.run import Progress
from morocco.errors import MoroccoError, TargetError, TimedOut
from morocco.logs.samples import Sample
from morocco.suite.display import JobObserver, SuiteDisplay

GIB = 2**30
JOB, WARM_UP = make_job(RUN), make_job(SINGLE, index=None)
OTHER = make_job(SINGLE, task="rcb")
PROGRESS = Progress(83.9, 2000, 1500, 32, Sample(0, 1.25, 3 * GIB))
ERROR = TargetError("The target ended with exit code 3.\nIts last lines on stderr:\n  out of luck")


class Terminal(StringIO):
    """A terminal that keeps all that was ever written to it."""

    def isatty(self) -> bool:
        return True

    def forget(self) -> None:
        self.seek(0)
        self.truncate()

    @property
    def shown(self) -> list[str]:
        """What was written, as lines without colours and moves of the cursor."""
        plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.getvalue())
        return [line for line in re.split(r"[\r\n]+", plain) if line]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return Terminal()


@pytest.fixture
def file() -> StringIO:
    return StringIO()


def start(stream: StringIO, *, total: int = 8, done: int = 2, quiet: bool = False) -> SuiteDisplay:
    display = SuiteDisplay(live=stream.isatty(), quiet=quiet, stream=stream)
    display.start(total, done)
    return display


def drawn(terminal: Terminal, display: SuiteDisplay) -> list[str]:
    """Return what is drawn anew."""
    terminal.forget()
    display.refresh()
    return terminal.shown


# On a terminal


def test_the_bar_shows_how_many_runs_are_done(terminal: Terminal) -> None:
    display = start(terminal)
    (overall,) = drawn(terminal, display)
    assert re.search(r"━+ 2/8 runs  0:0\d$", overall)
    display.stop()


def test_the_bar_grows_with_what_is_done_and_skipped(terminal: Terminal) -> None:
    display = start(terminal, total=4, done=0)
    display.finish("a", JOB, 1, None)
    display.fail("a", OTHER, ERROR, "Skipping its 2 runs.", skipped=2)
    (overall,) = drawn(terminal, display)
    assert "1/4 runs, 2 skipped" in overall
    display.stop()


def test_a_warm_up_is_no_run_that_is_done(terminal: Terminal) -> None:
    display = start(terminal)
    display.finish("a", WARM_UP, 1, None)
    assert display.done == 2
    display.finish("a", JOB, 1, None)
    assert display.done == 3
    display.stop()


def test_the_time_left_is_shown_once_it_is_known(terminal: Terminal) -> None:
    display = start(terminal)
    display.finish("a", JOB, 1, 3723.4)
    assert drawn(terminal, display)[0].endswith(", about 1:02:03 left")
    display.stop()


def test_each_current_run_has_a_line(terminal: Terminal) -> None:
    display = start(terminal)
    display.begin("a", JOB)
    display.begin("b", OTHER)
    JobObserver(display, "a", JOB).progress(PROGRESS)
    _, first, second = drawn(terminal, display)
    assert first.startswith("parus/20_4_01  1:24  RAM 3.00 GB  CPU 1.25 cores  fed 1,500/2,000")
    assert second == "rcb/1_1_01  starting"
    display.finish("a", JOB, 1, None)
    assert drawn(terminal, display)[1:] == ["rcb/1_1_01  starting"]
    display.stop()


def test_a_line_never_wraps(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    display = start(terminal)
    display.begin("a", JOB)
    display.progress("a", PROGRESS)
    _, line = drawn(terminal, display)
    assert len(line) <= 40
    assert line.endswith("…")
    display.stop()


def test_progress_after_the_end_of_a_run_is_not_shown(terminal: Terminal) -> None:
    display = start(terminal)
    display.begin("a", JOB)
    display.drop("a")
    display.progress("a", PROGRESS)
    assert len(drawn(terminal, display)) == 1
    display.stop()


def test_runs_that_are_done_have_no_lines_on_a_terminal(terminal: Terminal) -> None:
    display = start(terminal)
    display.finish("a", JOB, 1, None)
    display.stop()
    assert not any("20_4_01" in line for line in terminal.shown)


def test_a_failure_stays_above_the_bar(terminal: Terminal) -> None:
    display = start(terminal)
    display.begin("a", JOB)
    display.fail("a", JOB, ERROR, "Skipping it.")
    lines = terminal.shown
    failed = lines.index("morocco: parus/20_4_01 failed: The target ended with exit code 3.")
    assert lines[failed + 1 : failed + 4] == [
        *("Its last lines on stderr:", "  out of luck", "  Skipping it."),
    ]
    assert "2/8 runs" in lines[failed + 4]
    display.stop()


def test_what_a_target_logged_is_no_markup(terminal: Terminal) -> None:
    display = start(terminal)
    display.fail("a", JOB, MoroccoError("[bold]no[/] [/nonsense]"), "Skipping it.")
    assert "morocco: parus/20_4_01 failed: [bold]no[/] [/nonsense]" in terminal.shown
    display.stop()


def test_in_the_end_the_screen_is_left_clean(terminal: Terminal) -> None:
    display = start(terminal)
    display.stop()
    _, _, end = terminal.getvalue().rpartition("runs")
    assert {"\x1b[?25h", "\x1b[2K"} <= set(re.findall(r"\x1b\[[0-9;?]*[a-zA-Z]", end))
    terminal.forget()
    display.refresh()
    assert terminal.getvalue() == ""
    display.say("Done.")
    assert terminal.shown == ["Done."]


def test_a_terminal_that_cannot_redraw_gets_plain_lines(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    display = start(terminal)
    display.finish("a", JOB, 1.25, None)
    display.stop()
    assert terminal.getvalue() == "[3/8] parus/20_4_01: 1.2 s\n"


def test_a_quiet_terminal_shows_failures_and_warnings_alone(terminal: Terminal) -> None:
    display = start(terminal, quiet=True)
    display.begin("a", JOB)
    display.refresh()
    display.say("Done.")
    display.warn(JOB, "It is hot.")
    display.finish("a", JOB, 1, 60)
    display.fail("a", JOB, MoroccoError("No."), "Skipping it.")
    display.stop()
    assert terminal.getvalue() == (
        "morocco: warning: parus/20_4_01: It is hot.\n"
        "morocco: parus/20_4_01 failed: No.\n  Skipping it.\n"
    )


def test_a_terminal_that_was_closed_raises_nothing(terminal: Terminal) -> None:  # noqa: ARG001
    person, program = os.openpty()
    stream = open(program, "w")  # noqa: PTH123, SIM115 (it cannot be closed without an error)
    display = SuiteDisplay(live=True, quiet=False, stream=stream)
    display.start(8, 2)
    os.close(person)
    display.begin("a", JOB)
    display.refresh()
    display.warn(JOB, "It is hot.")
    display.finish("a", JOB, 1, None)
    display.stop()
    display.start(8, 2)
    display.stop()
    with suppress(OSError):
        stream.close()


# Elsewhere


def test_each_run_that_is_done_is_a_plain_line(file: StringIO) -> None:
    display = start(file)
    display.begin("a", WARM_UP)
    display.refresh()
    display.finish("a", WARM_UP, 1.04, None)
    display.begin("a", JOB)
    JobObserver(display, "a", JOB).progress(PROGRESS)
    display.finish("a", JOB, 83.96, 250)
    display.stop()
    assert file.getvalue() == (
        "[2/8] parus/warm-up, not kept: 1.0 s\n[3/8] parus/20_4_01: 84.0 s, about 4:10 left\n"
    )


def test_a_run_that_is_tried_again_is_reported_in_one_line(file: StringIO) -> None:
    display = start(file)
    display.begin("a", JOB)
    display.retry("a", JOB, ERROR)
    assert file.getvalue() == (
        "morocco: parus/20_4_01 failed: The target ended with exit code 3. Trying again.\n"
    )


def test_a_run_that_was_given_up_is_reported_with_its_last_output(file: StringIO) -> None:
    display = start(file)
    display.fail("a", JOB, TimedOut("It took too long.\n  log"), "Skipping it.")
    assert file.getvalue() == (
        "morocco: parus/20_4_01 failed: It took too long.\n  log\n  Skipping it.\n"
    )


@pytest.mark.parametrize("quiet", [True, False])
def test_a_warning_is_said_once_with_the_first_run_it_is_about(quiet: bool, file: StringIO) -> None:
    display = start(file, quiet=quiet)
    for job in (JOB, OTHER):
        JobObserver(display, "a", job).warn("It is hot.")
    JobObserver(display, "a", OTHER).warn("It is cold.")
    assert file.getvalue() == (
        "morocco: warning: parus/20_4_01: It is hot.\nmorocco: warning: rcb/1_1_01: It is cold.\n"
    )


def test_a_quiet_display_says_nothing_of_what_is_done(file: StringIO) -> None:
    display = start(file, quiet=True)
    display.finish("a", JOB, 1, None)
    display.say("Done.")
    assert file.getvalue() == ""


def test_without_a_stderr_there_is_nothing_to_write_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    display = SuiteDisplay(live=False, quiet=False)
    display.start(8, 2)
    display.finish("a", JOB, 1, None)
    display.warn(JOB, "It is hot.")
    display.stop()
