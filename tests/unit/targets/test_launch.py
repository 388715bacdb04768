"""The start and the end of a container on an engine that is slow, apart or confused."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator

import psutil
import pytest

from morocco.errors import EngineError
from morocco.targets.container import parse_engine_time
from morocco.targets.launch import ContainerState, Launch


class Engine:
    """An engine whose container is a process of this machine."""

    def __init__(self) -> None:
        self.answer_late = self.look_late = 0.0
        self.pid: int | None = None
        """Told instead of that of the process."""
        self.started = 0.0
        self.skew = 0.0
        """What the engine's clock is ahead of ours."""
        self._process: subprocess.Popen[bytes] | None = None
        self._ended: ContainerState | None = None

    def make(self) -> None:
        """Make the process before the start, as Podman does."""
        self._process = subprocess.Popen(["sleep", "30"])

    def start(self) -> None:
        self._process = self._process or subprocess.Popen(["sleep", "30"])
        self.started = time.monotonic()
        time.sleep(self.answer_late)

    def inspect(self) -> ContainerState:
        time.sleep(self.look_late)
        process = self._process
        if self._ended is not None:
            return self._ended
        if process is None:
            return ContainerState("created", 0, None, None, False)
        pid = process.pid if self.pid is None else self.pid
        if not self.started:
            return ContainerState("created", pid, None, None, False)
        return ContainerState("running", pid, self.started + self.skew, None, False)

    def end(self) -> ContainerState:
        """End the process and return the state from then on."""
        assert self._process
        self._process.kill()
        self._process.wait()
        moment = time.monotonic() + self.skew
        self._ended = ContainerState("exited", 0, self.started + self.skew, moment, False)
        return self._ended


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    if engine.started:
        engine.end()


def launch(engine: Engine) -> Launch:
    return Launch("4711" * 16, engine.start, engine.inspect)


def test_a_start_is_known_before_it_is_answered(engine: Engine) -> None:
    engine.answer_late = 1
    asked = time.monotonic()
    start = launch(engine).begin()
    assert time.monotonic() - asked < 0.5
    assert start.moment == engine.started
    assert start.pid is not None


def test_a_start_that_is_answered_waits_for_nothing(engine: Engine) -> None:
    engine.look_late = 0.5
    launched = launch(engine)
    start = launched.begin()
    assert start.pid is None
    assert start.moment - engine.started < 0.25
    assert launched.find_pid() is not None


def test_the_engines_time_is_not_taken_where_its_clock_is_wrong(engine: Engine) -> None:
    engine.skew = -3600
    asked = time.monotonic()
    launched = launch(engine)
    assert launched.begin().moment > asked
    assert launched.lateness == 0


def test_a_start_that_is_known_too_late_is_refused(engine: Engine) -> None:
    engine.answer_late = engine.look_late = 0.5
    with pytest.raises(EngineError, match="late"):
        launch(engine).begin()


def test_a_start_that_fails_raises_what_the_engine_answers(engine: Engine) -> None:
    def fail() -> None:
        raise EngineError("no such command")

    with pytest.raises(EngineError, match="no such command"):
        Launch("4711", fail, engine.inspect).begin()


def test_the_end_is_when_the_kernel_says(engine: Engine) -> None:
    launched = launch(engine)
    launched.begin()
    state = engine.end()
    assert state.ended is not None
    assert abs(launched.find_end(state) - state.ended) < 0.1


def test_the_end_is_when_the_engine_says_if_it_was_not_seen(engine: Engine) -> None:
    engine.look_late = 0.3
    launched = launch(engine)
    launched.begin()
    state = engine.end()
    assert launched.find_end(state) == state.ended


def test_a_run_fails_if_nobody_knows_when_it_ended(engine: Engine) -> None:
    engine.look_late = 0.3
    launched = launch(engine)
    launched.begin()
    engine.skew = -3600
    state = engine.end()
    with pytest.raises(EngineError, match="run time is unknown"):
        launched.find_end(state)


def test_another_process_of_the_same_id_is_not_taken_for_the_container(engine: Engine) -> None:
    engine.pid = os.getppid()
    launched = launch(engine)
    assert launched.begin().pid is None
    with pytest.raises(EngineError, match="--pid=host"):
        launched.find_pid()


def test_a_process_that_was_made_before_the_start_is_known_at_once(engine: Engine) -> None:
    prepared = time.monotonic()
    engine.make()
    launched = Launch("4711" * 16, engine.start, engine.inspect, prepared)
    launched.look(engine.inspect().pid)
    engine.look_late = 0.5
    start = launched.begin()
    assert start.pid is not None
    assert start.moment - engine.started < 0.25
    state = engine.end()
    assert state.ended is not None
    assert abs(launched.find_end(state) - state.ended) < 0.1


def test_a_process_that_waits_long_for_its_start_is_the_container(engine: Engine) -> None:
    engine.pid = os.getpid()  # older than the start, and without a control group of its own
    prepared = time.monotonic() - (time.time() - psutil.Process().create_time())
    launched = Launch("4711" * 16, engine.start, engine.inspect, prepared)
    assert launched.begin().pid == os.getpid()


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-05-01T10:00:00.123456789Z", 1714557600.123456789),
        ("2024-05-01T12:00:00.5+02:00", 1714557600.5),
        ("2024-05-01T10:00:00Z", 1714557600),
        ("0001-01-01T00:00:00Z", None),
        ("", None),
    ],
)
def test_times_of_the_engine_are_read_in_any_zone(text: str, moment: float | None) -> None:
    assert parse_engine_time(text) == moment
