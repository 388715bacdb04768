"""How long is waited for a thread that hangs, before and after signals to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from morocco.targets import patience as patience_module
from morocco.targets.patience import Limits, Patience

LIMITS = Limits(usual=9.0, stopped=0.6, hurried=0.2)


@pytest.fixture
def hanging() -> Iterator[threading.Thread]:
    """A thread that does not end by itself."""
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    yield thread
    end.set()
    thread.join()


@pytest.fixture
def patience() -> Patience:
    return Patience()


def measure_wait(patience: Patience, thread: threading.Thread, limits: Limits = LIMITS) -> float:
    begun = time.monotonic()
    assert not patience.wait_for(thread, limits)
    return time.monotonic() - begun


def test_a_thread_that_ends_is_waited_for_no_longer(patience: Patience) -> None:
    thread = threading.Thread(target=time.sleep, args=(0.1,))
    thread.start()
    assert patience.wait_for(thread, LIMITS)


def test_without_a_signal_the_usual_limit_holds(
    patience: Patience, hanging: threading.Thread
) -> None:
    assert 0.1 <= measure_wait(patience, hanging, Limits(usual=0.1)) < 3


def test_a_signal_shortens_a_wait_and_those_after_it(
    patience: Patience, hanging: threading.Thread
) -> None:
    threading.Timer(0.2, patience.shorten).start()
    assert 0.7 <= measure_wait(patience, hanging) < 5
    assert 0.5 <= measure_wait(patience, hanging) < 5


def test_after_a_second_signal_all_waits_end_together(
    patience: Patience, hanging: threading.Thread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience_module, "_SAME_MOMENT", 0.01)
    patience.shorten()
    threading.Timer(0.1, patience.shorten).start()
    limits = Limits(usual=60, stopped=30, hurried=0.2)
    assert 0.25 <= measure_wait(patience, hanging, limits) < 3
    assert measure_wait(patience, hanging, limits) < 3


def test_signals_that_come_together_are_one(patience: Patience, hanging: threading.Thread) -> None:
    for _ in range(3):
        patience.shorten()
    assert measure_wait(patience, hanging) >= 0.5
    patience.restore()
    assert measure_wait(patience, hanging, Limits(usual=0.8, stopped=0.1)) >= 0.7


def test_a_long_wait_is_told_once_with_what_is_left(
    patience: Patience, hanging: threading.Thread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience_module, "_SILENCE", 0.1)
    told: list[str] = []
    patience.wait_for(hanging, Limits(usual=0.3), told.append)
    patience.shorten()
    patience.wait_for(hanging, Limits(stopped=1.3), told.append)
    assert told == [
        " for up to 0 s; a signal (Ctrl-C) ends this sooner",
        " for up to 1 s; another signal (Ctrl-C) ends this sooner",
    ]
