"""Who does which run next: the runs of a suite, handed out to the lanes that ask for work."""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any, Protocol

from morocco.errors import EngineError, Interrupted, MoroccoError, OutputError
from morocco.suite.display import JobObserver, SuiteDisplay
from morocco.suite.lanes import Lane, LaneLost
from morocco.suite.plan import Block, Forecast, Job, take_turns
from morocco.targets.patience import Limits, patience
from morocco.util.text import align
from morocco.util.units import Seconds, plural

_TICK: Seconds = 1.0
_FIRST_LANE_TICK: Seconds = 0.1
"""Between two looks for the first lane."""
_END = Limits(stopped=90, hurried=1.8)
"""For a run that was broken off to clean up after itself."""
_MAX_LOSSES = 3
"""Lanes lost with the same run: this many are no coincidence."""


class _Queue:
    """The runs of a task that no lane has started, of one model or of several that take turns.

    It knows which lanes are warm for which model, and which are unfit for it.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._warm_ups = {block.warm_up.model: block.warm_up for block in blocks}
        self._turns = {model: count(1) for model in self._warm_ups}
        self.waiting = deque(take_turns(blocks))
        self.warm: set[tuple[str, str]] = set()
        """Lanes and models, as are the unfit."""
        self.unfit: set[tuple[str, str]] = set()

    def has_work(self, lane: str) -> bool:
        return any((lane, job.model) not in self.unfit for job in self.waiting)

    def take(self, lane: str) -> Job:
        """Return the next run for a lane, or the warm-up of its model if the lane has had none."""
        job = next(job for job in self.waiting if (lane, job.model) not in self.unfit)
        if (lane, job.model) in self.warm:
            self.waiting.remove(job)
            return job
        self.warm.add((lane, job.model))
        return replace(self._warm_ups[job.model], turn=next(self._turns[job.model]))

    def cool(self, lane: str) -> None:
        """Forget that a lane is warm."""
        self.warm = {(warm, model) for warm, model in self.warm if warm != lane}

    def skip(self, model: str) -> list[Job]:
        """Remove the runs of a model and return them; none if another lane is warm for it."""
        if any(model == of_lane for _, of_lane in self.warm):
            return []
        skipped = [job for job in self.waiting if job.model == model]
        self.waiting = deque(job for job in self.waiting if job.model != model)
        return skipped

    @property
    def left(self) -> list[Job]:
        """The waiting runs, after the warm-ups that they need."""
        warm = {model for _, model in self.warm}
        models = dict.fromkeys(job.model for job in self.waiting)
        return [*(self._warm_ups[model] for model in models if model not in warm), *self.waiting]


class Backlog:
    """The runs to do, shared by the threads of all lanes.

    A lane stays with its block, so that the block's runs are done on one machine and one GPU. A
    lane that would be idle helps with the block that has most runs left, after its own warm-up.
    """

    def __init__(self, blocks: Sequence[Block], *, in_turns: bool = False) -> None:
        """With `in_turns`, the models of a task alternate, on the same lane if possible."""
        of_task: dict[object, list[Block]] = {}
        for number, block in enumerate(blocks):
            of_task.setdefault(block.warm_up.task if in_turns else number, []).append(block)
        self._queues = [_Queue(several) for several in of_task.values()]
        self._current: dict[str, _Queue] = {}
        self._running: dict[str, Job] = {}
        self._stopped = False
        self._changed = threading.Condition()

    def take(self, lane: str) -> Job | None:
        """Return the next job for a lane, waiting for one that another lane may give back.

        None once all is done or stopped.
        """
        with self._changed:
            while not self._stopped:
                queue = self._choose(lane)
                if queue is not None:
                    self._current[lane] = queue
                    self._running[lane] = job = queue.take(lane)
                    return job
                if not self._running:
                    return None
                self._changed.wait()
            return None

    def _choose(self, lane: str) -> _Queue | None:
        current = self._current.get(lane)
        if current is not None and current.has_work(lane):
            return current
        waiting = [queue for queue in self._queues if queue.has_work(lane)]
        fresh = (queue for queue in waiting if not queue.warm)
        return next(fresh, None) or max(waiting, key=lambda q: len(q.waiting), default=None)

    def finish(self, lane: str) -> None:
        """Remove the job of a lane, which is done or given up."""
        with self._changed:
            del self._running[lane]
            self._changed.notify_all()

    def give_back(self, lane: str) -> None:
        """Put the job of a lost lane back."""
        with self._changed:
            job, queue = self._running.pop(lane), self._current.pop(lane)
            queue.cool(lane)
            if job.index is not None:
                queue.waiting.appendleft(job)
            self._changed.notify_all()

    def skip_block(self, lane: str) -> list[Job]:
        """Remove the waiting runs of the block on which a lane failed, and return them.

        None are removed if another lane works on the block, which then does them.
        """
        with self._changed:
            queue, model = self._current[lane], self._running[lane].model
            queue.unfit.add((lane, model))
            queue.warm.discard((lane, model))
            return queue.skip(model)

    def stop(self) -> None:
        """Hand out nothing more."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    @property
    def left(self) -> list[Job]:
        """What is not done yet, with the warm-ups it needs, in order."""
        with self._changed:
            left = list(self._running.values())
            for queue in self._queues:
                left += queue.left
            return left


