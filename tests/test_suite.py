"""`morocco suite`, run as its users run it: on bare processes that keep a diary."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from conftest import metronome_process
from gpu_machine import Machine
from nvml_standin import DRIVER_NOT_LOADED, Gpu
from runs import PATIENCE, Finished, read_failed_record, read_record, until
from suite_runs import PARUS, TWO, Suites, error_of, kill, parse_cores, write_config

FAILING = """
case $0 in
  rcb) echo out of luck >&2; exit 3;;
  terra) exit 0;;
  rwsd) sleep 600;;
  russe) kill -9 $$;;
esac
"""
"""Ways in which runs of some tasks fail."""


def wait_for(path: Path) -> str:
    """Return what makes a target wait until there is such a file."""
    return f"until [ -e {shlex.quote(str(path))} ]; do sleep 0.05; done"


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


# The order of the runs


def test_a_warm_up_comes_first_then_short_and_long_runs_in_turn(suite: Suites) -> None:
    suite().succeeds()
    seen = [(entry.records, entry.batch_size) for entry in suite.diary]
    assert seen == [(1, 1), (1, 1), (20, 4), (1, 1), (20, 4)]
    assert suite.done == PARUS


def test_a_warm_up_leaves_nothing(suite: Suites) -> None:
    suite().succeeds()
    assert len(suite.diary) == len(suite.done) + 1
    assert suite.others == []


def test_tasks_come_one_after_the_other_each_with_its_warm_up(suite: Suites) -> None:
    suite(*TWO).succeeds()
    assert [entry.task for entry in suite.diary] == ["parus"] * 5 + ["rcb"] * 5
    assert suite.done == [*PARUS, *(name.replace("parus", "rcb") for name in PARUS)]


def test_without_tasks_all_nine_are_measured(suite: Suites) -> None:
    args = (suite.target(), suite.data, "--repeats", 1, "--input-size", 2, "--logs", suite.logs)
    with suite.run(*args) as run:
        run.finish().succeeds()
    assert len(suite.done) == 18
    assert suite.done[:2] == ["danetqa/1_1_01", "danetqa/2_32_01"]


def test_the_options_of_bench_shape_its_runs_too(suite: Suites) -> None:
    options = ("--rate", 20, "--timeout", "2m", "-e", "COLOUR=red", "--gpus", "none")
    suite(*options, "--repeats", 1).succeeds()
    arguments = read_record(suite.log("parus/20_4_01"))["arguments"]
    assert (arguments["rate"], arguments["timeout"]) == (20, 120)
    assert (arguments["env"], arguments["gpus"]) == (["COLOUR"], "none")


def test_a_metronome_has_its_run_time_in_the_logs_of_a_suite(suite: Suites) -> None:
    """As `bench` would have measured it: twenty predictions at 100 a second."""
    target = metronome_process("--say {task} --rate 100")
    suite("--repeats", 1, target=target).succeeds()
    assert 0.2 < read_record(suite.log("parus/20_4_01"))["run_time"] < 5
    assert read_record(suite.log("parus/20_4_01"))["predictions"]["count"] == 20


# What is told


def test_where_there_is_no_terminal_each_run_is_a_plain_line(suite: Suites) -> None:
    lines = suite().succeeds().stderr.splitlines()
    patterns = [
        r"\[0/4\] parus/warm-up, not kept: \d+\.\d s",
        r"\[1/4\] parus/1_1_01: \d+\.\d s",
        r"\[2/4\] parus/20_4_01: \d+\.\d s, about \d+:\d\d left",
        r"\[3/4\] parus/1_1_02: \d+\.\d s, about \d+:\d\d left",
        r"\[4/4\] parus/20_4_02: \d+\.\d s, about 0:00 left",
        rf"4 of 4 runs done: {suite.logs}\. Next: morocco check {suite.logs}",
    ]
    assert len(lines) == len(patterns), lines
    for line, pattern in zip(lines, patterns, strict=True):
        assert re.fullmatch(pattern, line), line


def test_nothing_goes_to_stdout(suite: Suites) -> None:
    assert suite().succeeds().stdout == ""


def test_a_quiet_suite_says_nothing_as_long_as_all_is_well(suite: Suites) -> None:
    assert suite("--quiet").succeeds().stderr == ""
    assert suite("--quiet").succeeds().stderr == ""


class Terminal:
    """A terminal of which all that is written to it is kept."""

    def __init__(self) -> None:
        self._person, self.program = os.openpty()
        self._bytes = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            while data := os.read(self._person, 4096):
                self._bytes += data
        except OSError:  # the other side was closed
            pass

    @property
    def shown(self) -> str:
        return self._bytes.decode(errors="replace")

    def close(self) -> None:
        os.close(self.program)
        self._reader.join(PATIENCE)
        os.close(self._person)


def test_on_a_terminal_there_is_a_bar_and_the_line_of_the_run_at_work(suite: Suites) -> None:
    go = suite.folder / "go"
    target = suite.target(
        f'until [ "$2" = 1 ] || [ -e {shlex.quote(str(go))} ]; do sleep 0.1; done'
    )
    line = re.compile(r"parus/20_4_01  \d+:\d\d  fed 20/20  predicted 0  CPU ")
    terminal = Terminal()
    env = {"TERM": "xterm", "COLUMNS": "120"}
    try:
        with suite.start("--repeats", 1, target=target, stderr=terminal.program, env=env) as run:
            until(lambda: line.search(terminal.shown))
            go.touch()
            run.finish()
            assert run.process.returncode == 0
    finally:
        terminal.close()
    assert re.search(r"━.* 1/2 runs  \d+:\d\d", terminal.shown)
    assert "[1/2]" not in terminal.shown
    assert terminal.shown.rstrip().endswith(f"Next: morocco check {suite.logs}")


def test_a_suite_outlives_its_terminal(suite: Suites) -> None:
    """As under nohup, or in a session of its own, where no signal comes with the closing."""
    person, program = os.openpty()
    go = suite.folder / "go"
    target = suite.target(wait_for(go))
    with suite.start(target=target, stderr=program, env={"TERM": "xterm"}) as run:
        os.close(program)
        until(lambda: suite.diary)
        os.close(person)
        go.touch()
        run.finish()
        assert run.process.returncode == 0
    assert suite.done == PARUS


def test_a_suite_needs_no_stderr(suite: Suites) -> None:
    args = (suite.target(), suite.data, "--tasks", "parus", "--input-size", 20, "--batch-size", 4)
    command = [sys.executable, "-m", "morocco", "suite", *map(str, args), "--repeats", "2"]
    shell = f"{shlex.join([*command, '--logs', str(suite.logs)])} 2>&-"
    assert subprocess.run(["sh", "-c", shell], check=False).returncode == 0
    assert suite.done == PARUS


# Going on


def test_what_is_done_is_not_done_again(suite: Suites) -> None:
    suite().succeeds()
    before, diary = suite.snapshot(), suite.diary
    assert suite().succeeds().stderr == f"All 4 runs are done: {suite.logs}\n"
    assert (suite.snapshot(), suite.diary) == (before, diary)


def test_only_what_is_new_is_done(suite: Suites) -> None:
    suite("--repeats", 1).succeeds()
    before, diary = suite.snapshot(), suite.diary
    suite("--repeats", 2).succeeds()
    assert suite.done == PARUS
    assert before.items() <= suite.snapshot().items()
    assert [entry.records for entry in suite.diary[len(diary) :]] == [1, 1, 20]  # a warm-up first


def test_a_task_that_is_done_needs_no_warm_up(suite: Suites) -> None:
    suite().succeeds()
    suite(*TWO).succeeds()
    assert [entry.task for entry in suite.diary] == ["parus"] * 5 + ["rcb"] * 5


def test_with_force_all_is_done_again(suite: Suites) -> None:
    suite().succeeds()
    before = suite.snapshot()
    suite("--force").succeeds()
    assert suite.done == PARUS
    assert len(suite.diary) == 10
    after = suite.snapshot()
    assert all(after[path] != before[path] for path in before)
    assert suite.others == []


@pytest.mark.parametrize(
    ("number", "at_work"), [(1, "parus/warm-up"), (3, "parus/20_4_01"), (5, "parus/20_4_02")]
)
def test_a_killed_suite_goes_on(number: int, at_work: str, suite: Suites) -> None:
    target = suite.hang_at(number)
    with suite.start(target=target) as run:
        run.wait_until_sampled(suite.log(at_work))
        until(lambda: len(suite.diary) == number)
        kill(run)
    before, left_behind = suite.snapshot(), suite.diary[-1].pid
    assert suite.done == PARUS[: max(0, number - 2)]
    assert suite.others == [f"{at_work}.jsonl.part"]
    assert is_alive(left_behind)

    suite(target=target).succeeds()
    assert not is_alive(left_behind)
    assert suite.done == PARUS
    assert suite.others == []
    assert before.items() <= suite.snapshot().items()
    again = [entry.records for entry in suite.diary[number:]]
    assert again == [1, *([1, 20, 1, 20][max(0, number - 2) :])]


def test_a_suite_that_is_killed_again_and_again_comes_to_its_end(suite: Suites) -> None:
    kills = 0
    while len(suite.done) < 8:
        before = len(suite.done)
        with suite.start(*TWO) as run:
            until(lambda: not run.is_running or len(suite.done) > before)  # noqa: B023
            kill(run)
        kills += 1
    finished = suite(*TWO).succeeds()
    assert finished.warnings == []
    assert finished.stderr == f"All 8 runs are done: {suite.logs}\n"
    assert kills > 1


def test_what_a_killed_suite_of_another_folder_left_is_its_own_matter(suite: Suites) -> None:
    target = suite.hang_at(2)
    with suite.start(target=target) as run:
        until(lambda: len(suite.diary) == 2)
        kill(run)
    left_behind = suite.diary[-1].pid
    copy = suite.folder / "copy"
    shutil.copytree(suite.logs, copy)
    suite(target=target, logs=copy).succeeds()
    assert is_alive(left_behind)
    suite(target=target).succeeds()
    assert not is_alive(left_behind)


def test_what_a_living_suite_has_started_is_left_alone(suite: Suites) -> None:
    with suite.start(target=suite.hang_at(2)) as run:
        until(lambda: len(suite.diary) == 2)
        suite(logs=suite.folder / "other").succeeds()
        assert is_alive(suite.diary[1].pid)
        run.send(signal.SIGINT)
        error_of(run.finish(), 130)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_suite_in_good_order(number: signal.Signals, suite: Suites) -> None:
    target = suite.hang_at(3)
    with suite.start(target=target) as run:
        until(lambda: len(suite.diary) == 3)
        run.send(number)
        finished = run.finish()
    assert error_of(finished, 128 + number).startswith("Stopped by ")
    assert "\n1 of 4 runs are done; the same command goes on from there.\n" in finished.stderr
    assert "failed" not in finished.stderr
    assert suite.done == ["parus/1_1_01"]
    assert not list(suite.logs.rglob("*.part"))

    suite(target=target).succeeds()
    assert suite.done == PARUS
    assert suite.others == []


def test_the_second_suite_in_a_folder_is_told_who_holds_it(suite: Suites) -> None:
    with suite.start(target=suite.hang_at(2)) as run:
        until(lambda: len(suite.diary) == 2)
        before = suite.snapshot()
        error = suite().fails(3)
        assert error.startswith(f"Another suite is at work in {suite.logs}: process {run.pid} on ")
        assert "1 warm-up" in suite("--dry-run").succeeds().stdout  # which disturbs nobody
        assert suite.snapshot() == before
        assert len(suite.diary) == 2
        run.send(signal.SIGINT)
        run.finish()


# What is there but cannot be trusted


def test_doubtful_logs_are_set_aside_and_measured_again(suite: Suites) -> None:
    suite().succeeds()
    without, failed = suite.log("parus/1_1_01"), suite.log("parus/20_4_02")
    content = without.read_bytes()
    without.with_suffix(".json").unlink()
    record = read_record(failed)
    failed.with_suffix(".json").write_text(json.dumps(record | {"exit_code": 1}))
    kept = {path: entry for path, entry in suite.snapshot().items() if "_1_02" in path}

    first, second = suite().succeeds().warnings
    assert first == (
        "parus/1_1_01: its record is missing. It is measured again; what was there is now "
        f"{without}.old."
    )
    assert second.startswith("parus/20_4_02: its record is one of a failed run. It is measured")
    assert Path(f"{without}.old").read_bytes() == content
    assert suite.others == ["parus/1_1_01.jsonl.old", "parus/20_4_02.jsonl.old"]
    assert len(suite.done) == 4
    assert kept.items() <= suite.snapshot().items()
    assert suite().succeeds().stderr.startswith("All 4 runs are done")


def test_doubtful_logs_stay_where_they_are_until_all_else_is_in_order(suite: Suites) -> None:
    suite().succeeds()
    suite.log("parus/1_1_01").with_suffix(".json").unlink()
    suite(target="exec:nosuch {task}").fails(3)
    shutil.rmtree(suite.data)
    suite().fails(3)
    assert suite.log("parus/1_1_01").exists()


@pytest.mark.parametrize(
    ("target", "options", "told"),
    [
        ("exec:sh -c cat {task}", (), ", now exec:sh -c cat parus"),
        (None, ("-e", "COLOUR=red"), ": --env [], now ['COLOUR']"),
    ],
)
def test_runs_that_were_made_otherwise_are_not_mixed_with_new_ones(
    target: str | None, options: tuple[str, ...], told: str, suite: Suites
) -> None:
    suite("--repeats", 1).succeeds()
    before = suite.snapshot()
    error = suite(*options, target=target).fails(3)
    assert error.startswith("These runs were measured otherwise, and must not be mixed with new")
    assert f"\n  {suite.log('parus/1_1_01')}: " in error
    assert told in error
    assert error.endswith("or measure all runs again with --force.")
    assert suite.snapshot() == before
    suite(*options, "--force", target=target).succeeds()
    assert suite.done == PARUS


def test_runs_on_other_data_are_not_mixed_with_new_ones(suite: Suites) -> None:
    suite("--repeats", 1).succeeds()
    (suite.data / "PARus" / "val.jsonl").write_text('{"idx": 5}\n')
    assert "other records in its data file" in suite().fails(3)


def test_of_many_runs_that_were_made_otherwise_a_few_are_named(suite: Suites) -> None:
    suite("--repeats", 4).succeeds()
    error = suite("--repeats", 5, "-e", "A=1").fails(3)
    assert len(error.splitlines()) == 1 + 5 + 1 + 1
    assert "\n  and 3 more\n" in error


# Failures


def test_a_run_that_fails_is_tried_once_more(suite: Suites) -> None:
    once = suite.folder / "once"
    target = suite.target(f'[ "$2" = 1 ] || ! mkdir {shlex.quote(str(once))} || exit 3')
    finished = suite(target=target).succeeds()
    assert "parus/20_4_01 failed: The target ended with exit code 3: " in finished.stderr
    assert finished.stderr.count("Trying again.") == 1
    assert suite.done == PARUS
    assert suite.others == []


@pytest.mark.parametrize("retries", [0, 2])
def test_a_run_is_tried_as_often_as_asked(retries: int, suite: Suites) -> None:
    target = suite.target('[ "$2" = 1 ] || exit 3')
    finished = suite("--retries", retries, "--repeats", 1, target=target)
    error_of(finished, 1)
    assert finished.stderr.count("Trying again.") == retries
    assert [entry.records for entry in suite.diary].count(20) == 1 + retries


def test_a_run_that_failed_is_recorded_and_passed_over(suite: Suites) -> None:
    target = suite.target('[ "$2" = 1 ] || { echo out of luck >&2; exit 3; }')
    finished = suite(target=target)
    error = error_of(finished, 1)
    assert error.startswith(f"2 of 4 runs done: {suite.logs}. Failed:\n  cause ")
    assert error.endswith(
        "Their records (.failed.json) say more. The same command tries them again."
    )
    assert "\n  out of luck\n  It is passed over.\n" in finished.stderr
    assert suite.done == ["parus/1_1_01", "parus/1_1_02"]
    assert read_failed_record(suite.log("parus/20_4_02"))["exit_code"] == 3


def test_a_failure_is_told_as_it_happens(suite: Suites) -> None:
    target = suite.target('[ "$2" = 1 ] || exit 3')
    lines = suite("--retries", 0, target=target).stderr.splitlines()
    told = next(
        n for n, line in enumerate(lines) if line.startswith("morocco: parus/20_4_01 failed")
    )
    assert any(line.startswith("[2/4] parus/1_1_02") for line in lines[told:])


def test_failures_are_listed_by_cause(suite: Suites) -> None:
    target = suite.target(FAILING)
    target = target.replace("records=$(cat)", '[ "$0" = muserc ] && exit 0; records=$(cat)')
    options = ("--tasks", "rcb,parus,rwsd,terra,russe,muserc", "--timeout", "3", "--retries", 0)
    error = error_of(suite(*options, target=target), 1)
    rows = [
        re.split(r" {2,}", line.strip()) for line in error.splitlines() if line.startswith("  ")
    ]
    assert [row[:2] for row in rows] == [
        ["cause", "run"],
        ["exit code 3", "rcb/warm-up and the 4 runs after it"],
        ["input unread", "muserc/warm-up and the 4 runs after it"],
        ["memory", "russe/warm-up and the 4 runs after it"],
        ["no predictions", "terra/warm-up and the 4 runs after it"],
        ["time-out", "rwsd/warm-up and the 4 runs after it"],
    ]
    assert rows[1][2] == (
        "The target ended with exit code 3: 1 of 1 record handed over, 0 predictions back."
    )
    assert suite.done == PARUS


def test_a_warm_up_that_fails_spares_the_runs_after_it(suite: Suites) -> None:
    finished = suite(*TWO, target=suite.target('[ "$0" != parus ] || exit 3'))
    error = error_of(finished, 1)
    assert error.startswith("4 of 8 runs done")
    assert "  Its 4 runs are not tried.\n" in finished.stderr
    assert [entry.task for entry in suite.diary] == ["parus"] * 2 + ["rcb"] * 5
    assert suite.others == ["parus/warm-up.failed.json", "parus/warm-up.jsonl.failed"]


def test_one_run_that_was_spared_is_counted_as_one(suite: Suites) -> None:
    options = ("--input-size", 1, "--batch-size", 1, "--repeats", 1, "--retries", 0)
    error = error_of(suite(*options, target=suite.target("exit 3")), 1)
    assert "parus/warm-up and the 1 run after it" in error


def test_the_same_command_tries_what_failed_again(suite: Suites) -> None:
    mended = suite.folder / "mended"
    target = suite.target(f'[ "$0" = parus ] || [ -e {shlex.quote(str(mended))} ] || exit 3')
    error_of(suite(*TWO, target=target), 1)
    before = suite.snapshot()
    mended.touch()
    suite(*TWO, target=target).succeeds()
    assert len(suite.done) == 8
    assert before.items() <= suite.snapshot().items()
    assert suite.others == []


def test_a_warning_is_said_once_and_stands_in_each_record(suite: Suites) -> None:
    target = suite.target("echo '{}'")
    warnings = suite(target=target).succeeds().warnings
    assert len(warnings) == 2  # of one record, of twenty
    assert warnings[0].startswith("parus/warm-up: 2 predictions for 1 record")
    for name in PARUS:
        assert len(read_record(suite.log(name))["warnings"]) == 1


# What is looked at first


def test_all_data_files_that_are_missing_are_named_at_once(suite: Suites) -> None:
    shutil.rmtree(suite.data / "PARus")
    (suite.data / "RCB" / "val.jsonl").write_text("no JSON\n")
    error = suite("--tasks", "parus,terra,rcb,haiku").fails(3)
    assert f"looked for {suite.data}/PARus/val.jsonl." in error
    assert f"{suite.data}/RCB/val.jsonl, line 1: not a JSON object" in error
    assert "No data for the task 'haiku'" in error
    assert len(error.splitlines()) == 3
    assert (suite.diary, suite.done) == ([], [])


def test_all_commands_that_are_missing_are_named_at_once(suite: Suites) -> None:
    error = suite("--tasks", "parus,rcb", target="exec:nosuch-{task}").fails(10)
    assert error.splitlines() == [
        *(
            "exec:nosuch-parus: there is no such command.",
            "exec:nosuch-rcb: there is no such command.",
        ),
    ]


@pytest.mark.parametrize("target", ["exec:", "exec:sh -c 'no end", "exec:/etc/passwd {task}"])
def test_a_command_that_cannot_be_run_is_told_first(target: str, suite: Suites) -> None:
    error = suite(target=target).fails(10)
    assert target.replace("{task}", "parus") in error
    assert suite.others == []


def test_an_engine_that_is_not_there_is_told_first(suite: Suites) -> None:
    env = {"DOCKER_HOST": "unix:///nonexistent.sock"}
    error = suite(target="rubert-{task}", env=env).fails(4)
    assert "Cannot reach the Docker engine at unix:///nonexistent.sock" in error
    assert suite.others == []


@pytest.mark.parametrize(
    ("options", "target", "code", "told"),
    [
        (TWO, "exec:cat", 3, "exec:cat is the same for all tasks; write {task} where"),
        (("--gpus", "7"), None, 5, "--gpus 7"),
        (("--parallel", "--cluster", "tcp://127.0.0.1:1"), None, 3, "--parallel shares out this"),
        (("--models", "a"), None, 3, "leave out TARGET"),
        (TWO, "python infer.py {task}", 3, "If it is a command: 'exec:python infer.py parus'"),
    ],
)
def test_what_cannot_be_done_is_told_first(
    options: tuple[str, ...], target: str | None, code: int, told: str, suite: Suites
) -> None:
    assert told in suite(*options, target=target).fails(code)
    assert (suite.diary, suite.done) == ([], [])


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ((), "Missing argument 'TARGET'"),
        (("exec:cat",), "Missing argument 'DATA_DIR'"),
        (("exec:cat", "data", "--memory", "8g"), "--memory is for containers"),
        (("exec:cat", "data", "--repeats", "0"), "--repeats"),
        (("exec:cat", "data", "--retries", "-1"), "--retries"),
        (("exec:cat", "data", "--tasks", ""), "write them as a,b,c"),
        (("exec:cat", "data", "--tasks", "parus,,rcb"), "write them as a,b,c"),
    ],
)
def test_wrong_usage_ends_with_code_2(args: tuple[str, ...], told: str, suite: Suites) -> None:
    with suite.run(*args) as run:
        finished = run.finish()
    assert finished.code == 2
    assert told in finished.stderr.splitlines()[-1]


# The plan


def test_a_dry_run_prints_the_plan_and_does_nothing(suite: Suites) -> None:
    finished = suite(*TWO, "--dry-run", target="exec:cat {task}").succeeds()
    assert finished.stdout == (
        "task   target          input  batch  runs  done  a run  left\n"
        "parus  exec:cat parus      1      1     2     0      ?     ?\n"
        "parus  exec:cat parus     20      4     2     0      ?     ?\n"
        "rcb    exec:cat rcb        1      1     2     0      ?     ?\n"
        "rcb    exec:cat rcb       20      4     2     0      ?     ?\n"
        "8 runs to do, 0 done, 2 warm-ups: how long they take will be known after the first runs\n"
    )
    assert finished.stderr == ""
    assert not suite.logs.exists()


def test_a_dry_run_tells_the_time_once_there_were_runs(suite: Suites) -> None:
    target = suite.target('[ "$2" = 1 ] || sleep 1')
    suite("--repeats", 1, target=target).succeeds()
    before = suite.snapshot()
    told = suite("--dry-run", "--repeats", 3, target=target).succeeds().stdout
    short, long, total = told.splitlines()[1:]
    assert short.split()[-5:-2] == ["1", "3", "1"]
    assert re.fullmatch(r"0:0[1-9]", long.split()[-2])
    assert re.fullmatch(r"4 runs to do, 2 done, 1 warm-up: 0:\d\d", total)
    assert suite.snapshot() == before


def test_a_dry_run_names_data_that_are_missing(suite: Suites) -> None:
    shutil.rmtree(suite.data / "PARus")
    assert "PARus/val.jsonl" in suite("--dry-run").fails(3)


# The file


def run_file(suite: Suites, content: str, *options: object, **settings: object) -> Finished:
    """Run the suite of a file that says where data and logs are."""
    settings = {"data-dir": suite.data, "logs": suite.logs, **settings}
    config = write_config(suite.folder / "suite.toml", content, **settings)
    with suite.run("--config", config, *options) as run:
        return run.finish()


def two_models(suite: Suites) -> str:
    target = json.dumps(suite.target())
    return f"""
        input-size = 20
        batch-size = 4
        repeats = 1
        rate = 20
        tasks = ["parus", "rcb"]
        [models]
        small = {target}
        [models.large]
        target = {target}
        tasks = ["parus"]
        sizes.parus = {{ input-size = 10 }}
        [sizes]
        parus = {{ batch-size = 2 }}
    """


def test_a_file_has_several_models_and_sizes_by_task(suite: Suites) -> None:
    run_file(suite, two_models(suite)).succeeds()
    assert suite.done == [
        *("small/parus/1_1_01", "small/parus/20_2_01", "small/rcb/1_1_01", "small/rcb/20_4_01"),
        *("large/parus/1_1_01", "large/parus/10_2_01"),
    ]
    assert read_record(suite.log("large/parus/10_2_01"))["arguments"]["rate"] == 20


def test_the_command_line_goes_over_the_file(suite: Suites) -> None:
    options = (
        "--input-size",
        5,
        "--repeats",
        2,
        "--rate",
        10,
        "--tasks",
        "terra",
        "--models",
        "large",
    )
    run_file(suite, two_models(suite), *options).succeeds()
    assert suite.done == [
        *("large/terra/1_1_01", "large/terra/5_4_01", "large/terra/1_1_02", "large/terra/5_4_02"),
    ]
    assert read_record(suite.log("large/terra/5_4_01"))["arguments"]["rate"] == 10


def test_the_environment_goes_over_the_file_too(suite: Suites) -> None:
    content = "repeats = 3\ninput-size = 20\nbatch-size = 4\n"
    config = write_config(suite.folder / "suite.toml", content, logs=suite.logs, tasks="parus")
    env = {"MOROCCO_SUITE_REPEATS": "1"}
    with suite.run(suite.target(), suite.data, "--config", config, env=env) as run:
        run.finish().succeeds()
    assert suite.done == ["parus/1_1_01", "parus/20_4_01"]


def test_the_plan_of_several_models_names_them(suite: Suites) -> None:
    lines = run_file(suite, two_models(suite), "--dry-run").succeeds().stdout.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == ["model", *["small"] * 4, *["large"] * 2]


def test_a_file_with_one_target_needs_no_models(suite: Suites) -> None:
    content = "repeats = 1\ninput-size = 20\nbatch-size = 4\n"
    run_file(suite, content, target=suite.target(), tasks="parus").succeeds()
    assert suite.done == ["parus/1_1_01", "parus/20_4_01"]


@pytest.mark.parametrize(
    ("content", "code", "told"),
    [
        ("repeat = 3", 3, "there is no setting 'repeat'"),
        ("repeats = 2.5", 2, "Invalid value for '--repeats': '2.5'"),
        ("timeout = 0.0", 2, "Invalid value for '--timeout': '0.0' is no duration"),
        ("env = ['A=1', 5]", 2, "5 is not set here"),
        ("", 3, "There is nothing to measure: name a TARGET, or models in the --config file."),
        ("target = 'x'\nmodels.a = 'x'", 3, "has both a target and models; leave out one of them"),
    ],
)
def test_what_is_wrong_in_a_file_is_told(content: str, code: int, told: str, suite: Suites) -> None:
    finished = run_file(suite, content)
    assert finished.code == code
    assert "Traceback" not in finished.stderr
    assert told in finished.stderr
    assert not suite.logs.exists()


# Several GPUs


TWO_GPUS = (Gpu("GPU-a"), Gpu("GPU-b"))


@pytest.fixture
def two_cores() -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("NOT TESTED: two lanes need two CPU cores, and this machine has one.")


def meet(suite: Suites) -> str:
    """Return a target whose first runs, one on each GPU, wait for each other."""
    here = shlex.quote(str(suite.folder))
    return suite.target(
        f"touch {here}/at-$CUDA_VISIBLE_DEVICES; "
        f"until [ -e {here}/at-GPU-a ] && [ -e {here}/at-GPU-b ]; do sleep 0.02; done"
    )


@pytest.mark.usefixtures("two_cores")
def test_lanes_work_at_once_each_on_its_gpu_and_its_cores(suite: Suites, machine: Machine) -> None:
    machine.plug(*TWO_GPUS)
    options = (*TWO, "--parallel", "--timeout", PATIENCE, "--retries", 0)
    suite(*options, target=meet(suite), env=machine.environment).succeeds()
    assert len(suite.done) == 8
    cores = {gpu: {e.cores for e in suite.diary if e.gpus == gpu} for gpu in ("GPU-a", "GPU-b")}
    (first,), (second,) = cores["GPU-a"], cores["GPU-b"]
    assert not first & second
    assert len(first) == len(second) == len(os.sched_getaffinity(0)) // 2
    assert {entry.gpus for entry in suite.diary} == {"GPU-a", "GPU-b"}


@pytest.mark.usefixtures("two_cores")
def test_lanes_may_work_on_one_task_at_once(suite: Suites, machine: Machine) -> None:
    machine.plug(*TWO_GPUS)
    options = ("--parallel", "--timeout", PATIENCE, "--retries", 0)
    suite(*options, target=meet(suite), env=machine.environment).succeeds()
    assert sorted(suite.done) == sorted(PARUS)
    assert suite.others == []
    assert {entry.gpus for entry in suite.diary[:2]} == {"GPU-a", "GPU-b"}  # their warm-ups
    assert len(suite.diary) == 2 + 4


@pytest.mark.usefixtures("two_cores")
def test_the_share_of_a_lane_is_recorded(suite: Suites, machine: Machine) -> None:
    machine.plug(*TWO_GPUS)
    options = (*TWO, "--parallel", "--timeout", PATIENCE)
    suite(*options, target=meet(suite), env=machine.environment).succeeds()
    cores = {entry.gpus: entry.cores for entry in suite.diary}
    for name in suite.done:
        record = read_record(suite.log(name))
        (gpu,) = record["gpus"]
        assert record["arguments"]["gpus"] == gpu["uuid"]
        assert parse_cores(record["target"]["limits"]["cpuset"]) == cores[gpu["uuid"]]


@pytest.mark.usefixtures("two_cores")
def test_ctrl_c_ends_all_lanes(suite: Suites, machine: Machine) -> None:
    machine.plug(*TWO_GPUS)
    target = suite.target("sleep 600")
    with suite.start(*TWO, "--parallel", target=target, env=machine.environment) as run:
        until(lambda: len(suite.diary) == 2)
        run.send(signal.SIGINT)
        finished = run.finish()
    error_of(finished, 130)
    assert "0 of 8 runs are done" in finished.stderr
    assert "failed" not in finished.stderr


@pytest.mark.usefixtures("two_cores")
def test_what_lanes_left_behind_when_they_were_killed_is_ended(
    suite: Suites, machine: Machine
) -> None:
    machine.plug(*TWO_GPUS)
    go = suite.folder / "go"
    target = suite.target(f"[ -e {shlex.quote(str(go))} ] || sleep 600")
    options = (*TWO, "--parallel")
    with suite.start(*options, target=target, env=machine.environment) as run:
        until(lambda: len(suite.diary) == 2)
        kill(run)
    left_behind = [entry.pid for entry in suite.diary]
    assert all(map(is_alive, left_behind))
    go.touch()
    suite(*options, target=target, env=machine.environment).succeeds()
    assert not any(map(is_alive, left_behind))
    assert len(suite.done) == 8


def test_unless_told_otherwise_runs_are_on_one_gpu_and_all_cores(
    suite: Suites, machine: Machine
) -> None:
    machine.plug(*TWO_GPUS)
    suite(*TWO, env=machine.environment).succeeds()
    assert {entry.gpus for entry in suite.diary} == {"GPU-a"}
    assert {entry.cores for entry in suite.diary} == {frozenset(os.sched_getaffinity(0))}
    assert read_record(suite.log("parus/1_1_01"))["target"]["limits"] == {}


@pytest.mark.parametrize(("choice", "seen"), [("all", "any"), ("GPU-b", "GPU-b"), ("none",) * 2])
def test_the_gpus_of_a_suite_may_be_chosen(
    choice: str, seen: str, suite: Suites, machine: Machine
) -> None:
    machine.plug(*TWO_GPUS)
    suite("--gpus", choice, "--repeats", 1, env=machine.environment).succeeds()
    assert {entry.gpus for entry in suite.diary} == {seen}


def test_parallel_needs_gpus(suite: Suites, machine: Machine) -> None:
    machine.plug(errors={"nvmlInit*": DRIVER_NOT_LOADED})
    error = suite("--parallel", env=machine.environment).fails(5)
    assert "does one run on each GPU at a time, and NVML sees no GPU here" in error
    assert not suite.logs.exists()


def test_parallel_needs_a_core_for_each_gpu(suite: Suites, machine: Machine) -> None:
    machine.plug(*(Gpu(f"GPU-{n}") for n in range(len(os.sched_getaffinity(0)) + 1)))
    assert "cannot share" in suite("--parallel", env=machine.environment).fails(3)


def test_parallel_shares_out_the_memory_itself(suite: Suites, machine: Machine) -> None:
    machine.plug(Gpu("GPU-a"))
    options = ("--parallel", "--memory", "8g")
    error = suite(*options, target="rubert-{task}", env=machine.environment).fails(3)
    assert "leave out --memory and --cpus" in error


# A full disk


def test_a_full_disk_ends_a_suite_and_loses_nothing_that_is_done(
    suite: Suites, small_disk: Path
) -> None:
    suite.logs = small_disk / "logs"
    # Two files a run and one of the suite's own, all of a block: the third run has one block left.
    (small_disk / "filler").write_bytes(b"x" * 4096 * (16 - 1 - 2 * 2 - 1))
    finished = suite()
    error = error_of(finished, 6)
    assert f"Cannot finish {suite.log('parus/1_1_02')}: No space left on device" in error
    assert "2 of 4 runs are done; the same command goes on from there." in finished.stderr
    assert "Trying again" not in finished.stderr
    assert suite.done == PARUS[:2]
    before = suite.snapshot()
    error_of(suite(), 6)  # as long as the disk is full
    assert suite.snapshot() == before

    (small_disk / "filler").unlink()
    suite().succeeds()
    assert suite.done == PARUS
    assert suite.others == []
    assert before.items() <= suite.snapshot().items()
