"""Who measures what next: the runs of a suite, handed out to the lanes that ask for work."""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Protocol

from morocco.bench.outcome import STDERR
from morocco.errors import EngineError, Interrupted, MoroccoError, OutputError
from morocco.suite.display import JobObserver, SuiteDisplay
from morocco.suite.lanes import Lane, LaneLost
from morocco.suite.plan import Block, Forecast, Job
from morocco.util.text import align
from morocco.util.units import Seconds, plural


class _Queue:
    """The runs of a block that nobody has begun, and the lanes that are warm or unfit for it."""

    def __init__(self, block: Block) -> None:
        self.warm_up = block.warm_up
        self.waiting = deque(block.jobs)
        self.warm: set[str] = set()
        self.unfit: set[str] = set()
        self._turns = count(1)

    def take(self, lane: str) -> Job:
        """Return the next run of a lane, which is a warm-up of its own at first."""
        if lane in self.warm:
            return self.waiting.popleft()
        self.warm.add(lane)
        return replace(self.warm_up, turn=next(self._turns))


class Backlog:
    """The runs to do; used by many threads.

    A lane stays with its block, so that its runs see one machine and one GPU. One that would be
    idle helps with the block that has most left, after a warm-up of its own.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._queues = [_Queue(block) for block in blocks]
        self._current: dict[str, _Queue] = {}
        self._under_way: dict[str, Job] = {}
        self._stopped = False
        self._changed = threading.Condition()

    def take(self, lane: str) -> Job | None:
        """Return the next job of a lane, waiting for one that another lane may give back.

        None once all is done or stopped.
        """
        with self._changed:
            while True:
                if self._stopped:
                    return None
                queue = self._choose(lane)
                if queue is not None:
                    break
                if not self._under_way:
                    return None
                self._changed.wait()
            self._current[lane] = queue
            self._under_way[lane] = job = queue.take(lane)
            return job

    def _choose(self, lane: str) -> _Queue | None:
        current = self._current.get(lane)
        if current is not None and current.waiting and lane not in current.unfit:
            return current
        waiting = [queue for queue in self._queues if queue.waiting and lane not in queue.unfit]
        fresh = (queue for queue in waiting if not queue.warm)
        return next(fresh, None) or max(waiting, key=lambda q: len(q.waiting), default=None)

    def finish(self, lane: str) -> None:
        """Take note that the job of a lane needs nothing more."""
        with self._changed:
            del self._under_way[lane]
            self._changed.notify_all()

    def give_back(self, lane: str) -> None:
        """Take back the job of a lane that is lost."""
        with self._changed:
            job, queue = self._under_way.pop(lane), self._current.pop(lane)
            queue.warm.discard(lane)
            if job.index is not None:
                queue.waiting.appendleft(job)
            self._changed.notify_all()

    def pass_over(self, lane: str) -> list[Job]:
        """Return the runs of the block of a lane that nobody has begun, which nobody will now.

        Nothing where another lane is at work on the block, which then does them.
        """
        with self._changed:
            queue = self._current[lane]
            queue.unfit.add(lane)
            queue.warm.discard(lane)
            if queue.warm:
                return []
            left = list(queue.waiting)
            queue.waiting.clear()
            return left

    def stop(self) -> None:
        """Hand out nothing more."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    @property
    def left(self) -> list[Job]:
        """What is not done yet, with the warm-ups that it takes, in order."""
        with self._changed:
            left = list(self._under_way.values())
            for queue in self._queues:
                left += [queue.warm_up] if queue.waiting and not queue.warm else []
                left += queue.waiting
            return left


_TICK: Seconds = 1.0
_LOSSES = 3
"""So many lanes lost with one run are no accident."""
_SOON: Seconds = 0.1
"""While there is no lane, the first one is waited for."""


@dataclass(frozen=True)
class FailedJob:
    """A run that was given up, and those that were not begun because of it."""

    job: Job
    error: MoroccoError
    untried: int = 0


class LanePool(Protocol):
    """The lanes there are, some of which may come and go."""

    def join(self) -> list[Lane]:
        """Return the lanes that have come since the last call; called about once a second."""

    def wait_for_more(self, left: Sequence[Job]) -> bool:
        """Return whether a lane may still come for the runs that are left, when there is none."""

    def check(self, lane: Lane) -> None:
        """Raise EngineError or LaneLost where no run can be done on this lane any more."""


class LocalPool:
    """The lanes of this machine, which are always the same."""

    def __init__(self, lanes: Iterable[Lane]) -> None:
        self._lanes = list(lanes)

    def join(self) -> list[Lane]:
        """Return all of them, once."""
        lanes, self._lanes = self._lanes, []
        return lanes

    def wait_for_more(self, left: Sequence[Job]) -> bool:  # noqa: ARG002
        """Return False: none will come."""
        return False

    def check(self, lane: Lane) -> None:  # noqa: ARG002
        """Raise EngineError where the engine is gone."""
        from morocco.targets.engine import connect

        connect().close()


