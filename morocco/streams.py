"""The threads that feed a target and drain it, at the same time and without holding either."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

from morocco.errors import OutputError
from morocco.predictions import Predictions, Tail
from morocco.target import Target
from morocco.tasks import Records, iterate_chunks
from morocco.units import Seconds

_PATIENCE: Seconds = 30
"""After the end of the target, without a byte from it."""


class Streams:
    """Input and output of one run; `on_failure` hears at once of what ends the run."""

    def __init__(
        self,
        target: Target,
        records: Records,
        copy: BinaryIO | None,
        on_failure: Callable[[Exception], None],
    ) -> None:
        """`copy`, where given, gets the predictions."""
        self._target = target
        self._records = records
        self._on_failure = on_failure
        self._feeder = threading.Thread(target=self._feed, name="feeder", daemon=True)
        self._drainer = threading.Thread(target=self._drain, name="drainer", daemon=True)
        self._last_byte: Seconds = 0.0
        self.predictions = Predictions(copy)
        self.stderr = Tail()
        self.fed = 0
        """Records that were handed over."""
        self.unread = 0
        """Bytes of them that the target left lying, as far as this can be told."""

    def start(self) -> None:
        """Begin to drain and to feed."""
        self._drainer.start()
        self._feeder.start()

    def finish(self) -> None:
        """Take in what an ended target has still to say; ends a feeder nobody reads from."""
        self._last_byte = time.monotonic()
        while self._drainer.is_alive() and time.monotonic() < self._last_byte + _PATIENCE:
            self._drainer.join(timeout=0.1)
        self._feeder.join(timeout=0.1)
        self.unread = self._target.unread_input()
        self._feeder.join(timeout=1)

    def _feed(self) -> None:
        try:
            for chunk, count in iterate_chunks(self._records):
                self._target.write(chunk)
                self.fed += count
        except OSError:
            pass  # nobody reads any more: judged at the end, from `fed`
        except Exception as error:
            self._on_failure(error)
        finally:
            with suppress(OSError):
                self._target.close_input()

    def _drain(self) -> None:
        # OSError: the connection broke, whoever waits for the end knows why; ValueError: the run
        # was broken off and what is read or written here is closed by now.
        with suppress(OSError, ValueError):
            output = self._target.output()
            for channel, data in output:
                self._last_byte = time.monotonic()
                if channel == "stderr":
                    self.stderr.add(data)
                elif not self._keep(data):
                    break
            for _ in output:  # the engine cannot end a container whose output nobody reads
                pass

    def _keep(self, data: bytes) -> bool:
        try:
            self.predictions.add(data)
        except OSError as error:
            message = f"Cannot write the predictions: {error.strerror}."
            self._on_failure(OutputError(message))
            return False
        return True
