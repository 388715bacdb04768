"""Runs `morocco suite` on twenty made-up records per task, and reads what it wrote."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from morocco.tasks import TASKS
from runs import Finished, Run, processes_with, read_record

TWO = ("--tasks", "parus,rcb")
PARUS = ["parus/1_1_01", "parus/20_4_01", "parus/1_1_02", "parus/20_4_02"]
"""The runs of one task, in their order."""

_MARK = "MOROCCO_TESTS_SUITE"
_DIARIST = """
records=$(cat)
size=$(printf '%s\\n' "$records" | wc -l)
cores=$(grep Cpus_allowed_list /proc/self/status | cut -f 2)
gpus=${{CUDA_VISIBLE_DEVICES-any}}
echo "$0 $2 $size $$ ${{gpus:-none}} $cores" >> {diary}
{then}
printf '%s\\n' "$records"
"""


@dataclass(frozen=True)
class Entry:
    """What a target noted about one of its runs."""

    task: str
    batch_size: int
    records: int
    pid: int
    gpus: str
    """The GPUs it sees, or "none"; "any" if they were not restricted."""
    cores: frozenset[int]

    @classmethod
    def parse(cls, line: str) -> Entry:
        task, batch_size, records, pid, gpus, cores = line.split()
        return cls(task, int(batch_size), int(records), int(pid), gpus, parse_cores(cores))


class Suites:
    """Runs `morocco suite`, by default twice on PARus in batches of four."""

    def __init__(self, folder: Path, env: Mapping[str, str] | None = None) -> None:
        """`env` is added to the environment of all runs."""
        self.folder = folder
        self._env = env or {}
        self.data, self.logs = folder / "data", folder / "logs"
        self._diary = folder / "diary"
        self._mark = uuid.uuid4().hex
        self.pids: list[int] = []
        for task in TASKS.values():
            path = self.data / task.title / task.validation
            path.parent.mkdir(parents=True)
            path.write_text("".join(f'{{"idx": {idx}}}\n' for idx in range(20)))

    def target(self, then: str = "") -> str:
        """Return a target that notes its runs, does `then`, and predicts its input.

        `then` is a shell script: $0 is the task, $2 the batch size.
        """
        script = _DIARIST.format(diary=shlex.quote(str(self._diary)), then=then)
        return f"exec:sh -c {shlex.quote(script)} {{task}}"

    def hang_at(self, number: int) -> str:
        """Return a target whose run of this number never ends; warm-ups count."""
        return self.target(
            f"[ $(wc -l < {shlex.quote(str(self._diary))}) -ne {number} ] || sleep 600"
        )

    def start(
        self, *options: object, target: str | None = None, logs: Path | None = None, **streams: Any
    ) -> Run:
        """Start a suite and return it."""
        place = ("--logs", logs or self.logs)
        return self.run(*self._arguments(target, *options), *place, **streams)

    def command(self, *options: object, target: str | None = None) -> list[str]:
        """Return the command of a suite, without the folder of its logs."""
        words = ("suite", *self._arguments(target, *options), "--no-doctor", "--quiet")
        return [sys.executable, "-m", "morocco", *map(str, words)]

    def _arguments(self, target: str | None, *options: object) -> tuple[object, ...]:
        defaults = ("--tasks", "parus", "--input-size", 20, "--batch-size", 4, "--repeats", 2)
        return (target or self.target(), self.data, *defaults, *options)

    def __call__(self, *options: object, **more: Any) -> Finished:
        """Run to the end."""
        with self.start(*options, **more) as run:
            return run.finish()

    def run(self, *args: object, env: Mapping[str, str] | None = None, **streams: Any) -> Run:
        """Start a suite with exactly these arguments and return it."""
        run = Run("suite", *args, env={**self._env, **(env or {}), _MARK: self._mark}, **streams)
        self.pids.append(run.pid)
        return run

    @property
    def diary(self) -> list[Entry]:
        """All runs that targets noted, with the warm-ups, in their order."""
        text = self._diary.read_text() if self._diary.exists() else ""
        return [Entry.parse(line) for line in text.splitlines()]

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.jsonl"

    @property
    def done(self) -> list[str]:
        """The names of the finished runs, in the order in which they started."""
        found = [
            path for path in self.logs.rglob("*_*_*.jsonl") if path.with_suffix(".json").exists()
        ]
        found.sort(key=lambda log: str(read_record(log)["started"]))
        return [str(log.relative_to(self.logs).with_suffix("")) for log in found]

    @property
    def next(self) -> str:
        """The command that a suite of less than the leaderboard's names at its end."""
        return f"morocco check {self.logs} --profile {self.logs}/profile.toml"

    @property
    def others(self) -> list[str]:
        """All other files, except the lock of the folder and the profile."""
        files = {
            str(path.relative_to(self.logs)) for path in self.logs.rglob("*") if path.is_file()
        }
        logs = {f"{name}{ending}" for name in self.done for ending in (".json", ".jsonl")}
        return sorted(files - logs - {".morocco-suite", "profile.toml"})

    def snapshot(self) -> dict[str, tuple[bytes, int]]:
        """Return the content and modification time of every finished log and record."""
        paths = [
            self.log(name).with_suffix(end) for name in self.done for end in (".json", ".jsonl")
        ]
        return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}

    @property
    def processes(self) -> list[int]:
        """All processes started by any of the suites that are still running."""
        return processes_with(f"{_MARK}={self._mark}")

    def clean_up(self) -> None:
        """End what is left over; a failed test may leave a target behind."""
        for pid in self.processes:
            os.kill(pid, signal.SIGKILL)


def kill(run: Run) -> None:
    """Kill a suite with SIGKILL."""
    run.send(signal.SIGKILL)
    run.process.wait()


def error_of(finished: Finished, code: int) -> str:
    """Return the error at the end of a suite's output."""
    assert finished.code == code, (finished.code, finished.stderr)
    assert "Traceback" not in finished.stderr
    _, found, error = finished.stderr.partition("morocco: error: ")
    assert found, finished.stderr
    return error.rstrip("\n")


def parse_cores(text: str) -> frozenset[int]:
    """Return the cores of `0,2-4`, as the kernel and Docker write them."""
    spans = [part.partition("-") for part in text.split(",")]
    return frozenset(n for a, _, b in spans for n in range(int(a), int(b or a) + 1))


def write_config(path: Path, content: str, **settings: object) -> Path:
    """Write the file of a suite; settings go before its tables."""
    lines = [f"{name} = {json.dumps(str(value))}\n" for name, value in settings.items()]
    path.write_text("".join(lines) + content)
    return path


def wait_for(path: Path) -> str:
    """Return a shell command that waits until this file exists."""
    return f"until [ -e {shlex.quote(str(path))} ]; do sleep 0.05; done"


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
