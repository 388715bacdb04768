"""What `morocco bench` promises of every target, shown by the program itself."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import pty
import re
import subprocess
import time
from pathlib import Path
from statistics import median

import pytest
from conftest import Command, Metronome, metronome_process

from engines import on_every_engine
from runs import (
    KEYS,
    Bench,
    Finished,
    files_in,
    parse,
    read_failed_record,
    read_log,
    read_record,
    run_morocco,
    run_time,
    until,
    without_neighbours,
)

FIRST_TOOL = re.compile(r"([^/]+)/(\d+)_(\d+)_\d+\.jsonl")
"""How the first MOROCCO tool takes a path of a log apart."""


# The log


def test_samples_come_line_by_line_while_the_target_runs(
    metronome: Metronome, bench: Bench
) -> None:
    with bench.start(metronome("--hang 1.5"), "--rate", 10) as run:
        lines = [run.read_line(), run.read_line()]
        assert run.is_running
        lines += run.finish().succeeds().lines
    beats = [(line["timestamp"] - lines[0]["timestamp"]) * 10 for line in lines[:-1]]
    assert len(beats) >= 10
    assert median(abs(beat - round(beat)) for beat in beats) < 0.3
    assert all(beat >= k - 0.02 for k, beat in enumerate(beats))


def test_a_line_has_five_keys_and_the_last_one_no_readings(
    metronome: Metronome, bench: Bench
) -> None:
    lines = bench(metronome("--hang 0.4")).succeeds().lines
    assert all(list(line) == KEYS for line in lines)
    first, *between, last = lines
    assert first["ram"] > 0
    assert between[0]["ram"] > 2**20
    assert between[0]["cpu_usage"] is not None
    assert [last[key] for key in KEYS[1:]] == [None] * 4
    stamps = [line["timestamp"] for line in lines]
    assert stamps == sorted(stamps)
    assert abs(stamps[-1] - time.time()) < 5


def test_the_first_tool_can_read_the_log(metronome: Metronome, bench: Bench, log: Path) -> None:
    bench(metronome(""), "-o", log).succeeds()
    found = FIRST_TOOL.search(str(log))
    assert found
    assert found.groups() == ("parus", "100", "32")
    assert all(list(line) == KEYS for line in read_log(log))


def test_a_log_has_its_name_only_once_the_run_is_good(
    metronome: Metronome, bench: Bench, log: Path
) -> None:
    with bench.start(metronome("--hang 1"), "-o", log) as run:
        run.wait_until_sampled(log, lines=2)
        assert files_in(log.parent) == [f"{log.name}.part"]
        assert run.finish().succeeds().stdout == ""
    assert files_in(log.parent) == ["100_32_01.json", log.name]


@on_every_engine
def test_the_run_time_is_the_life_of_the_target(
    metronome: Metronome, bench: Bench, log: Path
) -> None:
    bench(metronome("--start-up 1 --rate 100"), "-o", log).succeeds()
    assert 2 <= run_time(read_log(log)) <= 2 * 1.05 + 0.25
    assert read_record(log)["run_time"] == pytest.approx(run_time(read_log(log)), abs=1e-3)


def test_nothing_is_fed_before_the_first_line_is_out(tmp_path: Path, bench: Bench) -> None:
    started, reading = tmp_path / "started", tmp_path / "reading"
    script = f"touch {started}; dd bs=1 count=1 status=none; touch {reading}; cat"
    source, stdout = full_pipe()
    with bench.start(f'exec:sh -c "{script}"', stdout=stdout) as run:
        os.close(stdout)
        until(started.exists)
        time.sleep(0.3)
        assert not reading.exists()
        text = read_all(source).lstrip(b".")
        run.finish().succeeds()
    assert reading.exists()
    assert parse(text.decode())[0]["ram"] > 0


def full_pipe() -> tuple[int, int]:
    """Return a pipe that takes nothing more until somebody reads."""
    source, sink = os.pipe()
    size = fcntl.fcntl(sink, fcntl.F_GETPIPE_SZ)
    assert os.write(sink, b"." * size) == size
    return source, sink


def read_all(source: int) -> bytes:
    with os.fdopen(source, "rb") as file:
        return file.read()


def test_stats_finds_what_bench_wrote(bench: Bench, log: Path, tmp_path: Path) -> None:
    target = metronome_process("--start-up 0.3 --rate 200")
    bench(target, "--batch-size", 1, "-o", log.with_name("1_1_01.jsonl"), size=1).succeeds()
    bench(target, "-o", log).succeeds()
    (estimate,) = run_morocco("stats", tmp_path / "logs").succeeds().lines
    assert estimate["rps"] == pytest.approx(200, rel=0.25)


# Processes


@pytest.mark.timing
@on_every_engine
def test_all_processes_of_the_target_are_counted(metronome: Metronome, bench: Bench) -> None:
    target = metronome("--workers 2 --eat 50 --hang 1.5")
    lines = bench(target, "--rate", 10).succeeds().lines
    assert max(line["ram"] or 0 for line in lines) > 100 * 2**20
    assert max(line["cpu_usage"] or 0 for line in lines) > 0.8


def test_the_model_may_run_below_a_shell(command: Command, bench: Bench) -> None:
    model = "import sys, time; x = b'x' * (50 * 2**20); print(sys.stdin.read()); time.sleep(1)"
    lines = bench(command("sh", "-c", f'python3 -c "{model}"; exit $?')).succeeds().lines
    assert max(line["ram"] or 0 for line in lines) > 50 * 2**20


# Input and output


def test_predictions_are_kept_to_the_byte(
    command: Command, bench: Bench, log: Path, tmp_path: Path, data_dir: Path
) -> None:
    kept = tmp_path / "kept" / "predictions.jsonl"
    bench(command("sh", "-c", "cat"), "-o", log, "--predictions", kept).succeeds()
    data = (data_dir / "PARus" / "val.jsonl").read_bytes()
    assert kept.read_bytes() == data
    assert files_in(kept.parent) == [kept.name]
    record = read_record(log)
    assert record["predictions"]["sha256"] == hashlib.sha256(data).hexdigest()
    assert record["predictions"]["count"] == record["records_fed"] == 100
    assert record["started"] <= record["predictions"]["first"] <= record["predictions"]["last"]
    assert record["data"]["sha256"] == hashlib.sha256(data).hexdigest()


@on_every_engine
def test_twenty_megabytes_go_in_while_twenty_come_out(
    command: Command, bench: Bench, tmp_path: Path, data_dir: Path
) -> None:
    kept = tmp_path / "predictions.jsonl"
    bench(command("sh", "-c", "cat"), "--predictions", kept, size=100_000).succeeds()
    data = (data_dir / "PARus" / "val.jsonl").read_bytes() * 1000
    assert len(data) > 20e6
    assert kept.stat().st_size == len(data)
    assert kept.read_bytes() == data


def test_records_are_fed_again_beyond_the_end_of_the_file(bench: Bench, tmp_path: Path) -> None:
    kept = tmp_path / "predictions.jsonl"
    bench(metronome_process(""), "--predictions", kept, size=250).succeeds()
    assert [line["idx"] for line in parse(kept.read_text())] == [n % 100 for n in range(250)]


def test_the_batch_size_is_told_to_the_model(
    command: Command, bench: Bench, tmp_path: Path
) -> None:
    model = "import json, sys; sys.stdin.read(); print(json.dumps(sys.argv[1:]))"
    kept = tmp_path / "predictions.jsonl"
    bench(command("python3", "-c", model), "--raw-output", "--predictions", kept).succeeds()
    assert json.loads(kept.read_text()) == ["--batch-size", "32"]


@pytest.mark.parametrize("size", [100, 250])
@pytest.mark.parametrize("predict", ["each", "distinct"])
def test_one_prediction_for_each_record_or_each_idx_is_right(
    predict: str, size: int, bench: Bench
) -> None:
    assert bench(metronome_process(f"--predict {predict}"), size=size).succeeds().warnings == []


def test_any_other_number_of_predictions_is_doubtful(bench: Bench, log: Path) -> None:
    log = log.with_name("250_32_01.jsonl")
    (warning,) = bench(metronome_process("--after 170"), "-o", log, size=250).succeeds().warnings
    assert "170 predictions for 250 records with 100 different idx" in warning
    assert read_record(log)["warnings"] == [warning]


# The record


def test_the_record_says_what_ran_and_on_what(bench: Bench, log: Path) -> None:
    target = metronome_process("")
    bench(target, "-o", log, "--env", "SECRET=hush", "--timeout", "5m").succeeds()
    record = read_record(log)
    assert record["format"] == 1
    assert record["target"]["target"] == target
    assert record["target"]["command"][-2:] == ["--batch-size", "32"]
    assert (record["task"], record["input_size"], record["batch_size"]) == ("parus", 100, 32)
    assert record["arguments"]["timeout"] == 300
    assert record["arguments"]["env"] == ["SECRET"]
    assert "hush" not in json.dumps(record)
    assert record["exit_code"] == 0
    assert record["failure"] is None
    assert record["peaks"]["ram"] > 0
    assert record["peaks"]["gpu_ram"] is None
    assert record["host"]["cores"] == os.cpu_count()
    assert record["monitor"]["samples_due"] >= 1


# The command line


def test_options_can_be_set_by_the_environment(log: Path, data_dir: Path) -> None:
    env = {
        "MOROCCO_BENCH_INPUT_SIZE": "7",
        "MOROCCO_BENCH_BATCH_SIZE": "3",
        "MOROCCO_BENCH_TIMEOUT": "1m",
        "MOROCCO_BENCH_OUTPUT": str(log.with_name("7_3_01.jsonl")),
    }
    run_morocco("bench", metronome_process(""), data_dir, "parus", env=env).succeeds()
    record = read_record(log.with_name("7_3_01.jsonl"))
    assert (record["input_size"], record["batch_size"]) == (7, 3)
    assert record["arguments"]["timeout"] == 60


def test_the_command_line_beats_the_environment(bench: Bench, log: Path) -> None:
    bench(metronome_process(""), "-o", log, env={"MOROCCO_BENCH_INPUT_SIZE": "7"}).succeeds()
    assert read_record(log)["records_fed"] == 100


def test_a_good_run_is_summed_up_on_stderr(bench: Bench, log: Path) -> None:
    summary = bench(metronome_process(""), "-o", log).succeeds().stderr
    assert summary.startswith("parus: 100 records in 0.")
    assert "100 predictions" in summary
    assert str(log) in summary


def test_quiet_says_nothing(bench: Bench, log: Path) -> None:
    finished = bench(metronome_process(""), "-o", log, "--quiet").succeeds()
    assert (finished.stdout, finished.stderr) == ("", "")


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("1.5m", 90), ("2h", 7200)])
def test_a_time_limit_may_be_written_as(text: str, seconds: int, bench: Bench, log: Path) -> None:
    bench(metronome_process(""), "-o", log, "--timeout", text).succeeds()
    assert read_record(log)["arguments"]["timeout"] == seconds


@pytest.mark.parametrize(
    "option",
    [
        ("--timeout", "0"),
        ("--timeout", "5 days"),
        ("--timeout", "-1"),
        ("--rate", "0"),
        ("--input-size", "0"),
        ("--batch-size", "many"),
        ("--memory", "lots"),
        ("--env", "=value"),
        ("--pull", "sometimes"),
    ],
    ids=" ".join,
)
def test_nonsense_is_refused_as_wrong_usage(
    option: tuple[str, str], bench: Bench, log: Path
) -> None:
    finished = bench(metronome_process(""), "-o", log, *option)
    assert finished.code == 2
    assert f"Invalid value for '{option[0]}'" in finished.stderr.replace("'-e' / ", "")
    assert not log.parent.exists()


@pytest.mark.parametrize("name", ["haiku/val.jsonl", "haiku.jsonl"])
def test_a_task_of_ones_own_needs_only_a_file(
    name: str, bench: Bench, tmp_path: Path, data_dir: Path
) -> None:
    file = tmp_path / "data" / name
    file.parent.mkdir(parents=True)
    file.write_bytes((data_dir / "PARus" / "val.jsonl").read_bytes())
    finished = bench(metronome_process(""), data=tmp_path / "data", task="haiku")
    assert finished.succeeds().stderr.startswith("haiku: 100 records")


# Where the log goes


def test_a_name_that_contradicts_the_sizes_is_refused(bench: Bench, log: Path) -> None:
    error = bench(metronome_process(""), "-o", log, size=50).fails(3)
    assert "a run of 100 records in batches of 32" in error
    assert "--input-size 50 --batch-size 32" in error
    assert not log.parent.exists()


def test_a_name_that_stats_would_not_find_is_doubtful(bench: Bench, tmp_path: Path) -> None:
    (warning,) = bench(metronome_process(""), "-o", tmp_path / "my.log").succeeds().warnings
    assert "`morocco stats` will not find" in warning
    assert "parus/100_32_01.jsonl" in warning


def test_the_folder_of_another_task_is_refused(bench: Bench, tmp_path: Path) -> None:
    log = tmp_path / "rcb" / "100_32_01.jsonl"
    error = bench(metronome_process(""), "-o", log).fails(3)
    assert "a run of the task 'rcb', not 'parus'" in error
    assert not log.parent.exists()


def test_predictions_that_are_there_are_not_replaced(bench: Bench, tmp_path: Path) -> None:
    kept = tmp_path / "precious.jsonl"
    kept.write_text("precious")
    error = bench(metronome_process(""), "--predictions", kept).fails(3)
    assert str(kept) in error
    assert kept.read_text() == "precious"
    bench(metronome_process(""), "--predictions", kept, "--force").succeeds()
    assert len(kept.read_text().splitlines()) == 100


def test_a_finished_log_is_not_replaced(bench: Bench, log: Path) -> None:
    bench(metronome_process(""), "-o", log).succeeds()
    before = log.read_bytes()
    error = bench(metronome_process(""), "-o", log).fails(3)
    assert str(log) in error
    assert "--force" in error
    assert log.read_bytes() == before


def test_force_replaces_a_finished_log_but_only_by_a_finished_one(bench: Bench, log: Path) -> None:
    bench(metronome_process(""), "-o", log).succeeds()
    before = (log.read_bytes(), read_record(log))
    bench(metronome_process("--exit-code 3"), "-o", log, "--force").fails(10)
    assert (log.read_bytes(), read_record(log)) == before
    assert read_failed_record(log)["exit_code"] == 3
    bench(metronome_process(""), "-o", log, "--force").succeeds()
    assert log.read_bytes() != before[0]
    assert files_in(log.parent) == ["100_32_01.json", log.name]


def test_two_runs_do_not_write_the_same_log(bench: Bench, log: Path) -> None:
    with bench.start(metronome_process("--hang 4"), "-o", log) as first:
        first.wait_until_sampled(log)
        error = bench(metronome_process(""), "-o", log).fails(3)
        assert "Another run is writing" in error
        first.finish().succeeds()
    assert run_time(read_log(log)) > 1


def test_two_runs_do_not_write_the_same_predictions(bench: Bench, tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    with bench.start(metronome_process("--hang 5"), "--predictions", kept) as first:
        until(lambda: Path(f"{kept}.part").exists())
        error = bench(metronome_process(""), "--predictions", kept, size=7).fails(3)
        assert f"Another run is writing {kept}" in error
        first.finish().succeeds()
    assert len(kept.read_text().splitlines()) == 100


def test_a_log_that_is_removed_during_the_run_is_told(bench: Bench, log: Path) -> None:
    with bench.start(metronome_process("--hang 1"), "-o", log) as run:
        run.wait_until_sampled(log)
        Path(f"{log}.part").unlink()
        error = run.finish().fails(6)
    assert f"{log}.part was removed or replaced" in error
    assert files_in(log.parent) == [f"{log.stem}.failed.json"]
    assert read_failed_record(log)["failure"]["kind"] == "OutputError"


def test_a_folder_is_no_log(bench: Bench, tmp_path: Path) -> None:
    assert "is a folder" in bench(metronome_process(""), "-o", tmp_path).fails(3)


# On a terminal


def test_a_terminal_shows_how_far_the_run_has_come(bench: Bench, log: Path) -> None:
    finished = on_terminal(bench, metronome_process("--hang 1.2"), "-o", log)
    assert "fed 100/100  predicted 100" in finished.stderr
    assert finished.stderr.endswith(f"-> {log}\r\n")


def test_a_quiet_run_shows_nothing_on_a_terminal(bench: Bench, log: Path) -> None:
    target = metronome_process("--hang 0.7")
    assert on_terminal(bench, target, "-o", log, "--quiet").stderr == ""


@pytest.mark.parametrize("asked", [True, False])
def test_a_terminal_shows_either_samples_or_a_live_line(bench: Bench, asked: bool) -> None:
    target, options = metronome_process("--hang 0.7"), ["-o", "-"] if asked else []
    shown = on_terminal(bench, target, *options, with_stdout=True).stderr
    assert ("fed 100/100" in shown) != asked
    assert ('"cpu_usage"' in shown) == asked
    assert "100 records" in shown
    assert "a second" in shown


def test_the_log_of_a_run_may_have_any_name_and_stand_alone(bench: Bench, tmp_path: Path) -> None:
    log, image = tmp_path / "run.txt", tmp_path / "run.svg"
    log.write_text(bench(metronome_process("--rate 2000")).succeeds().stdout)
    (summary,) = map(json.loads, run_morocco("stats", log).succeeds().stdout.splitlines())
    times = [json.loads(line)["timestamp"] for line in log.read_text().splitlines()]
    assert summary["run_time"] == pytest.approx(times[-1] - times[0])
    assert (summary["input_size"], summary["samples"]) == (None, len(times))
    run_morocco("plot", log, image).succeeds()
    assert "size not known" in image.read_text()


def on_terminal(bench: Bench, target: str, *options: object, with_stdout: bool = False) -> Finished:
    """Run with a terminal as stderr; what it shows stands in `stderr`."""
    screen, terminal = pty.openpty()
    stdout = terminal if with_stdout else subprocess.PIPE
    shown = b""
    with bench.start(target, *options, stdout=stdout, stderr=terminal) as run:
        os.close(terminal)
        try:
            while data := os.read(screen, 4096):
                shown += data
        except OSError:  # how a terminal says that nobody writes any more
            os.close(screen)
        finished = run.finish()
    told = without_neighbours(shown.decode())
    return Finished(finished.pid, finished.code, finished.stdout, told)
