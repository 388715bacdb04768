"""What goes wrong in a suite: reported first if possible, or skipped and listed."""

from __future__ import annotations

import re
import shlex
import shutil

import pytest

from runs import read_failed_record, read_record
from suite_runs import PARUS, TWO, Suites, error_of

FAILING = """
case $0 in
  rcb) echo out of luck >&2; exit 3;;
  terra) exit 0;;
  rwsd) sleep 600;;
  russe) kill -9 $$;;
esac
"""
"""Ways in which runs of some tasks fail."""


# Failures


def test_a_run_that_fails_is_tried_once_more(suite: Suites) -> None:
    once = suite.folder / "once"
    target = suite.target(f'[ "$2" = 1 ] || ! mkdir {shlex.quote(str(once))} || exit 3')
    finished = suite(target=target).succeeds()
    assert "parus/20_4_01 failed: The target exited with code 3: " in finished.stderr
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


def test_a_run_that_failed_is_recorded_and_skipped(suite: Suites) -> None:
    target = suite.target('[ "$2" = 1 ] || { echo out of luck >&2; exit 3; }')
    finished = suite(target=target)
    error = error_of(finished, 1)
    assert error.startswith(f"2 of 4 runs done: {suite.logs}. Failed:\n  cause ")
    assert ".failed.json" in error.splitlines()[-1]
    assert "\n    out of luck\n  Skipping it.\n" in finished.stderr
    assert suite.done == ["parus/1_1_01", "parus/1_1_02"]
    assert read_failed_record(suite.log("parus/20_4_02"))["exit_code"] == 3


def test_a_failure_is_reported_as_it_happens(suite: Suites) -> None:
    target = suite.target('[ "$2" = 1 ] || exit 3')
    lines = suite("--retries", 0, target=target).stderr.splitlines()
    position = next(
        n for n, line in enumerate(lines) if line.startswith("morocco: parus/20_4_01 failed")
    )
    assert any(line.startswith("[2/4] parus/1_1_02") for line in lines[position:])


def test_failures_are_listed_by_cause(suite: Suites) -> None:
    target = suite.target(FAILING)
    target = target.replace("records=$(cat)", '[ "$0" = muserc ] && exit 0; records=$(cat)')
    options = ("--tasks", "rcb,parus,rwsd,terra,russe,muserc", "--timeout", "3", "--retries", 0)
    error = error_of(suite(*options, target=target), 1)
    split = [re.split(r" {2,}", line.strip()) for line in error.splitlines()]
    rows = [row for row in split if len(row) > 1]
    assert [row[:2] for row in rows] == [
        ["cause", "run"],
        ["exit code 3", "rcb/warm-up and the 4 runs after it"],
        ["no predictions", "terra/warm-up and the 4 runs after it"],
        ["out of memory", "russe/warm-up and the 4 runs after it"],
        ["timed out", "rwsd/warm-up and the 4 runs after it"],
        ["unread input", "muserc/warm-up and the 4 runs after it"],
    ]
    assert rows[1][2] == "out of luck"  # the last that it logged
    assert rows[5][2].startswith("The target exited before it had read its input")
    assert suite.done == PARUS


def test_a_warm_up_that_fails_skips_the_runs_after_it(suite: Suites) -> None:
    finished = suite(*TWO, target=suite.target('[ "$0" != parus ] || exit 3'))
    error = error_of(finished, 1)
    assert error.startswith("4 of 8 runs done")
    assert "  Skipping its 4 runs.\n" in finished.stderr
    assert [entry.task for entry in suite.diary] == ["parus"] * 2 + ["rcb"] * 5
    assert suite.others == ["parus/warm-up.failed.json", "parus/warm-up.jsonl.failed"]


def test_one_run_that_was_skipped_is_counted_as_one(suite: Suites) -> None:
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
    target = suite.target("""echo '{"idx": 0}'""")
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
    first, second = map(str.strip, error.splitlines())
    assert first.startswith("exec:nosuch-parus: command not found")
    assert second.startswith("exec:nosuch-rcb: command not found")


@pytest.mark.parametrize(
    ("target", "named"),
    [
        ("exec:", "exec:"),
        ("exec:sh -c 'no end", "sh -c 'no end"),
        ("exec:/etc/passwd {task}", "exec:/etc/passwd parus"),
    ],
)
def test_a_command_that_cannot_be_run_is_reported_first(
    target: str, named: str, suite: Suites
) -> None:
    assert named in suite(target=target).fails(10)
    assert suite.others == []


def test_an_engine_that_is_not_there_is_reported_first(suite: Suites) -> None:
    env = {"DOCKER_HOST": "unix:///nonexistent.sock"}
    error = suite(target="rubert-{task}", env=env).fails(4)
    assert "Cannot reach the container engine at unix:///nonexistent.sock" in error
    assert suite.others == []


@pytest.mark.parametrize(
    ("options", "target", "code", "expected"),
    [
        (TWO, "exec:cat", 3, "exec:cat is the same for all tasks; write {task}"),
        (TWO, "rubert-{taks}", 3, "has {taks}, which stands for nothing; write {task}"),
        (("--tasks", "parus"), "rubert-{taks}", 3, "{taks} stands for nothing here"),
        (("--gpus", "7"), None, 5, "--gpus 7"),
        (
            ("--parallel", "--cluster", "tcp://127.0.0.1:1"),
            None,
            3,
            "--parallel divides this machine, --cluster uses others",
        ),
        (("--models", "a"), None, 3, "name that file"),
        (TWO, "python infer.py {task}", 3, "'exec:python infer.py parus'"),
    ],
)
def test_what_cannot_be_done_is_reported_first(
    options: tuple[str, ...], target: str | None, code: int, expected: str, suite: Suites
) -> None:
    assert expected in suite(*options, target=target).fails(code)
    assert (suite.diary, suite.done) == ([], [])


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((), "Missing argument 'TARGET'"),
        (("exec:cat",), "Missing argument 'DATA_DIR'"),
        (("exec:cat {task}", "data", "--memory", "8g"), "--memory is for containers"),
        (("exec:cat", "data", "--repeats", "0"), "--repeats"),
        (("exec:cat", "data", "--retries", "-1"), "--retries"),
        (("exec:cat", "data", "--rate", "nan"), "--rate"),
        (("exec:cat", "data", "--tasks", ""), "a,b,c"),
        (("exec:cat", "data", "--tasks", "parus,,rcb"), "a,b,c"),
    ],
)
def test_wrong_usage_ends_with_code_2(args: tuple[str, ...], expected: str, suite: Suites) -> None:
    with suite.run(*args) as run:
        finished = run.finish()
    assert finished.code == 2
    assert expected in finished.stderr.splitlines()[-1]
