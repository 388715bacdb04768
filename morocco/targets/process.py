"""Bare processes as targets: for machines without a container engine, and for Apptainer."""

from __future__ import annotations

import array
import ctypes
import fcntl
import os
import resource
import selectors
import shlex
import shutil
import signal
import subprocess
import termios
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from morocco.errors import TargetError
from morocco.hardware.host import (
    count_oom_kills,
    created_at,
    find_descendants,
    is_alive,
    list_own_children,
    may_live_since,
    name_pid_space,
)
from morocco.targets.options import format_cores
from morocco.targets.target import EXEC_PREFIX, Channel, Exit, Identity, Start
from morocco.util.units import Bytes, Seconds

_READ_SIZE = 1024 * 1024
_SIGKILLED = 128 + signal.SIGKILL
_MARK = "MOROCCO_TARGET"
"""Variable in the environment of the process and of all its descendants, to find them by."""
_VARIABLE = f"{_MARK}=".encode()
_KILL_TIMEOUT: Seconds = 5
"""Killed processes that hold a GPU take a while to vanish."""
_PR_SET_CHILD_SUBREAPER = 36


class ProcessTarget:
    """A command on this machine, in its own session, so that Ctrl-C reaches only morocco."""

    def __init__(
        self,
        command: str,
        arguments: Sequence[str],
        env: Mapping[str, str],
        cores: Collection[int] = (),
        suite: str | None = None,
        oom_score_adj: int | None = None,
    ) -> None:
        """`command` is split as by a shell; `env` is its whole environment.

        The process may use only `cores`; empty means all. With `oom_score_adj` the kernel ends it
        before others, or after them, where memory runs out.
        """
        try:
            self._args = [*shlex.split(command), *arguments]
        except ValueError as error:
            raise TargetError(f"Cannot parse the command {command!r}: {error}.") from None
        if len(self._args) == len(arguments):
            raise TargetError(f"{EXEC_PREFIX} needs a command, such as 'exec:python infer.py'.")
        limits = {"cpuset": format_cores(tuple(cores))} if cores else {}
        self.identity = Identity(EXEC_PREFIX + command, command=tuple(self._args), limits=limits)
        self._cores, self._oom_score_adj = cores, oom_score_adj
        self._mark = f"{suite or ''}/{os.getpid()}/{uuid.uuid4().hex}"
        self._env = {**env, _MARK: self._mark}
        self._process: subprocess.Popen[bytes] | None = None
        self._stdin = self._stdin_read_end = -1
        self._oom_kills: int | None = None
        self._others: frozenset[int] = frozenset()
        """Children of this process before the start, which are none of the target's."""
        self._adopted: frozenset[int] = frozenset()
        self._own_peak: Bytes = 0

    def __enter__(self) -> ProcessTarget:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.kill()
            self._process.wait()
            for stream in filter(None, (self._process.stdout, self._process.stderr)):
                stream.close()
        _stop_adopting(self._mark)
        self._close_stdin_read_end()
        self.close_input()

    def prepare(self) -> None:
        """Make this process the one that adopts daemons of the target, instead of init."""
        _start_adopting(self._mark)

    def start(self) -> Start:
        """Start the process; raises TargetError if the command cannot be run."""
        # The read end stays open here too, to count what the target leaves unread.
        self._stdin_read_end, self._stdin = os.pipe()
        self._oom_kills = count_oom_kills()
        self._others = frozenset(list_own_children())
        if self._cores:  # of this thread only, which does nothing but start the process
            os.sched_setaffinity(0, self._cores)
        try:
            self._process = subprocess.Popen(
                self._args,
                bufsize=0,
                stdin=self._stdin_read_end,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._env,
                start_new_session=True,
            )
        except OSError as error:
            command = shlex.join(self._args)
            raise TargetError(f"Cannot run `{command}`: {error.strerror}.") from None
        started = time.monotonic()  # Popen returns when the new program has been loaded
        self._adjust_oom_score(self._process.pid)
        self._own_peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return Start(started, self._process.pid)

    def _adjust_oom_score(self, pid: int) -> None:
        """Let its children inherit it: takes 20 microseconds, when it can have none yet."""
        if self._oom_score_adj is None:
            return
        with suppress(OSError):  # only root may lower it, and a setuid program belongs to another
            file = os.open(f"/proc/{pid}/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(file, b"%d" % self._oom_score_adj)
            finally:
                os.close(file)

    def find_pid(self) -> int | None:
        """Return the id of the process."""
        return self._running.pid

    def find_adopted(self) -> Collection[int]:
        """Return the daemons of the process: orphans that this process has adopted."""
        known = {self._running.pid, *self._others, *self._adopted}
        new = set(list_own_children(of_main_thread=True)) - known
        self._adopted |= set(filter(self._is_own, new))
        return self._adopted

    def _is_own(self, child: int) -> bool:
        """Return whether the target, not this process, has started a child of this process."""
        mark = _read_mark(child)
        if mark is not None:
            return mark == self._mark
        try:  # its environment was cleared, but session and cores are not those of this process
            cores, session = os.sched_getaffinity(child), os.getsid(child)
        except OSError:
            return False
        is_alone = cores <= set(self._cores) if self._cores else len(_adopting) == 1
        return is_alone and session != os.getsid(0)

    def write(self, data: bytes) -> None:
        """Feed all of `data`."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._stdin, rest) :]

    def close_input(self) -> None:
        """Close the write end, which ends the input."""
        if self._stdin >= 0:
            os.close(self._stdin)
            self._stdin = -1

    def unread_input(self) -> int:
        """Return how many bytes are left in the pipe, and end any `write` that waits for it."""
        if self._stdin_read_end < 0:
            return 0
        count = array.array("i", [0])
        fcntl.ioctl(self._stdin_read_end, termios.FIONREAD, count)
        self._close_stdin_read_end()
        return count[0]

    def output(self) -> Iterator[tuple[Channel, bytes]]:
        """Yield stdout and stderr as they come."""
        channels: tuple[Channel, ...] = ("stdout", "stderr")
        with selectors.DefaultSelector() as selector:
            for channel in channels:
                selector.register(getattr(self._running, channel), selectors.EVENT_READ, channel)
            while selector.get_map():
                for key, _ in selector.select():
                    if data := os.read(key.fd, _READ_SIZE):
                        yield key.data, data
                    else:
                        selector.unregister(key.fileobj)

    def wait(self) -> Exit:
        """Wait for the process, then kill what it left behind, as the end of a container does."""
        pid = self._running.pid
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        ended = time.monotonic()
        self._kill_all()
        code, peak = self._reap()
        code = code if code >= 0 else 128 - code
        killed = code == _SIGKILLED and self._kernel_killed()
        return Exit(code, ended, out_of_memory=killed, peak_ram=peak)

    def _reap(self) -> tuple[int, Bytes | None]:
        """Return the exit code and the peak memory of the ended process."""
        process = self._running
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except ChildProcessError:  # reaped by another thread
            return process.wait(), None
        process.returncode = os.waitstatus_to_exitcode(status)
        peak = usage.ru_maxrss * 1024
        # It starts with the peak of morocco, whose memory the process shared until its exec.
        return process.returncode, peak if peak > self._own_peak else None

    def kill(self) -> None:
        """Kill the process and all its descendants, whatever session they are in now."""
        if self._process is not None and self._process.returncode is None:
            self._kill_all()

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("call start() first")
        return self._process

    def _kill_all(self) -> None:
        # Not waited for yet, so the group id cannot have been reused.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._running.pid, signal.SIGKILL)
        _kill_until_gone(self._find_left)
        for pid in self._adopted:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        self._adopted = frozenset()  # the numbers may be given to others

    def _find_left(self) -> list[int]:
        left = {*_find_marked(self._mark), *find_descendants(self.find_adopted())}
        return list(filter(is_alive, left))

    def _kernel_killed(self) -> bool:
        now = count_oom_kills()
        return now is not None and self._oom_kills is not None and now > self._oom_kills

    def _close_stdin_read_end(self) -> None:
        if self._stdin_read_end >= 0:
            os.close(self._stdin_read_end)
            self._stdin_read_end = -1


def find_command(target: str) -> str:
    """Return the program that an `exec:` target runs; TargetError if there is none."""
    command = ProcessTarget(target.removeprefix(EXEC_PREFIX), (), {}).identity.command
    program = shutil.which(command[0])
    if program is None:
        raise TargetError(f"{target}: command not found.")
    return program


_adopting: set[str] = set()
"""The marks of the targets of this process that run now: lanes are threads."""
_adopting_lock = threading.Lock()


def _start_adopting(mark: str) -> None:
    with _adopting_lock:
        _adopting.add(mark)
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _stop_adopting(mark: str) -> None:
    with _adopting_lock:
        _adopting.discard(mark)
        if not _adopting:  # orphans of other children are not for this process to wait for
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def kill_orphans(suite: str) -> int:
    """Kill the processes of a suite whose morocco process is gone; return how many."""
    return _kill_found(_is_orphan, suite)


def kill_strays() -> int:
    """Kill the processes of killed `bench` commands of this machine; return how many."""
    here = name_pid_space()
    if here is None:
        return 0
    return _kill_found(lambda pid, mark: name_pid_space(pid) == here and _is_orphan(pid, mark), "")


def _kill_found(is_left: Callable[[int, str], bool], suite: str) -> int:
    found = set()

    def find() -> list[int]:
        left = [pid for pid, mark in _find_marked(f"{suite}/").items() if is_left(pid, mark)]
        found.update(left)
        return left

    _kill_until_gone(find)
    return len(found)


def _is_orphan(pid: int, mark: str) -> bool:
    owner, created = mark.split("/")[1], created_at(pid)
    return created is not None and not may_live_since(int(owner), created)


def _kill_until_gone(find: Callable[[], list[int]]) -> None:
    deadline = time.monotonic() + _KILL_TIMEOUT
    while (left := find()) and time.monotonic() < deadline:
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)


def _find_marked(start: str) -> dict[int, str]:
    """Return the marks that begin with `start`, by the process that has one."""
    pids = (int(folder.name) for folder in Path("/proc").glob("[0-9]*"))
    marks = {pid: mark for pid in pids if (mark := _read_mark(pid)) is not None}
    return {pid: mark for pid, mark in marks.items() if mark.startswith(start)}


def _read_mark(pid: int) -> str | None:
    """Return the mark of a process; None without one, or for one that is hidden or gone."""
    with suppress(OSError):
        for setting in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if setting.startswith(_VARIABLE):
                return setting.removeprefix(_VARIABLE).decode(errors="replace")
    return None
