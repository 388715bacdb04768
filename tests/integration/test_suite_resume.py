"""`morocco suite` continues after any interruption, and never touches finished runs."""

from __future__ import annotations

import json
import shutil
import signal
import sys
from pathlib import Path
from random import Random

import pytest

from random_kills import Victim, kill_suites
from runs import read_record, run_morocco, until
from suite_runs import PARUS, TWO, Suites, error_of, is_alive, kill

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Continuing


def test_what_is_done_is_not_done_again(suite: Suites) -> None:
    suite().succeeds()
    before, diary = suite.snapshot(), suite.diary
    assert suite().succeeds().stderr == (f"All 4 runs are done: {suite.logs}. Next: {suite.next}\n")
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


def test_the_check_that_a_suite_names_at_its_end_finds_all_that_it_asks_for(suite: Suites) -> None:
    suite().succeeds()
    suite(*TWO, "--repeats", 1).succeeds()
    profile = suite.logs / "profile.toml"
    assert tomllib.loads(profile.read_text()) == {"tasks": ["parus", "rcb"], "runs": 1}
    told = run_morocco(*suite.next.split()[1:]).stdout
    assert "Yes   complete" in told
    assert "Yes   tasks" in told
    profile.write_text(mine := 'tasks = ["rcb"]\n')
    suite().succeeds()
    assert profile.read_text() == mine


def test_named_runs_are_done_again_and_their_old_logs_kept(suite: Suites) -> None:
    suite().succeeds()
    before, diary = suite.snapshot(), suite.diary
    shown = suite("--redo", "parus/1_1_02,parus/20_4_01").succeeds().stderr
    assert "parus/1_1_02.jsonl.old" in shown
    assert sorted(suite.done) == sorted(PARUS)
    assert len(suite.diary) == len(diary) + 3  # a warm-up first
    changed = {path for path, content in suite.snapshot().items() if before.get(path) != content}
    assert {Path(path).name.split(".")[0] for path in changed} == {"1_1_02", "20_4_01"}
    assert "parus/1_1_07" in suite("--redo", "parus/1_1_07").fails(3)


def test_repair_does_again_what_check_finds_wrong_for_a_cause(suite: Suites) -> None:
    suite().succeeds()
    spoilt = suite.log("parus/20_4_02")
    lines = spoilt.read_text().splitlines(keepends=True)
    readings = json.loads(lines[0]) | {"cpu_usage": None, "ram": None}
    spoilt.write_text(f"{json.dumps(readings)}\n{lines[-1]}")
    plan = suite("--repair", "--dry-run").succeeds().stdout
    assert "1 run to do, 3 done" in plan
    suite("--repair").succeeds()
    assert sorted(suite.done) == sorted(PARUS)
    assert any(line["ram"] for line in map(json.loads, spoilt.read_text().splitlines()))
    assert "All 4 runs are done" in suite("--repair").succeeds().stderr


@pytest.mark.parametrize(
    ("number", "current"), [(1, "parus/warm-up"), (3, "parus/20_4_01"), (5, "parus/20_4_02")]
)
def test_a_killed_suite_continues(number: int, current: str, suite: Suites) -> None:
    target = suite.hang_at(number)
    with suite.start(target=target) as run:
        run.wait_until_sampled(suite.log(current))
        until(lambda: len(suite.diary) == number)
        kill(run)
    before, left_behind = suite.snapshot(), suite.diary[-1].pid
    assert suite.done == PARUS[: max(0, number - 2)]
    assert suite.others == [f"{current}.jsonl.part"]
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
    assert finished.stderr == (f"All 8 runs are done: {suite.logs}. Next: {suite.next}\n")
    assert kills > 1


@pytest.mark.slow
def test_random_signals_and_bursts_of_them_harm_nothing(suite: Suites) -> None:
    command = suite.command(
        *TWO, "--repeats", 1, target=suite.target("sleep 0.1; [ $2 -eq 1 ] || sleep 0.3")
    )
    victim = Victim(command, plan=4, longest=1.5)
    harm = kill_suites(victim, suite.folder / "killed", kills=8, random=Random(1))
    assert +harm == {"kills": 8}


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
    assert "\n1 of 4 runs are done; run the same command to continue.\n" in finished.stderr
    assert "failed" not in finished.stderr
    assert suite.done == ["parus/1_1_01"]
    assert not list(suite.logs.rglob("*.part"))

    suite(target=target).succeeds()
    assert suite.done == PARUS
    assert suite.others == []


def test_the_second_suite_in_a_folder_learns_who_holds_it(suite: Suites) -> None:
    with suite.start(target=suite.hang_at(2)) as run:
        until(lambda: len(suite.diary) == 2)
        before = suite.snapshot()
        error = suite().fails(3)
        assert f"{suite.logs}: process {run.pid} on " in error
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
    assert first.startswith("parus/1_1_01: its record is missing. ")
    assert f"{without}.old" in first
    assert second.startswith("parus/20_4_02: its record is of a failed run. ")
    assert Path(f"{without}.old").read_bytes() == content
    assert suite.others == [
        "parus/1_1_01.jsonl.old",
        "parus/20_4_02.json.old",
        "parus/20_4_02.jsonl.old",
    ]
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
    ("target", "options", "expected"),
    [
        ("exec:sh -c cat {task}", (), ", now exec:sh -c cat parus"),
        (None, ("-e", "COLOUR=red"), ": --env [], now ['COLOUR']"),
    ],
)
def test_runs_under_other_conditions_are_not_mixed_with_new_ones(
    target: str | None, options: tuple[str, ...], expected: str, suite: Suites
) -> None:
    suite("--repeats", 1).succeeds()
    before = suite.snapshot()
    error = suite(*options, target=target).fails(3)
    assert f"\n  {suite.log('parus/1_1_01')}: " in error
    assert expected in error
    assert "--logs" in error.splitlines()[-1]
    assert "--force" in error.splitlines()[-1]
    assert suite.snapshot() == before
    suite(*options, "--force", target=target).succeeds()
    assert suite.done == PARUS


def test_runs_with_other_values_of_a_variable_are_not_mixed(suite: Suites) -> None:
    suite("--repeats", 1, "-e", "COLOUR=crimson").succeeds()
    assert suite("--repeats", 1, "-e", "COLOUR=crimson").succeeds().stderr.startswith("All 2 runs")
    error = suite("--repeats", 1, "-e", "COLOUR=blue").fails(3)
    assert f"\n  {suite.log('parus/1_1_01')}: other values of --env COLOUR\n" in error
    assert "crimson" not in suite.log("parus/1_1_01").with_suffix(".json").read_text()


def test_runs_on_other_data_are_not_mixed_with_new_ones(suite: Suites) -> None:
    suite("--repeats", 1).succeeds()
    (suite.data / "PARus" / "val.jsonl").write_text('{"idx": 5}\n')
    assert "its data file had other records" in suite().fails(3)


def test_of_many_runs_under_other_conditions_a_few_are_named(suite: Suites) -> None:
    suite("--repeats", 4).succeeds()
    error = suite("--repeats", 5, "-e", "A=1").fails(3)
    assert len(error.splitlines()) == 1 + 5 + 1 + 1
    assert "\n  and 3 more\n" in error


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
    assert "2 of 4 runs are done; run the same command to continue." in finished.stderr
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


def test_what_a_killed_suite_left_goes_even_where_nothing_is_to_be_done(suite: Suites) -> None:
    suite().succeeds()
    with suite.start("--force") as run:
        until(lambda: any(name.endswith(".part") for name in suite.others))
        kill(run)
    suite().succeeds()
    assert not [name for name in suite.others if name.endswith(".part")]
