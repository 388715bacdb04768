"""Ctrl-C, SIGTERM and a closed terminal: they end a run, never the cleaning up after it."""

from __future__ import annotations

import atexit
import signal
from collections.abc import Callable
from types import FrameType

from morocco.errors import Interrupted

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