@dataclass(frozen=True)
class FailedJob:
    """A run that was given up, and the number of runs that were skipped because of it."""

    job: Job
    error: MoroccoError
    skipped: int = 0


class LanePool(Protocol):
    """The available lanes, some of which may come and go."""

    def join(self) -> list[Lane]:
        """Return the lanes that were added since the last call; called about once a second."""

    def wait_for_more(self, left: Sequence[Job]) -> bool:
        """Return whether a lane may still be added for the runs left; called if there is none."""

    def check(self, lane: Lane) -> None:
        """Raise EngineError or LaneLost if this lane can do no more runs."""


class LocalPool:
    """The lanes of this machine, which never change."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._lanes = list(lanes)

    def join(self) -> list[Lane]:
        """Return all lanes at the first call."""
        lanes, self._lanes = self._lanes, []
        return lanes

    def wait_for_more(self, left: Sequence[Job]) -> bool:  # noqa: ARG002
        """Return False."""
        return False

    def check(self, lane: Lane) -> None:  # noqa: ARG002
        """Raise EngineError if the engine is gone."""
        from morocco.targets.engine import connect

        connect().close()


class Suite:
    """All runs of one call; `run` returns those that failed."""

    def __init__(
        self,
        blocks: Sequence[Block],
        pool: LanePool,
        display: SuiteDisplay,
        forecast: Forecast,
        *,
        retries: int,
        force: bool,
        in_turns: bool = False,
    ) -> None:
        self._backlog = Backlog(blocks, in_turns=in_turns)
        self._pool, self._display, self._forecast = pool, display, forecast
        self._retries, self._force = retries, force
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        """An exception that ends the suite, or the name of a lane whose thread has ended."""
        self._lanes: dict[str, Lane] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._failures: list[FailedJob] = []
        self._losses: Counter[Any] = Counter()

    def stop(self, reason: Exception) -> None:
        """End the suite with this exception; may be called by a signal handler."""
        self._events.put(reason)

    def run(self) -> list[FailedJob]:
        """Do all runs; raise what ends the whole suite, after every current run has ended."""
        try:
            while True:
                for lane in self._pool.join():
                    self._start(lane)
                if not self._threads and not self._pool.wait_for_more(self._backlog.left):
                    return self._failures
                self._take_event()
                self._display.refresh()
        except BaseException as reason:
            unended = self._end(reason)
            if isinstance(reason, Interrupted):
                raise self._explain(reason, unended) from None
            raise

    def _explain(self, reason: Interrupted, unended: Sequence[str]) -> Interrupted:
        """Return what ended the suite, with what may be left of its runs."""
        with suppress(queue.Empty):
            while True:
                event = self._events.get_nowait()
                if isinstance(event, Interrupted) and event is not reason:
                    return event  # which names the container
        if not unended:
            return reason
        stopped, runs = str(reason).partition(";")[0], " and of ".join(unended)
        return Interrupted(
            f"{stopped}. The run of {runs} did not end in time; see what is left with: docker ps "
            "--filter label=morocco",
            reason.signal_number,
        )

    def _start(self, lane: Lane) -> None:
        thread = threading.Thread(target=self._work, args=(lane,), name=lane.name, daemon=True)
        self._lanes[lane.name], self._threads[lane.name] = lane, thread
        thread.start()

    def _take_event(self) -> None:
        try:
            event = self._events.get(timeout=_TICK if self._threads else _FIRST_LANE_TICK)
        except queue.Empty:
            return
        if isinstance(event, BaseException):
            raise event
        self._threads.pop(event).join()

    def _end(self, reason: BaseException) -> list[str]:
        """Stop all lanes, and return those whose runs have not ended in time."""
        self._backlog.stop()
        stopped = reason if isinstance(reason, Exception) else Exception(str(reason))
        for name in self._threads:
            self._lanes[name].stop(stopped)
        return [
            name
            for name, thread in self._threads.items()
            if not patience.wait_for(thread, _END, partial(self._tell_wait, name))
        ]

    def _tell_wait(self, lane: str, how_long: str) -> None:
        self._display.warn(None, f"Waiting for the run of {lane} to end{how_long}.")

    def _work(self, lane: Lane) -> None:
        """Do runs on a lane until there are none left or the lane is lost."""
        try:
            while (job := self._backlog.take(lane.name)) is not None:
                if self._is_lost_during(lane, job):
                    return
        except BaseException as error:
            self._events.put(error)
        finally:
            self._events.put(lane.name)

    def _is_lost_during(self, lane: Lane, job: Job) -> bool:
        """Do a run, and return whether the lane was lost during it."""
        try:
            self._do(lane, job)
        except LaneLost as lost:
            self._lose(lane, job, lost)
            return True
        return False

    def _lose(self, lane: Lane, job: Job, lost: LaneLost) -> None:
        """Put a run back, unless one lane after the other was lost with it."""
        self._losses[job.kind, job.index] += 1
        if self._losses[job.kind, job.index] < _MAX_LOSSES:
            self._display.drop(lane.name)
            self._backlog.give_back(lane.name)
            self._display.say(str(lost))
        else:
            self._give_up(lane, job, EngineError(f"{_MAX_LOSSES} workers were lost during it."))
            self._backlog.finish(lane.name)

    def _do(self, lane: Lane, job: Job) -> None:
        """Do a run, try again if it fails, and finally give it up."""
        for tries_left in range(self._retries, -1, -1):
            self._display.begin(lane.name, job)
            started = time.monotonic()
            try:
                observer = JobObserver(self._display, lane.name, job)
                lane.measure(job, observer, force=self._force)
            except (Interrupted, OutputError):  # every other run would fail too
                raise
            except MoroccoError as error:
                if isinstance(error, EngineError):
                    self._pool.check(lane)
                if tries_left:
                    self._display.retry(lane.name, job, error)
                else:
                    self._give_up(lane, job, error)
            else:
                self._finish(lane, job, time.monotonic() - started)
                return
        self._backlog.finish(lane.name)

    def _finish(self, lane: Lane, job: Job, duration: Seconds) -> None:
        self._forecast.add(job, duration)
        self._backlog.finish(lane.name)
        left = self._forecast.total_time(self._backlog.left)
        left = None if left is None else left / max(1, len(self._threads))
        self._display.finish(lane.name, job, duration, left)

    def _give_up(self, lane: Lane, job: Job, error: MoroccoError) -> None:
        """Skip a run; if it is a warm-up, which would fail again and again, skip its block too."""
        skipped = len(self._backlog.skip_block(lane.name)) if job.index is None else 0
        if job.index is None and not skipped:
            self._display.fail(lane.name, job, error, "Its runs are done elsewhere.")
            return
        self._failures.append(FailedJob(job, error, skipped))
        then = f"Skipping its {plural(skipped, 'run')}." if skipped else "Skipping it."
        self._display.fail(lane.name, job, error, then, skipped or 1)


def render_failures(failures: Sequence[FailedJob]) -> str:
    """Return a table of the failed runs, sorted by cause."""
    rows = [("cause", "run", "message")]
    for failure in sorted(failures, key=lambda failure: (failure.error.cause, failure.job.label)):
        skipped = f" and the {plural(failure.skipped, 'run')} after it" if failure.skipped else ""
        error = failure.error
        message = error.quoted[-1] if error.quoted else str(error).splitlines()[0]
        rows.append((error.cause, failure.job.label + skipped, message))
    return "\n".join(f"  {line}" for line in align(rows, left=(0, 1, 2)))
