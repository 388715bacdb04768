"""`morocco suite`, run as its users run it: on bare processes that keep a diary."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from itertools import groupby

import pytest
from conftest import metronome_process

from runs import TIMEOUT, Finished, read_record, until
from suite_runs import PARUS, TWO, Suites, wait_for, write_config

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


# Messages


def test_where_there_is_no_terminal_each_run_is_a_plain_line(suite: Suites) -> None:
    lines = suite().succeeds().stderr.splitlines()
    patterns = [
        r"\[0/4\] parus/warm-up, not kept: \d+\.\d s",
        r"\[1/4\] parus/1_1_01: \d+\.\d s",
        r"\[2/4\] parus/20_4_01: \d+\.\d s, about \d+:\d\d left",
        r"\[3/4\] parus/1_1_02: \d+\.\d s, about \d+:\d\d left",
        r"\[4/4\] parus/20_4_02: \d+\.\d s, about 0:00 left",
        rf"4 of 4 runs done: {suite.logs}\. Next: {re.escape(suite.next)}",
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
        self._reader.join(TIMEOUT)
        os.close(self._person)


def test_on_a_terminal_there_is_a_bar_and_a_line_for_the_current_run(suite: Suites) -> None:
    go = suite.folder / "go"
    target = suite.target(
        f'until [ "$2" = 1 ] || [ -e {shlex.quote(str(go))} ]; do sleep 0.1; done'
    )
    line = re.compile(r"parus/20_4_01  \d+:\d\d  RAM [\d.]+ GB  CPU [\d.]+ cores  fed 20/20 ")
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
    assert terminal.shown.rstrip().endswith(f"Next: {suite.next}")


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
    command = [
        sys.executable,
        "-m",
        "morocco",
        "suite",
        *map(str, args),
        "--repeats",
        "2",
        "--no-doctor",
    ]
    shell = f"{shlex.join([*command, '--logs', str(suite.logs)])} 2>&-"
    assert subprocess.run(["sh", "-c", shell], check=False).returncode == 0
    assert suite.done == PARUS


# The plan


def test_a_dry_run_prints_the_plan_and_does_nothing(suite: Suites) -> None:
    finished = suite(*TWO, "--dry-run", target="exec:cat {task}").succeeds()
    *table, last = finished.stdout.splitlines()
    assert table == [
        "task   target          input  batch  runs  done  a run  left",
        "parus  exec:cat parus      1      1     2     0      ?     ?",
        "parus  exec:cat parus     20      4     2     0      ?     ?",
        "rcb    exec:cat rcb        1      1     2     0      ?     ?",
        "rcb    exec:cat rcb       20      4     2     0      ?     ?",
    ]
    assert last.startswith("8 runs to do, 0 done, 2 warm-ups: ")
    assert finished.stderr == ""
    assert not suite.logs.exists()


def test_a_dry_run_shows_the_time_once_there_were_runs(suite: Suites) -> None:
    target = suite.target('[ "$2" = 1 ] || sleep 1')
    suite("--repeats", 1, target=target).succeeds()
    before = suite.snapshot()
    plan = suite("--dry-run", "--repeats", 3, target=target).succeeds().stdout
    short, long, total = plan.splitlines()[1:]
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
        *("small/parus/1_1_01", "small/parus/20_2_01"),
        *("large/parus/1_1_01", "large/parus/10_2_01"),
        *("small/rcb/1_1_01", "small/rcb/20_4_01"),
    ]
    assert read_record(suite.log("large/parus/10_2_01"))["arguments"]["rate"] == 20


def test_the_command_line_takes_precedence_over_the_file(suite: Suites) -> None:
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


@pytest.mark.parametrize(
    ("options", "order"), [((), ["small", "large"] * 2), (("--one-by-one",), ["small", "large"])]
)
def test_models_take_turns_unless_they_are_to_come_one_by_one(
    options: tuple[str, ...], order: list[str], suite: Suites
) -> None:
    content = two_models(suite)
    tasks = ("--tasks", "terra", "--repeats", 3, "--input-size", 5)
    run_file(suite, content, *tasks, *options).succeeds()
    models = [name.partition("/")[0] for name in suite.done]
    assert [model for model, _ in groupby(models)] == order


def test_with_a_file_a_lone_folder_is_the_data(suite: Suites) -> None:
    content = two_models(suite)
    config = write_config(suite.folder / "suite.toml", content, logs=suite.logs)
    with suite.run("--config", config, suite.data, "--tasks", "terra", "--models", "small") as run:
        run.finish().succeeds()
    assert suite.done == ["small/terra/1_1_01", "small/terra/20_4_01"]


def test_the_environment_takes_precedence_over_the_file_too(suite: Suites) -> None:
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
    ("content", "code", "expected"),
    [
        ("repeat = 3", 3, "suite.toml: there is no key 'repeat'"),
        ("repeats = 2.5", 2, "Invalid value for '--repeats': '2.5'"),
        ("timeout = 0.0", 2, "Invalid value for '--timeout': '0.0' is not a duration"),
        ("env = ['A=1', 5]", 2, "5 is not set here"),
        ("", 3, "There is nothing to measure: name a TARGET, or models in the --config file."),
        ("target = 'x'\nmodels.a = 'x'", 3, "has both a target and models; leave out one of them"),
    ],
)
def test_what_is_wrong_in_a_file_is_reported(
    content: str, code: int, expected: str, suite: Suites
) -> None:
    finished = run_file(suite, content)
    assert finished.code == code
    assert "Traceback" not in finished.stderr
    assert expected in finished.stderr
    assert not suite.logs.exists()
