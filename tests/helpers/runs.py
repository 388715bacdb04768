"""Runs the real program and reads what it printed, wrote and left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from forked import run_forked

METRONOME = Path(__file__).with_name("metronome") / "metronome.py"
KEYS = ["timestamp", "cpu_usage", "ram", "gpu_usage", "gpu_ram"]
TIMEOUT = 100
"""Seconds after which anything here counts as hanging."""

_READERS = ("check", "pack", "report", "score", "stats")
"""The commands that start no process."""
_MARK = "MOROCCO_TESTS_RUN"
_ERROR = "morocco: error: "
_WARNING = "morocco: warning: "
_NEIGHBOURS = ("foreign-cpu", "other-runs", "steal", "fed-late")
"""Codes of the warnings that other tests, at work at the same time, may cause."""
_NEIGHBOURS_TOLD = re.compile(
    r"[^\r\n]*(Other processes kept |Another morocco run |The hypervisor gave |"
    r"The engine reported [\d.]+ s late that the target runs)[^\n]*\n"
)

Found = TypeVar("Found")


@dataclass(frozen=True)
class Finished:
    """The result of a program that has ended."""

    pid: int
    code: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The samples on stdout."""
        return parse(self.stdout)

    @property
    def warnings(self) -> list[str]:
        return [
            line.removeprefix(_WARNING)
            for line in self.stderr.splitlines()
            if line.startswith(_WARNING)
        ]

    @property
    def error(self) -> str:
        """The only error message, with the lines it quotes."""
        before, _, message = self.stderr.partition(_ERROR)
        assert message, f"no error on stderr: {self.stderr!r}"
        assert all(line.startswith(_WARNING) for line in before.splitlines()), self.stderr
        assert _ERROR not in message, f"more than one error: {self.stderr}"
        assert "Traceback" not in message, self.stderr
        assert self.code != 0
        return message.rstrip("\n")

    def succeeds(self) -> Finished:
        assert self.code == 0, self.stderr
        assert _ERROR not in self.stderr
        assert "Traceback" not in self.stderr
        return self

    def fails(self, code: int) -> str:
        """Return the error; the exit code must be this one."""
        assert self.code == code, (self.code, self.stderr)
        return self.error


