"""An engine that answers late: the run time stays the target's own, or the run fails."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Literal

import pytest
from conftest import Command

from engines import SlowEngine
from gpu_machine import require_root
from runs import Bench, read_failed_record, read_log, read_record, run_bench_behind

DELAY = 0.6
LONG_DELAY = 2.0
TOLERANCE = 0.45
"""Seconds; the benchmark shows how near it comes where nothing else runs."""
Late = Literal["request", "answer"]
CALLS: list[tuple[str, Late]] = [
    ("/containers/create", "answer"),
    ("/attach", "request"),
    ("/attach", "answer"),
    ("/start", "request"),
    ("/start", "answer"),
    ("/json", "request"),
    ("/json", "answer"),
    ("/wait", "request"),
    ("/wait", "answer"),
    ("?v=True", "answer"),  # remove
]
EACH_CALL = "/containers/morocco-"


@pytest.fixture
def image(command_image: Command) -> str:
    """Live for a second; the end comes early if the clock starts late, late if the input does."""
    return command_image("sh", "-c", "sleep 0.3; cat; sleep 0.7")


def measure(image: str, bench: Bench, log: Path, **more: Any) -> float:
    """Return the run time of a container, from its record."""
    bench(image, "-o", log, "--force", **more).succeeds()
    return float(read_record(log)["run_time"])


@pytest.mark.parametrize(("call", "late"), CALLS)
def test_a_call_that_takes_longer_does_not_change_the_run_time(
    call: str, late: Late, image: str, bench: Bench, log: Path, tmp_path: Path
) -> None:
    with SlowEngine(tmp_path, call, DELAY, late=late) as engine:
        slow = measure(image, bench, log, env={"DOCKER_HOST": engine.address})
    assert slow == pytest.approx(measure(image, bench, log), abs=TOLERANCE)


def test_a_run_waits_for_no_answer_of_the_engine(
    image: str, bench: Bench, log: Path, tmp_path: Path
) -> None:
    with SlowEngine(tmp_path, EACH_CALL, DELAY, late="answer") as engine:
        run_time = measure(image, bench, log, env={"DOCKER_HOST": engine.address})
    assert 1 <= run_time < 1 + 0.9 * DELAY
    assert read_record(log)["monitor"]["fed_late"] < DELAY / 2
    assert read_log(log)[1]["ram"] > 0


def measure_blind(
    image: str, data_dir: Path, log: Path, engine: SlowEngine
) -> subprocess.CompletedProcess[str]:
    """Run `bench` where the kernel does not tell which processes are new."""
    hidden = 'mount --bind /dev/null /proc/sys/kernel/ns_last_pid && exec "$@"'
    apart = (*require_root(), "unshare", "--mount", "sh", "-c", hidden, "sh")
    prefix = (*apart, "env", f"DOCKER_HOST={engine.address}")
    return run_bench_behind(prefix, image, data_dir, log)


def test_a_run_fails_where_nobody_tells_in_time_that_the_container_runs(
    image: str, data_dir: Path, log: Path, tmp_path: Path
) -> None:
    with SlowEngine(tmp_path, EACH_CALL, DELAY, late="answer") as engine:
        done = measure_blind(image, data_dir, log, engine)
    assert done.returncode == 4, done.stderr
    assert "s late that the container runs" in done.stderr
    assert read_failed_record(log)["failure"]["kind"] == "EngineError"
    assert not log.exists()


def test_readings_begin_at_the_latest_when_the_engine_tells_the_process(
    command_image: Command, data_dir: Path, log: Path, tmp_path: Path
) -> None:
    image = command_image("sh", "-c", "cat; sleep 5.5")
    with SlowEngine(tmp_path, "/json", LONG_DELAY, late="answer") as engine:
        done = measure_blind(image, data_dir, log, engine)
    assert "s after the start" in done.stderr
    assert "read-late" in read_record(log)["warning_codes"]
    first, second, *_ = read_log(log)
    assert first["ram"] is None
    assert second["ram"] > 0
    # The first look may come before the start, and then it takes a second one.
    assert LONG_DELAY < second["timestamp"] - first["timestamp"] < 2 * LONG_DELAY + 1


def test_a_container_that_ends_before_anybody_tells_its_process_was_not_read(
    image: str, data_dir: Path, log: Path, tmp_path: Path
) -> None:
    with SlowEngine(tmp_path, "/json", LONG_DELAY, late="answer") as engine:
        done = measure_blind(image, data_dir, log, engine)
    assert "not at all" in done.stderr
    assert read_record(log)["peaks"]["ram"] is None


HUNG = "/kill|?v=True"
"""What ends a container, and what removes it."""


def test_a_hung_engine_is_told_and_a_second_signal_ends_the_wait(
    command_image: Command, bench: Bench, log: Path, tmp_path: Path
) -> None:
    image = command_image("sh", "-c", "cat; sleep 60")
    with SlowEngine(tmp_path, HUNG, 3) as engine:
        env = {"DOCKER_HOST": engine.address}
        with bench.start(image, "-o", log, env=env) as run:
            run.wait_until_sampled(log)
            run.send(signal.SIGTERM)
            assert run.process.stderr
            lines = map(bytes.decode, iter(run.process.stderr.readline, b""))
            told = next(line for line in lines if "Waiting" in line)
            asked_again = time.monotonic()
            run.send(signal.SIGINT)
            error = run.finish().fails(143)
        assert time.monotonic() - asked_again < 2 + 2  # two seconds, where nothing else runs
    assert "Waiting for the engine to kill the container morocco-" in told
    assert error.startswith("Stopped by SIGTERM. The engine does not answer.")
    assert "docker rm -f morocco-" in error
    assert read_failed_record(log)["failure"]["kind"] == "Interrupted"
