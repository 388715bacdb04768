"""How long is waited for what may never answer, such as an engine: less with each stop signal."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from morocco.util.units import Seconds

_POLL: Seconds = 0.05
_SILENCE: Seconds = 2
"""A wait that takes longer is told."""
_SAME_MOMENT: Seconds = 0.5
"""Signals this close together, as when a terminal is closed, are one wish to stop."""

OnWait = Callable[[str], None]


@dataclass(frozen=True)
class Limits:
    """How long to wait."""

    usual: Seconds = inf
    stopped: Seconds = inf
    """After a stop signal."""
    hurried: Seconds = 1.5
    """After a second one, counted from it for all waits together."""


class Patience:
    """What the stop signals so far leave of every wait of this process."""

    def __init__(self) -> None:
        self._signals: list[Seconds] = []

    def restore(self) -> None:
        """Forget all signals."""
        self._signals = []

    def shorten(self) -> None:
        """Take note of a stop signal; may be called by its handler."""
        now = time.monotonic()
        if not self._signals or now - self._signals[0] > _SAME_MOMENT:
            self._signals.append(now)

    def wait_for(
        self, thread: threading.Thread, limits: Limits, tell: OnWait | None = None
    ) -> bool:
        """Wait for a thread to end and return whether it has.

        A wait that takes long is told, with the seconds it may still take.
        """
        begun = time.monotonic()
        told = tell is None
        thread.join(_POLL)  # even if no time is left: a request has to be sent
        while thread.is_alive() and (left := self._compute_left(begun, limits)) > 0:
            thread.join(min(_POLL, left))
            if not told and time.monotonic() - begun > _SILENCE and thread.is_alive():
                told = True
                assert tell
                tell(self._describe(left))
        return not thread.is_alive()

    def _compute_left(self, begun: Seconds, limits: Limits) -> Seconds:
        ends = [begun + limits.usual]
        if self._signals:
            ends.append(max(begun, self._signals[0]) + limits.stopped)
        if len(self._signals) > 1:
            ends.append(self._signals[1] + limits.hurried)
        return min(ends) - time.monotonic()

    def _describe(self, left: Seconds) -> str:
        most = "" if left == inf else f" for up to {left:.0f} s"
        return f"{most}; {'another' if self._signals else 'a'} signal (Ctrl-C) ends this sooner"


patience = Patience()
"""That of this process: a signal is meant for all its waits."""
