"""Who measures what next: the runs of a suite, handed out to the lanes that ask for work."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from morocco.plan import Block, Job


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
