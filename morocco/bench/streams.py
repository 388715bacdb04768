"""Input and output of a target: records fed, predictions counted, hashed and kept, stderr."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

from morocco.bench.contract import Answers, Contract
from morocco.errors import OutputError
from morocco.targets.target import Target
from morocco.tasks import Records, iterate_chunks
from morocco.util.units import Bytes, Seconds

_TAIL_SIZE: Bytes = 64 * 1024
_DRAIN_TIMEOUT: Seconds = 30
"""After the end of the target, without a byte from it."""
_FEEDER_TIMEOUT: Seconds = 1
"""For a feeder that nobody reads from any more."""


class Predictions:
    """The stream of predictions; memory does not grow with it."""

    def __init__(self, file: BinaryIO | None = None, contract: Contract | None = None) -> None:
        """`file`, if any, gets a copy of every byte; `contract`, if any, checks every line."""
        self._file, self._contract = file, contract
        self._digest = hashlib.sha256()
        self._at_line_start = True
        self._complete = 0
        self.first: Seconds | None = None
        """When the first bytes came (monotonic clock)."""
        self.last: Seconds | None = None
        """When the last bytes came."""

    def add(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        if not data:
            return
        self.last = time.monotonic()
        if self.first is None:
            self.first = self.last
        self._digest.update(data)
        self._complete += self._count_lines(data)
        self._at_line_start = data.endswith(b"\n")
        if self._file is not None:
            self._file.write(data)
            self._file.flush()  # so that a full disk shows at once

    @property
    def count(self) -> int:
        """The number of lines that are not empty; the last one needs no newline."""
        return self._complete + (not self._at_line_start)

    def _count_lines(self, data: bytes) -> int:
        if self._contract is None or self._contract.is_broken:
            return _count_lines(data, self._at_line_start)
        return self._contract.add(data)  # which counts them anyway

    def judge(self) -> Answers | None:
        """Return what the whole stream is worth; None if nothing checks it."""
        return None if self._contract is None else self._contract.finish()

    @property
    def sha256(self) -> str:
        """The digest of all bytes so far."""
        return self._digest.hexdigest()


def _count_lines(data: bytes, at_line_start: bool) -> int:
    """Return how many non-empty lines end in `data`."""
    if b"\n\n" not in data and not (at_line_start and data.startswith(b"\n")):
        return data.count(b"\n")
    *lines, _ = data.split(b"\n")
    carried = 0 if at_line_start or lines[0] else 1  # the end of a line that started earlier
    return sum(1 for line in lines if line) + carried


class Tail:
    """The last 64 KB of a stream."""

    def __init__(self) -> None:
        self._data = b""

    def add(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self._data = (self._data + data)[-_TAIL_SIZE:]

    @property
    def text(self) -> str:
        """What is kept, decoded."""
        return self._data.decode("utf-8", "replace")


class Streams:
    """The input and output of one run, each handled by a thread of its own."""

    def __init__(
        self,
        target: Target,
        records: Records,
        copy: BinaryIO | None,
        on_failure: Callable[[Exception], None],
        *,
        raw_output: bool = False,
    ) -> None:
        """`copy`, if any, gets the predictions; `on_failure` is called with what ends the run.

        Raw output is not checked.
        """
        self._target, self._records, self._on_failure = target, records, on_failure
        self._feeder = threading.Thread(target=self._feed, name="feeder", daemon=True)
        self._drainer = threading.Thread(target=self._drain, name="drainer", daemon=True)
        self._last_byte: Seconds = 0.0
        self.predictions = Predictions(copy, None if raw_output else Contract(records))
        self.answers: Answers | None = None
        """Known at the end; None for raw output."""
        self.stderr = Tail()
        self.fed_at: Seconds | None = None
        """When the first of them were handed over (monotonic clock)."""
        self.fed = 0
        """Records handed over."""
        self.unread: Bytes = 0
        """Input that the target left unread, as far as is known."""

    def start(self) -> None:
        """Start to drain and to feed."""
        self._drainer.start()
        self._feeder.start()

    def finish(self) -> None:
        """Read what an ended target still has to print, and end the feeder."""
        self._last_byte = time.monotonic()
        while self._drainer.is_alive() and time.monotonic() < self._last_byte + _DRAIN_TIMEOUT:
            self._drainer.join(timeout=0.1)
        self._feeder.join(timeout=0.1)
        self.unread = self._target.unread_input()
        self._feeder.join(_FEEDER_TIMEOUT)
        self.answers = self.predictions.judge()

    def _feed(self) -> None:
        try:
            for chunk, count in iterate_chunks(self._records):
                self.fed_at = self.fed_at or time.monotonic()
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
        # OSError: the connection broke, which the wait for the end reports; ValueError: the run
        # was broken off, and what is read or written here is closed by now.
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
            self._on_failure(OutputError(f"Cannot write the predictions: {error.strerror}."))
            return False
        return True