class Run:
    """A running morocco; leaving the context ends it."""

    def __init__(
        self,
        *args: object,
        env: Mapping[str, str] | None = None,
        stdout: int | IO[bytes] = subprocess.PIPE,
        stderr: int | IO[bytes] = subprocess.PIPE,
    ) -> None:
        self._mark = uuid.uuid4().hex
        plain = _without_settings() | {"MOROCCO_SUITE_NO_DOCTOR": "1"}  # it takes eight seconds
        if Path("/dev/nvidiactl").exists():  # the tests use no real GPU
            plain |= {"MOROCCO_BENCH_GPUS": "none", "MOROCCO_SUITE_GPUS": "none"}
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "morocco", *map(str, args)],
            env={**plain, **(env or {}), _MARK: self._mark},
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            bufsize=0,  # a buffer would keep lines from `communicate`
        )

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                self.process.kill()
        for stream in (self.process.stdout, self.process.stderr):
            if stream:
                stream.close()
        self.process.wait()

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def read_line(self) -> dict[str, Any]:
        """Wait for the next sample on stdout."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line.endswith(b"\n"), f"stdout ended: {line!r}"
        return parse(line.decode())[0]

    def wait_until_ready(self) -> None:
        """Wait until the program handles signals; before that the interpreter is still loading."""
        until(lambda: not self.is_running or _catches(self.pid, signal.SIGTERM))

    def wait_until_sampled(self, log: Path, lines: int = 1) -> None:
        """Wait until the unfinished log has this many samples."""
        part = Path(f"{log}.part")
        until(lambda: part.exists() and part.read_text().count("\n") >= lines)

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def finish(self) -> Finished:
        """Wait for the end; the run must leave no process behind."""
        try:
            out, err = self.process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            _, err = self.process.communicate()
            raise AssertionError(f"morocco hangs; on stderr: {err!r}") from None
        left = [pid for pid in processes_with(f"{_MARK}={self._mark}") if not _is_dying(pid)]
        commands = [_command_line(pid) for pid in left]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        assert not left, f"processes were left behind: {commands}"
        told = without_neighbours((err or b"").decode())
        return Finished(self.pid, self.process.returncode, (out or b"").decode(), told)


class Bench:
    """Runs `morocco bench`, by default on 100 records in batches of 32."""

    def __init__(self, data_dir: Path, env: Mapping[str, str] | None = None) -> None:
        """`env` is added to the environment of all runs."""
        self._data_dir = data_dir
        self._env = env or {}
        self.pids: list[int] = []

    def __call__(self, target: str, *options: object, **more: Any) -> Finished:
        """Run to the end."""
        with self.start(target, *options, **more) as run:
            return run.finish()

    def start(
        self,
        target: str,
        *options: object,
        task: str = "parus",
        size: int = 100,
        data: Path | None = None,
        env: Mapping[str, str] | None = None,
        **streams: Any,
    ) -> Run:
        """Start a run and return it."""
        sizes = ("--input-size", size, "--batch-size", 32)
        command = ("bench", target, data or self._data_dir, task, *sizes, *options)
        run = Run(*command, env={**self._env, **(env or {})}, **streams)
        self.pids.append(run.pid)
        return run


@contextmanager
def beside(command: Sequence[str], count: int) -> Iterator[None]:
    """Run a command several times at once, until the context ends."""
    with ExitStack() as stack:
        for _ in range(count):
            process = subprocess.Popen(command)
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield


def run_morocco(*args: object, env: Mapping[str, str] | None = None) -> Finished:
    """Run the program to its end; commands that start no process are forked, which is faster."""
    if env is None and args[0] in _READERS:
        done = run_forked("morocco", *args, env=_without_settings(), timeout=TIMEOUT)
        return Finished(0, done.returncode, done.stdout, done.stderr)
    with Run(*args, env=env) as run:
        return run.finish()


def _without_settings() -> dict[str, str]:
    """Return our environment without the options of morocco that the user has set in it."""
    return {key: value for key, value in os.environ.items() if not key.startswith("MOROCCO_")}


def until(condition: Callable[[], Found], timeout: float = TIMEOUT) -> Found:
    """Wait until a condition is true and return its value."""
    deadline = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.005)
    return found


def parse(text: str) -> list[dict[str, Any]]:
    """Parse JSON Lines."""
    return [json.loads(line) for line in text.splitlines()]


def read_log(path: Path) -> list[dict[str, Any]]:
    return parse(path.read_text())


def read_record(log: Path) -> Any:
    """Return the record beside a log, without the warnings that other tests may cause."""
    record = json.loads(log.with_suffix(".json").read_text())
    told = zip(record["warnings"], record["warning_codes"], strict=True)
    kept = [(text, code) for text, code in told if code not in _NEIGHBOURS]
    return record | {
        "warnings": [text for text, _ in kept],
        "warning_codes": [code for _, code in kept],
    }


def without_neighbours(stderr: str) -> str:
    """Return what a program said, without the warnings that other tests may cause."""
    return _NEIGHBOURS_TOLD.sub("", stderr)


def read_failed_record(log: Path) -> Any:
    return json.loads(log.with_suffix(".failed.json").read_text())


def run_time(lines: list[dict[str, Any]]) -> float:
    return float(lines[-1]["timestamp"]) - float(lines[0]["timestamp"])


def files_in(folder: Path) -> list[str]:
    """Return the names of all files below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def processes_with(variable: str) -> list[int]:
    """Return the PIDs of the processes with this `KEY=VALUE` in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                environment = (folder / "environ").read_bytes()
            except OSError:
                continue
            if variable.encode() in environment.split(b"\0"):
                found.append(int(folder.name))
    return found


def _is_dying(pid: int) -> bool:
    """Return whether a process ends within two seconds, or only has to be reaped."""
    try:
        until(lambda: not Path(f"/proc/{pid}").exists() or _state(pid) in "ZX", timeout=2)
    except AssertionError:
        return False
    return True


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return f"{pid}, gone by now"


def _catches(pid: int, number: signal.Signals) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) & 1 << (number - 1))


def run_bench_behind(
    prefix: Sequence[str], image: str, data_dir: Path, log: Path
) -> subprocess.CompletedProcess[str]:
    """Run `bench` by a command that changes what it sees of the machine."""
    sizes = ("--input-size", "100", "--batch-size", "32", "--gpus", "none")
    words = (image, str(data_dir), "parus", *sizes, "-o", str(log))
    return subprocess.run(
        [*prefix, sys.executable, "-m", "morocco", "bench", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )
