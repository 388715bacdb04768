"""What goes wrong in a run: one clear message, an exit code, and nothing left behind.

That no process and no container outlives a run is checked after every one of them, by `Run` and
by the fixture `bench`.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from conftest import Command, Metronome, metronome_process
from docker import DockerClient

from engines import SecondEngine, SlowEngine, on_both_engines, on_every_engine
from gpu_machine import require_root
from morocco.util.units import plural
from runs import Bench, Run, files_in, parse, read_failed_record, read_log, read_record, until

LARGE = 50_000
"""Records: some 10 MB, more than any pipe or engine takes in unread."""
STOPPING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def failed(log: Path) -> Any:
    """Return the record of a failed run that left nothing else than this and its samples."""
    assert files_in(log.parent) == [f"{log.stem}.failed.json", f"{log.name}.failed"]
    lines = parse(Path(f"{log}.failed").read_text())
    assert all(line["ram"] is not None for line in lines[:-1])  # it may be gone at the last
    return read_failed_record(log)


# The target


@on_every_engine
def test_an_exit_code_is_told_with_the_last_words(
    metronome: Metronome, bench: Bench, log: Path
) -> None:
    error = bench(metronome("--exit-code 3 --say out-of-luck"), "-o", log).fails(10)
    assert "exited with code 3" in error
    assert "100 of 100 records handed over, 100 predictions back" in error
    assert error.endswith("\n    out-of-luck")
    record = failed(log)
    assert (record["exit_code"], record["stderr"]) == (3, "out-of-luck\n")
    assert record["failure"] == {"kind": "TargetError", "message": error}


def test_only_the_last_words_are_quoted(command: Command, bench: Bench, log: Path) -> None:
    script = "cat; for n in $(seq 100000); do echo line $n >&2; done; exit 7"
    error = bench(command("sh", "-c", script), "-o", log).fails(10)
    quoted = [line for line in error.splitlines() if line.startswith("    ")]
    assert quoted == [f"    line {n}" for n in range(99991, 100001)]
    assert len(failed(log)["stderr"]) <= 64 * 1024


@on_both_engines
def test_a_container_killed_for_memory_is_told_its_limit(
    metronome_image: Metronome, bench: Bench, log: Path
) -> None:
    error = bench(metronome_image("--eat 200"), "-o", log, "--memory", "64m").fails(11)
    assert "killed for memory: it needed more than --memory 64m" in error
    assert failed(log)["failure"]["kind"] == "OutOfMemory"


def test_a_kill_from_outside_is_most_often_for_memory(bench: Bench, log: Path) -> None:
    error = bench(metronome_process("--kill 9"), "-o", log).fails(11)
    assert re.search("ran out( of memory)?", error)  # as sure as the kernel's counter makes it
    assert failed(log)["exit_code"] == 137


@pytest.mark.parametrize(("number", "code"), [(9, 11), (6, 10)])
def test_a_model_below_a_shell_is_told_by_its_signal(
    number: int, code: int, command: Command, bench: Bench, log: Path
) -> None:
    script = f"cat; sh -c 'kill -{number} $$'; exit $?"
    error = bench(command("sh", "-c", script), "-o", log).fails(code)
    assert ("killed by signal 9" if number == 9 else "code 134") in error
    assert failed(log)["exit_code"] == 128 + number


def test_a_run_that_takes_too_long_is_ended(metronome: Metronome, bench: Bench, log: Path) -> None:
    error = bench(metronome("--hang 60 --say warming-up"), "-o", log, "--timeout", "1s").fails(12)
    assert "still running after 1 s (--timeout)" in error
    assert "100 of 100 records handed over, 100 predictions back" in error
    assert error.endswith("\n    warming-up")
    assert failed(log)["exit_code"] is None


def test_no_prediction_at_all_is_a_failure(metronome: Metronome, bench: Bench, log: Path) -> None:
    error = bench(metronome("--predict never"), "-o", log).fails(13)
    assert "printed no prediction" in error
    assert "It logged nothing to stderr" in error
    assert failed(log)["predictions"]["count"] == 0


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("label=0", "line 1 is not a JSON object: 'label=0'"),
        ('{"label": 0}', "line 1 has no `idx`: '{\"label\": 0}'"),
        ('{"idx": 100}', "line 1 has an `idx` that no record has: '{\"idx\": 100}'"),
        ('{"idx": 7}', "100 predictions for 1 of 100 different idx"),
    ],
)
def test_predictions_that_are_none_are_a_failure(
    line: str, reason: str, command: Command, bench: Bench, log: Path
) -> None:
    junk = f"while read -r record; do echo '{line}'; done; echo ready >&2"
    error = bench(command("sh", "-c", junk), "-o", log).fails(15)
    assert reason in error
    assert "--raw-output" in error
    assert error.endswith("\n    ready")
    record = failed(log)
    assert record["failure"]["kind"] == "WrongPredictions"
    assert record["predictions"]["count"] == 100


def test_fewer_predictions_than_records_are_a_failure(bench: Bench, log: Path) -> None:
    target = metronome_process("--predict distinct --after 70")
    log = log.with_name("250_32_01.jsonl")
    error = bench(target, "-o", log, size=250).fails(15)
    assert "70 predictions for 70 of 100 different idx" in error


def test_records_without_idx_have_as_many_predictions(bench: Bench, tmp_path: Path) -> None:
    data = data_of(tmp_path, b'{"text": "a"}\n{"text": "b"}\n')
    bench("exec:cat", data=data).fails(10)  # cat knows no --batch-size
    bench("exec:sh -c cat", data=data).succeeds()
    error = bench("exec:sh -c 'cat | tail -n 99'", data=data).fails(15)
    assert "99 predictions for 99 of 100 records" in error


def test_output_that_is_raw_is_not_checked(bench: Bench, log: Path) -> None:
    junk = "exec:sh -c 'while read -r record; do echo label=0; done'"
    assert bench(junk, "-o", log, "--raw-output").succeeds().warnings == []
    assert read_record(log)["arguments"]["raw_output"] is True


def test_a_target_that_hangs_unread_is_ended_by_the_time_limit(
    metronome: Metronome, bench: Bench, log: Path
) -> None:
    log = log.with_name(f"{LARGE}_32_01.jsonl")
    target = metronome("--read never --hang 60")
    error = bench(target, "-o", log, "--timeout", "1.5", size=LARGE).fails(12)
    assert "not seem to read its input" in error
    assert failed(log)["records_fed"] < LARGE


@pytest.mark.parametrize("read", ["never", "close", "some"])
def test_a_target_that_ends_well_but_unread_has_failed(
    read: str, metronome: Metronome, bench: Bench, log: Path
) -> None:
    log = log.with_name(f"{LARGE}_32_01.jsonl")
    error = bench(metronome(f"--read {read}"), "-o", log, size=LARGE).fails(14)
    assert "before it had read its input" in error
    assert "of 50,000 records handed over" in error
    assert failed(log)["records_fed"] < LARGE


def test_a_failed_run_leaves_no_trace_once_a_good_one_has_its_place(
    bench: Bench, log: Path
) -> None:
    bench(metronome_process("--exit-code 3"), "-o", log).fails(10)
    failed(log)
    bench(metronome_process(""), "-o", log).succeeds()
    assert files_in(log.parent) == ["100_32_01.json", log.name]


def test_predictions_of_a_failed_run_are_set_aside(
    metronome: Metronome, bench: Bench, tmp_path: Path
) -> None:
    kept = tmp_path / "kept" / "predictions.jsonl"
    finished = bench(metronome("--exit-code 3"), "--predictions", kept)
    finished.fails(10)
    assert finished.lines[-1]["ram"] is not None  # so stdout is no finished log either
    assert files_in(kept.parent) == [f"{kept.name}.failed"]
    assert len(Path(f"{kept}.failed").read_text().splitlines()) == 100


# Signals


@pytest.mark.parametrize("number", STOPPING, ids=lambda number: number.name)
def test_a_signal_ends_the_run(
    number: signal.Signals, metronome: Metronome, bench: Bench, log: Path
) -> None:
    with bench.start(metronome("--hang 60"), "-o", log) as run:
        run.wait_until_sampled(log)
        run.send(number)
        error = run.finish().fails(128 + number)
    assert error.startswith("Stopped by ")
    assert failed(log)["failure"]["kind"] == "Interrupted"


@pytest.mark.parametrize("step", range(8))
def test_a_signal_leaves_nothing_at_whatever_moment_it_comes(
    step: int, metronome: Metronome, kind: str, bench: Bench, log: Path
) -> None:
    number = STOPPING[step % 3]
    with bench.start(metronome("--hang 60"), "-o", log) as run:
        run.wait_until_ready()
        time.sleep(step * (0.12 if kind == "container" else 0.02))
        run.send(number)
        run.finish().fails(128 + number)
    assert not log.exists()
    assert not Path(f"{log}.part").exists()


@pytest.mark.docker
@pytest.mark.parametrize("request_path", ["/containers/create", "/start"])
def test_a_signal_leaves_nothing_of_what_the_engine_is_still_at(
    request_path: str, metronome_image: Metronome, bench: Bench, log: Path, tmp_path: Path
) -> None:
    with SlowEngine(tmp_path, request_path, delay=0.5) as engine:
        env = {"DOCKER_HOST": engine.address}
        with bench.start(metronome_image("--hang 60"), "-o", log, env=env) as run:
            assert engine.asked.wait(30)
            run.send(signal.SIGINT)
            run.finish().fails(130)
    assert not log.exists()


@on_every_engine
def test_a_second_signal_does_not_disturb_the_cleaning_up(
    metronome: Metronome, bench: Bench, log: Path
) -> None:
    with bench.start(metronome("--hang 60"), "-o", log) as run:
        run.wait_until_sampled(log)
        for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
            run.send(number)
            time.sleep(0.01)
        run.finish().fails(130)
    failed(log)


def test_signals_that_come_all_at_once_end_the_run_once(bench: Bench, log: Path) -> None:
    with bench.start(metronome_process("--hang 60"), "-o", log) as run:
        run.wait_until_sampled(log)
        for number in (signal.SIGSTOP, *STOPPING, signal.SIGCONT):
            run.send(number)
        finished = run.finish()
    assert finished.error.startswith("Stopped by ")
    assert finished.code in [128 + number for number in STOPPING]
    failed(log)


def test_a_signal_while_predictions_pour_in(command: Command, bench: Bench, tmp_path: Path) -> None:
    kept = tmp_path / "predictions.jsonl"
    with bench.start(command("sh", "-c", "yes '{}'"), "--predictions", kept) as run:
        part = Path(f"{kept}.part")
        until(lambda: part.exists() and part.stat().st_size > 2**20)
        run.send(signal.SIGINT)
        run.finish().fails(130)
    assert not kept.exists()


def test_nohup_keeps_a_run_going(bench: Bench, log: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # which a child inherits
    try:
        with bench.start(metronome_process("--hang 0.5"), "-o", log) as run:
            run.wait_until_ready()
            run.send(signal.SIGHUP)
            run.finish().succeeds()
    finally:
        signal.signal(signal.SIGHUP, before)
    assert log.exists()


# Killed without a chance to clean up


@pytest.fixture
def second_engine() -> Iterator[SecondEngine]:
    """An engine that may be killed."""
    with SecondEngine(require_root()) as engine:
        yield engine


STRAYS = """
import json, os, signal, subprocess, sys, time
from pathlib import Path

