"""The start of a container and the end of its main process, however late the engine answers."""

from __future__ import annotations

import math
import os
import select
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Any

from morocco.errors import EngineError
from morocco.hardware.cgroup import find_memory_group, is_named_in_cgroup
from morocco.hardware.host import (
    NewProcesses,
    created_at,
    has_loaded_program,
    is_first_of_namespace,
)
from morocco.targets.target import Start
from morocco.util.units import Seconds

_POLL: Seconds = 0.005
_LOOK: Seconds = 0.001
"""Between two looks into /proc, each of which takes some 0.02 ms."""
_GRACE: Seconds = 0.01
"""For the process to be found once the engine has said that it runs; it mostly is by then."""
_MAX_LATE: Seconds = 0.25
"""The run is refused if the container ran for longer than this before morocco could know."""
_VERDICT_POLL: Seconds = 0.02
_VERDICT_TIMEOUT: Seconds = 1
_ENGINE_LAG: Seconds = 0.05
"""The engine notes the end of a process some milliseconds late."""
_CLOCK_ERROR: Seconds = 2
"""The kernel counts creation times from a rounded boot time."""
_END_TIMEOUT: Seconds = 1


@dataclass(frozen=True)
class ContainerState:
    """What the engine says of a container; moments are on the monotonic clock."""

    status: str
    """`created`, `running`, `exited` and others."""
    pid: int
    """Of the main process; 0 unless the container runs."""
    started: Seconds | None
    ended: Seconds | None
    out_of_memory: bool


class Lookout:
    """Looks in /proc for the main process of a container, which takes no answer of the engine.

    It is the first process of its PID namespace. A helper of the engine creates it, and at the
    start lets it load the container's program.
    """

    def __init__(self, container: str, made: int | None = None) -> None:
        """`container` is its full id, `made` its process where that is known before the start."""
        self._container = container
        self._new = NewProcesses()
        self._waiting = set() if made is None else {made}
        """First processes of any container, which run no program of their own yet."""

    def find(self) -> int | None:
        """Return the process as soon as it runs its program."""
        self._waiting.update(filter(is_first_of_namespace, self._new.find()))
        for pid in tuple(self._waiting):
            has_loaded = has_loaded_program(pid)
            if has_loaded is not False:
                self._waiting.discard(pid)
            if has_loaded and is_named_in_cgroup(pid, self._container):
                return pid
        return None


