"""Ctrl-C, SIGTERM and a closed terminal: they end a run, never the cleaning up after it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from morocco.errors import Interrupted

_NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP"}


class StopSignals:
    """Turns the first signal into an Interrupted error, but only inside `interruptible()`.

    A signal that comes outside waits for the next `interruptible()`; a second one does nothing.
    Works in the main thread only, as signals do.
    """

    def __init__(self) -> None:
        self._may_raise = False
        self._pending: signal.Signals | None = None

    def install(self) -> None:
        """Take over the signals, except those that nohup and the like have switched off."""
        for number in _NAMES:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._handle)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let a signal raise Interrupted inside."""
        self._may_raise = True
        try:
            self._raise_pending()
            yield
        finally:
            self._may_raise = False

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        self._pending = signal.Signals(number)
        if self._may_raise:
            self._raise_pending()

    def _raise_pending(self) -> None:
        if self._pending is not None:
            number, self._pending, self._may_raise = self._pending, None, False
            name = _NAMES[number]
            raise Interrupted(f"Stopped by {name}; the target was removed.", number)