class Suite:
    """All runs of one call; `run` returns those that failed."""

    def __init__(
        self,
        blocks: list[Block],
        crew: LanePool,
        board: SuiteDisplay,
        forecast: Forecast,
        *,
        retries: int,
        force: bool,
    ) -> None:
        self._backlog = Backlog(blocks)
        self._crew, self._board, self._forecast = crew, board, forecast
        self._retries, self._force = retries, force
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._lanes: dict[str, Lane] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._failures: list[FailedJob] = []
        self._losses: Counter[Any] = Counter()

    def stop(self, reason: Exception) -> None:
        """End the suite with this exception; may be called by a signal handler."""
        self._events.put(reason)

    def run(self) -> list[FailedJob]:
        """Do all runs; raises what ends the whole suite, after every run at work has ended."""
        try:
            while True:
                for lane in self._crew.join():
                    self._start(lane)
                if not self._threads and not self._crew.wait_for_more(self._backlog.left):
                    return self._failures
                self._take_event()
                self._board.refresh()
        except BaseException as reason:
            self._end(reason)
            raise

    def _start(self, lane: Lane) -> None:
        thread = threading.Thread(target=self._work, args=(lane,), name=lane.name, daemon=True)
        self._lanes[lane.name], self._threads[lane.name] = lane, thread
        thread.start()

    def _take_event(self) -> None:
        try:
            event = self._events.get(timeout=_TICK if self._threads else _SOON)
        except queue.Empty:
            return
        if isinstance(event, BaseException):
            raise event
        self._threads.pop(event).join()

    def _end(self, reason: BaseException) -> None:
        self._backlog.stop()
        stopped = reason if isinstance(reason, Exception) else Exception(str(reason))
        for name in self._threads:
            self._lanes[name].stop(stopped)
        for thread in self._threads.values():
            thread.join()

    def _work(self, lane: Lane) -> None:
        try:
            while (job := self._backlog.take(lane.name)) is not None:
                if self._is_lost_with(lane, job):
                    return
        except BaseException as error:
            self._events.put(error)
        finally:
            self._events.put(lane.name)

    def _is_lost_with(self, lane: Lane, job: Job) -> bool:
        """Do a run, and return whether the lane was lost over it."""
        try:
            self._do(lane, job)
        except LaneLost as lost:
            self._lose(lane, job, lost)
            return True
        return False

    def _lose(self, lane: Lane, job: Job, lost: LaneLost) -> None:
        """Give a run back, unless it takes one lane after the other with it."""
        self._losses[job.kind, job.index] += 1
        if self._losses[job.kind, job.index] < _LOSSES:
            self._board.drop(lane.name)
            self._backlog.give_back(lane.name)
            self._board.say(str(lost))
        else:
            self._give_up(lane, job, EngineError(f"{_LOSSES} workers were lost while they did it."))
            self._backlog.finish(lane.name)

    def _do(self, lane: Lane, job: Job) -> None:
        """Do a run, again where it fails, and give it up in the end."""
        for tries_left in range(self._retries, -1, -1):
            self._board.begin(lane.name, job)
            began = time.monotonic()
            try:
                lane.measure(job, JobObserver(self._board, lane.name, job), force=self._force)
            except (Interrupted, OutputError):  # no other run would fare better
                raise
            except MoroccoError as error:
                if isinstance(error, EngineError):
                    self._crew.check(lane)
                if tries_left:
                    self._board.retry(lane.name, job, error)
                else:
                    self._give_up(lane, job, error)
            else:
                self._finish(lane, job, time.monotonic() - began)
                return
        self._backlog.finish(lane.name)

    def _finish(self, lane: Lane, job: Job, taken: Seconds) -> None:
        self._forecast.learn(job, taken)
        self._backlog.finish(lane.name)
        left = self._forecast.guess(self._backlog.left)
        left = None if left is None else left / max(1, len(self._threads))
        self._board.finish(lane.name, job, taken, left)

    def _give_up(self, lane: Lane, job: Job, error: MoroccoError) -> None:
        """Pass a run over; after a warm-up, which would fail again and again, its whole block."""
        untried = len(self._backlog.pass_over(lane.name)) if job.index is None else 0
        if job.index is None and not untried:
            self._board.fail(lane.name, job, error, "Its runs are done elsewhere.")
            return
        self._failures.append(FailedJob(job, error, untried))
        self._board.pass_over(untried or 1)
        then = f"Its {plural(untried, 'run')} are not tried." if untried else "It is passed over."
        self._board.fail(lane.name, job, error, then)


def tell_failures(failures: Sequence[FailedJob]) -> str:
    """Return what failed, by cause, as a table for people."""
    rows = [("cause", "run", "what was seen")]
    for failure in sorted(failures, key=lambda failure: (failure.error.cause, failure.job.label)):
        untried = f" and the {plural(failure.untried, 'run')} after it" if failure.untried else ""
        rows.append((failure.error.cause, failure.job.label + untried, _pick(str(failure.error))))
    return "\n".join(f"  {line}" for line in align(rows, left=(0, 1, 2)))


def _pick(message: str) -> str:
    """Return the line of a message that says most: the last that the target logged, if it did."""
    lines = message.splitlines()
    return lines[-1].strip() if STDERR in lines else lines[0]
