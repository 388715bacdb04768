"""One step of a run after the other, each ended at once by whatever else ends the run."""

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
from morocco.util.units import Seconds

Events = queue.SimpleQueue[Any]
"""What ends a step: an exception, from whatever thread or signal, or the step's own outcome."""

_TICK: Seconds = 0.5
_PATIENCE: Seconds = 20
"""For a step that was broken off to come to its end, so that nothing begins after the removal."""
_Result = TypeVar("_Result")


class StepRunner:
    """Runs steps in threads of their own, so that no signal leaves one half-way."""

    def __init__(
        self, events: Events, on_tick: Callable[[], None], on_break: Callable[[], None]
    ) -> None:
        """`on_tick` is called about twice a second; `on_break` makes the step at work give up."""
        self._events = events
        self._on_tick = on_tick
        self._on_break = on_break

    def call(self, function: Callable[[], _Result]) -> _Result:
        """Return what `function` gives; raises what it raises, or any other exception that came."""

        def settle() -> None:
            try:
                outcome.set_result(function())
            except BaseException as error:
                outcome.set_exception(error)
            self._events.put(outcome)

        outcome: Future[_Result] = Future()
        step = threading.Thread(target=settle, name="step", daemon=True)
        step.start()
        try:
            self._wait_for(outcome)
        except BaseException:
            self._on_break()
            step.join(_PATIENCE)
            raise
        return outcome.result()

    def _wait_for(self, outcome: Future[Any]) -> None:
        while True:
            try:
                event = self._events.get(timeout=_TICK)
            except queue.Empty:
                self._on_tick()
                continue
            if event is outcome:
                return
            if isinstance(event, Exception):
                raise event


_NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP"}


def forward_signals(on_stop: Callable[[Interrupted], None]) -> None:
    """Hand the first signal to `on_stop`; the others do nothing. For the main thread.

    Nothing is raised where a signal happens to come: whoever runs things ends them in good order.
    Signals that nohup and the like have switched off stay so.
    """

    came = []

    def handle(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        if len(came) == 1:
            name = _NAMES[signal.Signals(number)]
            on_stop(
                Interrupted(f"Stopped by {name}; nothing of the target is left running.", number)
            )

    def ignore() -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)

    numbers = [number for number in _NAMES if signal.getsignal(number) is not signal.SIG_IGN]
    for number in numbers:
        signal.signal(number, handle)
    atexit.register(ignore)  # Python gives up its handlers some time before it ends
