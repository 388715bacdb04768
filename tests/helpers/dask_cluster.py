"""A real Dask cluster on this machine, whose scheduler and workers are separate programs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from forked import Forked, preload
from runs import processes_with, until

Process = subprocess.Popen[bytes] | Forked

_MARK = "MOROCCO_TESTS_CLUSTER"
_SETTINGS = {"DASK_DISTRIBUTED__DIAGNOSTICS__NVML": "False"}  # a stand-in plays the driver
preload(
    "distributed.cli.dask_scheduler", "distributed.cli.dask_worker", "morocco.suite.dask_worker"
)


class Worker:
    """A worker, and its nanny if it has one."""

    def __init__(self, process: Process, log: Path) -> None:
        self._process, self._log = process, log

    @property
    def log(self) -> str:
        """What it has printed so far."""
        return self._log.read_text(errors="replace")

    @property
    def address(self) -> str:
        """The address, once the worker has started; of the latest one if a nanny restarted it."""
        started = [line for line in self.log.splitlines() if "Start worker at:" in line]
        return started[-1].split()[-1] if started else ""

    def wait(self) -> None:
        """Wait until the scheduler has registered the worker."""
        until(lambda: not self.is_running or self.log.count("Registered to:"))
        assert self.is_running, self.log

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process that does the work."""
        threads = Path(f"/proc/{self._process.pid}/task").glob("*/children")
        children = [int(pid) for thread in threads for pid in thread.read_text().split()]
        spawned = [pid for pid in children if _is_spawned(pid)]
        return spawned[0] if spawned else self._process.pid

    def kill(self) -> None:
        """Kill the process that does the work; a nanny starts it again."""
        os.kill(self.pid, signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the nanny, or to the worker if it has none."""
        self._process.send_signal(number)


class DaskCluster:
    """A scheduler and its workers; leaving the context ends everything they started.

    One thread each, no dashboard, free ports of 127.0.0.1.
    """

    def __init__(
        self,
        workers: int = 2,
        options: Sequence[str] = ("--no-nanny",),
        env: Mapping[str, str] | None = None,
        tls: Sequence[str] = (),
    ) -> None:
        """`options` go to `dask worker`; `env` is added to the scheduler's environment.

        `tls` are the options of TLS, for both.
        """
        self._count, self._options, self._env, self._tls = workers, options, env, tls
        self._folder = Path(tempfile.mkdtemp(prefix="dask-"))
        self._mark = uuid.uuid4().hex
        self._scheduler: Process | None = None
        self._processes: list[Process] = []
        self.workers: list[Worker] = []
        self.address = ""

    def __enter__(self) -> DaskCluster:
        try:
            self._start_scheduler()
            for _ in range(self._count):
                self.start_worker(*self._options)
            self.wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, error: type[BaseException] | None = None, *_: object) -> None:
        if error:  # pytest shows what a failed test has printed
            for log in sorted(self._folder.glob("*.log")):
                print(f"{log.name}:\n{log.read_text(errors='replace')}")  # noqa: T201
        variable = f"{_MARK}={self._mark}"
        for process in self._processes:
            process.kill()
            process.wait()
        while left := [pid for pid in processes_with(variable) if not _is_reaped(pid)]:
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)

    def start_worker(
        self, *options: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> Worker:
        """Start another worker without waiting for it; see `wait`."""
        words = ["worker", self.address, "--nthreads", "1", "--host", "127.0.0.1"]
        words += ["--memory-limit", "0", "--local-directory", str(self._folder)]
        words += self._tls
        log = self._folder / f"worker-{len(self.workers)}.log"
        worker = Worker(self._run(*words, *options, log=log, env=env, cwd=cwd), log)
        self.workers.append(worker)
        return worker

    def wait(self) -> None:
        """Wait until all workers have registered."""
        for worker in self.workers:
            worker.wait()

    @property
    def targets(self) -> dict[int, int]:
        """The targets that runs have started as bare processes, each with its worker's PID."""
        found = {pid: _read_owner(pid) for pid in processes_with(f"{_MARK}={self._mark}")}
        return {pid: owner for pid, owner in found.items() if owner and not _is_reaped(pid)}

    def kill_scheduler(self) -> None:
        assert self._scheduler
        self._scheduler.kill()
        self._scheduler.wait()

    def _start_scheduler(self) -> None:
        file, log = self._folder / "scheduler.json", self._folder / "scheduler.log"
        words = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file)]
        words += self._tls
        self._scheduler = scheduler = self._run(*words, log=log, env=self._env)
        until(lambda: scheduler.poll() is not None or _read_address(file))
        self.address = _read_address(file)
        assert self.address, log.read_text()

    def _run(
        self,
        *words: str,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Process:
        plain = {key: value for key, value in os.environ.items() if not key.startswith("MOROCCO_")}
        whole = {**plain, **_SETTINGS, **(env or {}), _MARK: self._mark}
        command = ["dask", *words, "--no-dashboard"]
        log.touch()
        process: Process
        if env or cwd:  # a Python of its own
            with log.open("wb") as file:
                process = subprocess.Popen(
                    [sys.executable, "-m", *command],
                    env=whole,
                    cwd=cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                )
        else:
            process = Forked(command, (Path(os.devnull), log, log), whole)
        self._processes.append(process)
        return process


def _read_address(file: Path) -> str:
    with suppress(OSError, ValueError):  # not written yet, or only in part
        return str(json.loads(file.read_text())["address"])
    return ""


def _read_owner(pid: int) -> int:
    """Return the PID of the process that started a target, or 0 if this is no target."""
    with suppress(OSError):
        for setting in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if setting.startswith(b"MOROCCO_TARGET="):
                return int(setting.split(b"/")[-2])
    return 0


def _is_spawned(pid: int) -> bool:
    """Return whether a nanny's child is its worker, not a helper process of Python."""
    with suppress(OSError):
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _is_reaped(pid: int) -> bool:
    """Return whether a process has ended, even if it is still listed as a zombie."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    return True