class Launch:
    """Starts a container once, finds its main process and notes when that ends.

    Three threads are at work: one asks for the start, one looks at the container meanwhile (the
    engine locks a container that it starts, so the look is answered just after), and one looks for
    the process in /proc, which needs no engine. Whichever shows first that the container runs lets
    the run go on; whichever finds the process waits for its end.
    """

    def __init__(
        self,
        container: str,
        start: Callable[[], object],
        inspect: Callable[[], ContainerState],
        prepared: Seconds = math.inf,
    ) -> None:
        """`container` is its full id; `start` returns, or raises, when the engine has answered.

        `prepared` is a moment before which its process cannot exist: Podman makes it before the
        start, and lets it wait.
        """
        self._container, self._start, self._inspect = container, start, inspect
        self._prepared = prepared
        self.killed_for_memory = False
        """Whether the kernel says so, once the main process has ended."""
        self._answered: Future[Seconds] = Future()
        self._shown: Future[ContainerState] = Future()
        self._seen: Future[Seconds] = Future()
        """When the process was seen to run the container's program."""
        self._pid: Future[int | None] = Future()
        self._taking = threading.Lock()
        self._is_watched = False
        self._cancelled = threading.Event()
        self._asked: Seconds = math.inf
        self._started: Seconds = 0.0
        self._known: Seconds = 0.0
        """When morocco knew that the container runs, and went on."""
        self._ended: Future[Seconds] = Future()

    def look(self, pid: int) -> None:
        """Follow the process that the engine made already, as Podman does; 0 if there is none."""
        if pid and self._is_visible(pid):
            handle = _open_pidfd(pid)
            if self._take(pid, handle):
                watch = (pid, handle)
                threading.Thread(target=self._watch, args=watch, name="end", daemon=True).start()

    def begin(self) -> Start:
        """Start the container and return when that was, and its process if it is known by now."""
        made = self._pid.result() if self._pid.done() else None
        lookout = Lookout(self._container, made)
        self._asked = time.monotonic()
        for name, step in ("start", self._ask), ("watcher", self._follow):
            threading.Thread(target=step, name=name, daemon=True).start()
        threading.Thread(target=self._look, args=(lookout,), name="lookout", daemon=True).start()
        signs: tuple[Future[Any], ...] = (self._answered, self._shown, self._seen)
        wait(signs, return_when=FIRST_COMPLETED)
        self._started = time.monotonic()
        if not (self._shown.done() or self._seen.done()):
            self._started = self._answered.result()
        if not self._seen.done():
            known: tuple[Future[Any], ...] = (self._pid, self._shown)
            wait(known, timeout=_GRACE)
        self._known = time.monotonic()
        if (start := self._find_start()) is not None:
            self._started = start
        return Start(self._started, self.find_pid() if self._pid.done() else None)

    def _ask(self) -> None:
        try:
            self._start()
            self._answered.set_result(time.monotonic())
        except BaseException as error:
            self._cancelled.set()
            self._answered.set_exception(error)

    def _look(self, lookout: Lookout) -> None:
        """Find the main process without the engine, as soon as it runs its program."""
        while not (self._cancelled.is_set() or self._shown.done()):
            pid = lookout.find()
            if pid is not None:
                moment, handle = time.monotonic(), _open_pidfd(pid)
                is_new = self._take(pid, handle)
                self._seen.set_result(moment)
                if is_new:
                    self._watch(pid, handle)
                return
            time.sleep(_LOOK)

    def _find_start(self) -> Seconds | None:
        """Return the earliest sign that the container runs; each comes a little after the start.

        None if there is no credible one.
        """
        told = self._credible(self._shown.result().started) if self._shown.done() else None
        seen = self._seen.result() if self._seen.done() else None
        return min((moment for moment in (told, seen) if moment is not None), default=None)

    def _credible(self, moment: Seconds | None) -> Seconds | None:
        """Return a moment that the engine told, None if it is not between the request and now."""
        within = moment is not None and self._asked <= moment <= time.monotonic()
        return moment if within else None

    def find_pid(self) -> int | None:
        """Return the main process, None if it ended unseen; wait until that is known.

        Raises EngineError if the process cannot be seen from here, or the engine told so late that
        it runs that the run time would be wrong.
        """
        pid = self._pid.result()
        if self.lateness > _MAX_LATE:
            raise EngineError(
                f"The engine reported {self.lateness:.1f} s late that the container runs, so it "
                "was fed too late and the run time would be wrong. See what keeps the engine busy "
                "(its log: journalctl -u docker, or podman), then run again."
            )
        return pid

    @property
    def lateness(self) -> Seconds:
        """How long the container had run before morocco knew, as far as can be told."""
        start = self._find_start()
        return 0.0 if start is None else self._known - start

    def find_end(self, state: ContainerState) -> Seconds:
        """Return when the main process ended; `state` is the container's after its end.

        Raises EngineError if that cannot be known.
        """
        self.find_pid()
        if self._is_watched:
            wait([self._ended], timeout=_END_TIMEOUT)
        ended = self._ended.result() if self._ended.done() else self._credible(state.ended)
        if ended is None:
            raise EngineError(
                "The run time is unknown: the end of the main process could not be watched, and "
                "the engine does not tell a credible time. See whether the clock was set "
                "meanwhile, then run again."
            )
        return max(ended, self._started)  # it may end before the engine notes that it started

    def cancel(self) -> None:
        """Give up looking for a container that has not started yet."""
        self._cancelled.set()

    def _follow(self) -> None:
        """Find the main process by asking the engine, then wait for its end."""
        try:
            state = self._await_running()
            if self._pid.done():
                return
            pid, handle = (None, None) if state is None else self._open(state)
        except BaseException as error:
            with self._taking:
                if not self._pid.done():
                    self._pid.set_exception(error)
            return
        if self._take(pid, handle):
            self._watch(pid, handle)

    def _take(self, pid: int | None, handle: int | None) -> bool:
        """Take this as the main process, and return True, unless it is known already."""
        with self._taking:
            is_new = not self._pid.done()
            if is_new:
                self._is_watched = handle is not None
                self._pid.set_result(pid)
        if handle is not None and not is_new:
            os.close(handle)
        return is_new

    def _watch(self, pid: int | None, handle: int | None) -> None:
        """Note the moment the process ends, which the engine reports some 25 ms later.

        Until then the control group is still there, and tells better than Podman why it ended.
        """
        if pid is None or handle is None:
            return
        group = find_memory_group(pid)
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        poll.poll()
        ended = time.monotonic()
        self.killed_for_memory = group is not None and bool(group.oom_kills())
        self._ended.set_result(ended)
        os.close(handle)

    def _await_running(self) -> ContainerState | None:
        """Return the first state that shows the container to run or to have run."""
        while not self._cancelled.is_set():
            state = self._inspect()
            has_run = state.ended is not None and self._has_started(state)
            if has_run or (state.pid and state.status == "running"):
                self._shown.set_result(state)
                return state
            time.sleep(_POLL)
        return None

    def _has_started(self, state: ContainerState) -> bool:
        answered = self._answered.done() and self._answered.exception() is None
        return answered or self._credible(state.started) is not None

    def _open(self, state: ContainerState) -> tuple[int | None, int | None]:
        """Return the main process if it is alive, and a handle that tells when it ends."""
        if not state.pid:
            return None, None
        handle = _open_pidfd(state.pid)
        looked = time.monotonic()
        if self._is_visible(state.pid):
            return state.pid, handle
        if handle is not None:
            os.close(handle)
        self._check_ended_before(looked)
        return None, None

    def _is_visible(self, pid: int) -> bool:
        """Return whether the process with this id is the container's and not another one here."""
        if is_named_in_cgroup(pid, self._container):
            return True
        created = created_at(pid)  # without cgroups, as in some rootless engines
        earliest = min(self._prepared, self._asked) - time.monotonic() + time.time()
        return created is not None and created >= earliest - _CLOCK_ERROR

    def _check_ended_before(self, looked: Seconds) -> None:
        """Raise EngineError if the container still ran when its process was not to be seen."""
        deadline = looked + _VERDICT_TIMEOUT
        while (state := self._inspect()).pid and time.monotonic() < deadline:
            time.sleep(_VERDICT_POLL)
        if state.pid or (self._credible(state.ended) or 0.0) > looked + _ENGINE_LAG:
            raise EngineError(
                "The container runs, but its processes are not visible from here. Run morocco on "
                "the engine's host, as a user who may see its processes, or in a container with "
                "--pid=host."
            )


def _open_pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except OSError:  # gone; or an old kernel or a sandbox: the engine tells when it ended
        return None
