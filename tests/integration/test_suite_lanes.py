"""A suite on made-up lanes: some fail, some get lost, some join later."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from io import StringIO

import pytest

from jobs import labels, make_block
from morocco.bench.run import RunObserver
from morocco.errors import (
    EngineError,
    Interrupted,
    MoroccoError,
    OutputError,
    TargetError,
    TimedOut,
)
from morocco.suite.display import SuiteDisplay
from morocco.suite.lanes import Lane, LaneLost
from morocco.suite.plan import Block, Forecast, Job
from morocco.suite.scheduler import FailedJob, LocalPool, Suite, render_failures
from runs import TIMEOUT, until

PARUS, RCB = make_block("parus", repeats=1), make_block("rcb", repeats=1)
FAILED = TargetError("The target ended with exit code 3.", 3)
STOPPED = Interrupted("Stopped by Ctrl-C.", 2)


class PlayedLane:
    """A lane on which a run is whatever `act` does."""

    def __init__(self, name: str, act: Callable[[PlayedLane, Job], None] = lambda *_: None) -> None:
        self.name = name
        self._act = act
        self.tried: list[Job] = []
        self.reason: Exception | None = None
        self.stopped = threading.Event()

    def measure(self, job: Job, observer: RunObserver, *, force: bool) -> None:  # noqa: ARG002
        self.tried.append(job)
        self._act(self, job)

    def stop(self, reason: Exception) -> None:
        self.reason = reason
        self.stopped.set()


class PlayedPool(LocalPool):
    """Lanes of which some join later, with an engine that may be gone."""

    def __init__(self, *lanes: Lane, later: Sequence[Lane] = (), gone: bool = False) -> None:
        super().__init__(lanes)
        self._later, self._gone = list(later), gone

    def join(self) -> list[Lane]:
        return super().join() or [self._later.pop() for _ in self._later[:1]]

    def wait_for_more(self, left: Sequence[Job]) -> bool:
        return bool(left and self._later)

    def check(self, lane: Lane) -> None:  # noqa: ARG002
        if self._gone:
            raise EngineError("The engine is gone.")


class Played:
    """A suite on such lanes, and all that it printed."""

    def __init__(self, pool: PlayedPool, *blocks: Block, retries: int = 1) -> None:
        self._output = StringIO()
        display = SuiteDisplay(live=False, quiet=False, stream=self._output)
        forecast = Forecast()
        self.suite = Suite(list(blocks), pool, display, forecast, retries=retries, force=False)

    def run(self) -> list[FailedJob]:
        return self.suite.run()

    @property
    def output(self) -> str:
        return self._output.getvalue()


def fail_at(*names: str, error: MoroccoError = FAILED) -> Callable[[PlayedLane, Job], None]:
    def act(_: PlayedLane, job: Job) -> None:
        if job.label in names:
            raise error

    return act


def wait_for_stop(lane: PlayedLane, _: Job) -> None:
    assert lane.stopped.wait(TIMEOUT)
    assert lane.reason
    raise lane.reason


def test_one_lane_does_everything() -> None:
    lane = PlayedLane("a")
    assert Played(PlayedPool(lane), PARUS, RCB).run() == []
    assert labels(lane.tried) == [
        *("parus/warm-up", "parus/1_1_01", "parus/20_4_01"),
        *("rcb/warm-up", "rcb/1_1_01", "rcb/20_4_01"),
    ]


def test_a_run_that_fails_is_tried_again_and_given_up() -> None:
    lane = PlayedLane("a", fail_at("parus/1_1_01"))
    played = Played(PlayedPool(lane), PARUS, retries=2)
    assert played.run() == [FailedJob(PARUS.jobs[0], FAILED)]
    assert labels(lane.tried).count("parus/1_1_01") == 3
    assert labels(lane.tried)[-1] == "parus/20_4_01"
    assert played.output.count("Trying again.") == 2


def test_a_warm_up_that_fails_takes_its_block_with_it() -> None:
    lane = PlayedLane("a", fail_at("parus/warm-up"))
    assert Played(PlayedPool(lane), PARUS, RCB).run() == [FailedJob(PARUS.warm_up, FAILED, 2)]
    assert labels(lane.tried)[1:3] == ["parus/warm-up", "rcb/warm-up"]


def test_a_helper_that_cannot_warm_up_spoils_nothing() -> None:
    """While it tries, the lane that it was to help has done everything."""
    helping, done = threading.Event(), threading.Event()

    def work(_: PlayedLane, job: Job) -> None:
        if job.label == "parus/1_1_01":
            assert helping.wait(TIMEOUT)
        if job.label == "parus/20_4_01":
            done.set()

    def help_in_vain(_: PlayedLane, __: Job) -> None:
        helping.set()
        assert done.wait(TIMEOUT)
        raise FAILED

    first = PlayedLane("a", work)
    pool = PlayedPool(first, later=[PlayedLane("b", help_in_vain)])
    played = Played(pool, PARUS)
    assert played.run() == []
    assert "parus/warm-up-2 failed" in played.output
    assert "Its runs are done elsewhere." in played.output


def test_the_run_of_a_lost_lane_is_done_by_another() -> None:
    def get_lost(_: PlayedLane, job: Job) -> None:
        if job.label == "parus/1_1_01":
            raise LaneLost("The lane a is lost.")

    lost, other = PlayedLane("a", get_lost), PlayedLane("b")
    played = Played(PlayedPool(lost, later=[other]), PARUS)
    assert played.run() == []
    assert labels(lost.tried) == ["parus/warm-up", "parus/1_1_01"]
    assert labels(other.tried) == ["parus/warm-up-2", "parus/1_1_01", "parus/20_4_01"]
    assert "The lane a is lost.\n" in played.output


def test_an_engine_that_refuses_a_run_fails_that_run_alone() -> None:
    refused = EngineError("Cannot create a container.")
    lane = PlayedLane("a", fail_at("parus/1_1_01", error=refused))
    assert Played(PlayedPool(lane), PARUS).run() == [FailedJob(PARUS.jobs[0], refused)]


def test_an_engine_that_is_gone_ends_the_suite() -> None:
    refused = EngineError("The connection is lost.")
    lane = PlayedLane("a", fail_at("parus/1_1_01", error=refused))
    with pytest.raises(EngineError, match="The engine is gone"):
        Played(PlayedPool(lane, gone=True), PARUS).run()
    assert labels(lane.tried) == ["parus/warm-up", "parus/1_1_01"]


@pytest.mark.parametrize("reason", [OutputError("No space left."), RuntimeError("a defect")])
def test_what_no_other_run_would_survive_ends_all_lanes(reason: Exception) -> None:
    other = PlayedLane("b", wait_for_stop)

    def end(_: PlayedLane, __: Job) -> None:
        until(lambda: other.tried)
        raise reason

    lane = PlayedLane("a", end)
    played = Played(PlayedPool(lane, other), PARUS, RCB)
    with pytest.raises(type(reason), match=str(reason)):
        played.run()
    assert len(lane.tried) == len(other.tried) == 1
    assert other.reason is reason
    assert "failed" not in played.output


def test_ctrl_c_ends_all_lanes_at_the_same_time() -> None:
    """Each takes its time to end, which must not add up."""
    lanes: list[PlayedLane] = []

    def wait_for_all(lane: PlayedLane, job: Job) -> None:
        for other in lanes:
            assert other.stopped.wait(TIMEOUT)
        wait_for_stop(lane, job)

    lanes += [PlayedLane("a", wait_for_all), PlayedLane("b", wait_for_all)]
    played = Played(PlayedPool(*lanes), PARUS, RCB)

    def call() -> None:
        until(lambda: all(lane.tried for lane in lanes))
        played.suite.stop(STOPPED)

    caller = threading.Thread(target=call)
    caller.start()
    with pytest.raises(Interrupted):
        played.run()
    caller.join()
    assert [len(lane.tried) for lane in lanes] == [1, 1]
    assert "failed" not in played.output


def test_a_suite_that_nobody_can_work_on_ends() -> None:
    assert Played(PlayedPool(), PARUS).run() == []


def test_failures_are_a_table_by_cause() -> None:
    failures = [
        FailedJob(RCB.warm_up, TimedOut("It took too long.\n  its log"), skipped=2),
        FailedJob(PARUS.jobs[1], FAILED),
        FailedJob(PARUS.jobs[0], FAILED),
        FailedJob(PARUS.warm_up, FAILED, skipped=1),
    ]
    rows = [re.split(r" {2,}", line.strip()) for line in render_failures(failures).splitlines()]
    assert rows == [
        ["cause", "run", "message"],
        ["exit code 3", "parus/1_1_01", str(FAILED)],
        ["exit code 3", "parus/20_4_01", str(FAILED)],
        ["exit code 3", "parus/warm-up and the 1 run after it", str(FAILED)],
        ["timed out", "rcb/warm-up and the 2 runs after it", "It took too long."],
    ]
