"""A suite whose lanes hang when it is stopped: another signal ends the wait."""

from __future__ import annotations

import io
import threading
import time

import pytest

from jobs import make_block
from morocco.bench.run import RunObserver
from morocco.errors import EngineError, Interrupted
from morocco.suite import scheduler
from morocco.suite.display import SuiteDisplay
from morocco.suite.plan import Forecast, Job
from morocco.suite.scheduler import LocalPool, Suite
from morocco.targets import patience as patience_module
from morocco.targets.patience import Patience


class HungLane:
    """A lane whose run does not end, or only with another error, when it is stopped."""

    def __init__(self, name: str, error: Exception | None) -> None:
        self.name, self._error = name, error
        self.started, self._stopped = threading.Event(), threading.Event()
        self.end = threading.Event()

    def measure(self, job: Job, observer: RunObserver, *, force: bool) -> None:  # noqa: ARG002
        self.started.set()
        if self._error is None:
            self.end.wait()
            raise EngineError("ended by the test")
        self._stopped.wait()
        raise self._error

    def stop(self, reason: Exception) -> None:  # noqa: ARG002
        self._stopped.set()


STOPPED = Interrupted("Stopped by SIGTERM; nothing of the target is left running.")


def stop_suite(lane: HungLane, monkeypatch: pytest.MonkeyPatch) -> Interrupted:
    """Return what a suite ends with after two signals."""
    patience = Patience()
    monkeypatch.setattr(scheduler, "patience", patience)
    monkeypatch.setattr(patience_module, "_SAME_MOMENT", 0.05)
    display = SuiteDisplay(live=False, quiet=True, stream=io.StringIO())
    pool = LocalPool([lane])
    suite = Suite([make_block()], pool, display, Forecast(), retries=0, force=False)
    threading.Timer(0.2, suite.stop, [STOPPED]).start()
    for moment in (0.2, 0.4):
        threading.Timer(moment, patience.shorten).start()
    with pytest.raises(Interrupted) as raised:
        suite.run()
    return raised.value


def test_a_lane_that_hangs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    lane = HungLane("lane 1", None)
    begun = time.monotonic()
    ended = stop_suite(lane, monkeypatch)
    assert time.monotonic() - begun < 5  # not a minute and a half, as after one signal
    assert "Stopped by SIGTERM. The run of lane 1 did not end in time" in str(ended)
    assert ended.exit_code == 143
    lane.end.set()


def test_a_container_that_may_be_left_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    error = Interrupted("Stopped by SIGTERM. The engine does not answer: docker rm -f x")
    assert stop_suite(HungLane("lane 1", error), monkeypatch) is error


def test_a_lane_that_ends_well_leaves_nothing_to_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    assert stop_suite(HungLane("lane 1", STOPPED), monkeypatch) is STOPPED
