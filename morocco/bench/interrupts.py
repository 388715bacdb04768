"""The steps of a run, one after another, each ended at once by a signal or a failure elsewhere."""

from __future__ import annotations

import atexit
import queue
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future
from types import FrameType
from typing import Any, TypeVar

from morocco.errors import Interrupted
from morocco.targets.patience import Limits, OnWait, patience
from morocco.util.units import Seconds

Events = queue.SimpleQueue[Any]
"""What ends a step: an exception, from any thread or signal handler, or the step's own result."""

_TICK: Seconds = 0.5
_STEP_END = Limits(usual=20)
"""For a step that was broken off to end, so that it starts nothing after the clean-up."""
_STOP_SIGNALS = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP"}
_Result = TypeVar("_Result")


class StepRunner:
    """Runs each step in a thread of its own, so that no signal leaves one half-done."""

    def __init__(
        self,
        events: Events,
        on_tick: Callable[[], None],
        on_break: Callable[[], None],
        on_wait: OnWait | None = None,
    ) -> None:
        """`on_tick` is called about twice a second; `on_break` makes the current step give up.

        `on_wait` is told if a step that was broken off takes long to end.
        """
        self._events, self._on_tick, self._on_break = events, on_tick, on_break
        self._on_wait = on_wait

    def call(self, function: Callable[[], _Result]) -> _Result:
        """Return what `function` returns; raise what it raises, or an exception from `events`."""

        def settle() -> None:
            try:
                result.set_result(function())
            except BaseException as error:
                result.set_exception(error)
            self._events.put(result)

        result: Future[_Result] = Future()
        step = threading.Thread(target=settle, name="step", daemon=True)
        step.start()
        try:
            self._wait_for(result)
        except BaseException:
            self._on_break()
            patience.wait_for(step, _STEP_END, self._tell)
            raise
        return result.result()

    def _tell(self, how_long: str) -> None:
        if self._on_wait is not None:
            self._on_wait(f"Waiting for what was under way to end{how_long}.")

    def _wait_for(self, result: Future[Any]) -> None:
        while True:
            try:
                event = self._events.get(timeout=_TICK)
            except queue.Empty:
                self._on_tick()
                continue
            if event is result:
                return
            if isinstance(event, Exception):
                raise event


def forward_signals(on_stop: Callable[[Interrupted], None]) -> None:
    """Pass the first stop signal to `on_stop`; each shortens all waits; for the main thread.

    Nothing is raised where the signal arrives, so that the run can end in an orderly way. Signals
    that were ignored before, as under nohup, stay ignored.
    """
    received = []
    patience.restore()

    def handle(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        patience.shorten()
        if len(received) == 1:
            name = _STOP_SIGNALS[signal.Signals(number)]
            message = f"Stopped by {name}; nothing of the target is left running."
            on_stop(Interrupted(message, number))

    def ignore() -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)

    numbers = [number for number in _STOP_SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    for number in numbers:
        signal.signal(number, handle)
    atexit.register(ignore)  # Python drops its handlers some time before it exits
