"""Ctrl-C, SIGTERM and a closed terminal: they end a run, never the cleaning up after it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

from morocco.errors import Interrupted

_NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP"}


def forward_signals(on_stop: Callable[[Interrupted], None]) -> None:
    """Hand the first signal to `on_stop` and ignore the others, in the main thread.

    Nothing is raised where a signal happens to come: whoever runs things ends them in good order.
    Signals that nohup and the like have switched off stay so.
    """

    def handle(number: int, _frame: FrameType | None) -> None:
        for taken in numbers:
            signal.signal(taken, signal.SIG_IGN)
        name = _NAMES[signal.Signals(number)]
        on_stop(Interrupted(f"Stopped by {name}; the target was removed.", number))

    numbers = [number for number in _NAMES if signal.getsignal(number) is not signal.SIG_IGN]
    for number in numbers:
        signal.signal(number, handle)