def start(name, life):
    target = f"exec:sh -c 'cat; sleep {life}'"
    words = ["bench", target, sys.argv[1], "parus", "-o", f"{sys.argv[2]}/{name}", "--raw-output"]
    command = [sys.executable, "-m", "morocco", *words, "--gpus", "none", "--input-size", "9"]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

def find(run):
    return [path.name for path in Path("/proc").glob("[0-9]*") if is_of(run, path / "environ")]

def is_of(run, environment):
    try:
        return b"MOROCCO_TARGET=/%d/" % run.pid in environment.read_bytes()
    except OSError:
        return False

def await_target(run):
    while not find(run):
        time.sleep(0.01)

killed, live = start("killed", 60), start("live", 60)
await_target(killed), await_target(live)
killed.kill(), killed.wait()
left = find(killed)
told = start("next", 0).communicate()[1]
print(json.dumps([len(left), find(killed), len(find(live)), told]))
live.terminate(), live.wait()
"""


def test_the_next_bench_ends_the_processes_that_a_killed_one_left(
    data_dir: Path, tmp_path: Path
) -> None:
    """In a PID namespace, or the `bench` of another test would do so."""
    apart = (*require_root(), "unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
    command = [*apart, sys.executable, "-c", STRAYS, str(data_dir), str(tmp_path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=60)
    left, left_then, live, told = json.loads(done.stdout)
    assert left >= 1
    assert left_then == []
    assert live >= 1
    assert f"A killed `morocco bench` had left {plural(left, 'process')} at work; ended." in told


@pytest.mark.docker
def test_the_next_bench_removes_the_container_that_a_killed_one_left(
    second_engine: SecondEngine, bench: Bench, log: Path
) -> None:
    second_engine.make_image("quick", "/bin/sh", "-c", "cat")
    env = {"DOCKER_HOST": second_engine.address}
    with closing(DockerClient(second_engine.address)) as client:

        def count(run: Run) -> int:
            return len(client.containers.list(filters={"label": f"morocco={run.pid}"}))

        image = second_engine.image
        with bench.start(image, "-o", log, env=env) as run, bench.start(image, env=env) as live:
            until(lambda: count(run) and count(live))
            run.wait_until_sampled(log)
            run.process.kill()
            run.process.wait()
            assert count(run) == 1
            (told,) = bench("quick", env=env).succeeds().warnings
            assert count(run) == 0
            assert count(live) == 1
            live.send(signal.SIGINT)
            live.finish().fails(130)
    assert told == "A killed `morocco bench` had left 1 container at work; ended."


# Where the samples and predictions go


def test_a_disk_that_fills_up_ends_the_run(
    metronome: Metronome, bench: Bench, small_disk: Path
) -> None:
    log = small_disk / "parus" / "100_32_01.jsonl"
    error = bench(metronome("--hang 60"), "-o", log, "--rate", 50).fails(6)
    assert error == f"Cannot write {log}.part: No space left on device."
    assert files_in(log.parent) == [f"{log.name}.failed"]  # no room for the record


def test_a_disk_without_room_for_the_record_has_no_finished_log(
    bench: Bench, small_disk: Path
) -> None:
    log = small_disk / "parus" / "100_32_01.jsonl"
    error = bench(metronome_process(""), "-o", log).fails(6)
    assert f"Cannot finish {log}: No space left on device" in error
    assert files_in(log.parent) == [f"{log.name}.failed"]
    assert f"{log}.failed" in error


def test_a_disk_too_small_for_the_predictions_ends_the_run(
    command: Command, bench: Bench, small_disk: Path, log: Path
) -> None:
    kept = small_disk / "predictions.jsonl"
    log = log.with_name("20000_32_01.jsonl")
    target = command("sh", "-c", "cat; sleep 60")
    error = bench(target, "-o", log, "--predictions", kept, size=20_000).fails(6)
    assert error == "Cannot write the predictions: No space left on device."
    assert files_in(small_disk) == ["filler", f"{kept.name}.failed"]
    failed(log)


def test_a_full_stdout_ends_the_run(metronome: Metronome, bench: Bench) -> None:
    with Path("/dev/full").open("wb") as full, bench.start(metronome(""), stdout=full) as run:
        error = run.finish().fails(6)
    assert "Cannot write the samples to stdout: No space left on device" in error


def test_a_reader_that_has_seen_enough_ends_the_run(metronome: Metronome, bench: Bench) -> None:
    source, stdout = os.pipe()
    with bench.start(metronome("--hang 60"), stdout=stdout) as run:
        os.close(stdout)
        assert os.read(source, 10)
        os.close(source)
        error = run.finish().fails(6)
    assert "Cannot write the samples to stdout: Broken pipe" in error


def test_without_a_stdout_a_log_has_to_be_named(data_dir: Path) -> None:
    bench = f"{sys.executable} -m morocco bench exec:cat {data_dir} parus"
    done = subprocess.run(
        ["sh", "-c", f"{bench} >&-"], stderr=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == 6
    assert done.stderr == "morocco: error: There is no stdout to write the samples to; use -o.\n"


@pytest.mark.parametrize("option", ["--output", "--predictions"])
def test_a_folder_that_cannot_be_made_is_told(option: str, bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    finished = bench(metronome_process(""), option, tmp_path / "file" / "parus" / "100_32_01.jsonl")
    assert "Not a directory" in finished.fails(6)
    assert files_in(tmp_path) == ["file"]


# The data


def data_of(tmp_path: Path, content: bytes) -> Path:
    """Return a folder in which the data of PARus is this."""
    file = tmp_path / "data" / "PARus" / "val.jsonl"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    return tmp_path / "data"


def test_data_that_is_not_there_is_told(bench: Bench, log: Path, tmp_path: Path) -> None:
    error = bench(metronome_process(""), "-o", log, data=tmp_path / "nowhere").fails(3)
    assert f"There is no folder {tmp_path}/nowhere" in error
    assert not log.parent.exists()


def test_a_file_that_is_not_there_is_told(bench: Bench, tmp_path: Path) -> None:
    error = bench(metronome_process(""), data=tmp_path).fails(3)
    assert f"looked for {tmp_path}/PARus/val.jsonl" in error


def test_the_name_of_a_task_in_other_letters_is_guessed(bench: Bench) -> None:
    assert "did you mean 'parus'?" in bench(metronome_process(""), task="PARus").fails(3)


def test_a_command_without_its_prefix_is_guessed(bench: Bench) -> None:
    assert "'exec:python infer.py'" in bench("python infer.py").fails(3)


def test_all_that_was_looked_for_is_told(bench: Bench, data_dir: Path) -> None:
    error = bench(metronome_process(""), task="haiku").fails(3)
    assert f"looked for {data_dir}/haiku/val.jsonl and {data_dir}/haiku.jsonl" in error
    assert "danetqa, lidirus, muserc, parus" in error


@pytest.mark.parametrize("content", [b"", b"\n \n\n"])
def test_an_empty_file_is_no_data(content: bytes, bench: Bench, log: Path, tmp_path: Path) -> None:
    error = bench(metronome_process(""), "-o", log, data=data_of(tmp_path, content)).fails(3)
    assert "PARus/val.jsonl is empty" in error
    assert not log.parent.exists()


@pytest.mark.parametrize("line", [b"idx,label", b"[1, 2]", b'{"idx": 1', b"\xff\xfe{}"])
def test_the_line_that_is_no_record_is_told(
    line: bytes, bench: Bench, log: Path, tmp_path: Path
) -> None:
    data = data_of(tmp_path, b'{"idx": 0}\n\n' + line + b"\n")
    error = bench(metronome_process(""), "-o", log, data=data).fails(3)
    assert "PARus/val.jsonl, line 3: not a JSON object" in error
    assert not log.parent.exists()


def test_a_byte_order_mark_does_no_harm(bench: Bench, tmp_path: Path) -> None:
    kept = tmp_path / "predictions.jsonl"
    data = data_of(tmp_path, b'\xef\xbb\xbf{"idx": 0}\r\n{"idx": 1}')
    bench(metronome_process(""), "--predictions", kept, data=data, size=4).succeeds()
    assert [json.loads(line)["idx"] for line in kept.read_text().splitlines()] == [0, 1, 0, 1]


# The engine


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("unix:///nonexistent.sock", "engine at unix:///nonexistent.sock (DOCKER_HOST): No such"),
        ("tcp://127.0.0.1:1", "Connection refused. Start it (sudo systemctl start docker"),
        ("tcp://192.0.2.1:2375", "runs on another machine"),
        ("ssh://somebody@example.org", "runs on another machine"),
        ("nonsense://", "Cannot reach the container engine at nonsense://"),
    ],
)
def test_an_engine_that_is_not_here_is_told(
    address: str, reason: str, bench: Bench, log: Path
) -> None:
    error = bench("model", "-o", log, env={"DOCKER_HOST": address}).fails(4)
    assert reason in error
    assert failed(log)["started"] is None


@pytest.mark.docker
def test_an_engine_that_dies_ends_the_run(
    second_engine: SecondEngine, bench: Bench, log: Path
) -> None:
    env = {"DOCKER_HOST": second_engine.address}
    with bench.start(second_engine.image, "-o", log, env=env) as run:
        run.wait_until_sampled(log, lines=2)
        killed = time.monotonic()
        second_engine.kill()
        error = run.finish().fails(4)
    assert time.monotonic() - killed < 10
    assert "The connection to the container engine is lost (Connection refused)" in error
    assert "docker rm -f morocco-" in error
    assert failed(log)["failure"]["kind"] == "EngineError"
    assert len(read_log(Path(f"{log}.failed"))) > 1
