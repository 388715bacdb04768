"""`morocco bench exec:COMMAND`: what only holds for a bare process."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from conftest import metronome_process

from morocco.bench.run import measure
from morocco.errors import DataError, TargetError
from morocco.targets.options import RunOptions
from runs import Bench, parse, read_failed_record, read_log, read_record, until

TELL_ENVIRONMENT = "import json, os, sys; sys.stdin.read(); print(json.dumps(dict(os.environ)))"


def environment_of(bench: Bench, tmp_path: Path, *options: object, **more: str) -> dict[str, str]:
    """Return the environment that a target sees."""
    target = f"exec:python3 -c {shlex.quote(TELL_ENVIRONMENT)}"
    kept = tmp_path / "predictions.jsonl"
    bench(target, *options, "--raw-output", "--predictions", kept, env=more).succeeds()
    environment: dict[str, str] = json.loads(kept.read_text())
    return environment


def test_variables_are_added_to_the_environment(bench: Bench, tmp_path: Path) -> None:
    options = ("--env", "COLOUR=dark red", "-e", "HERE", "-e", "EMPTY=")
    seen = environment_of(bench, tmp_path, *options, HERE="yes")
    assert (seen["COLOUR"], seen["HERE"], seen["EMPTY"]) == ("dark red", "yes", "")
    assert "PATH" in seen


@pytest.mark.parametrize(
    "option",
    ["--memory 1g", "--cpus 1", "--shm-size 1g", "--network none", "--pull never"],
)
def test_what_only_a_container_can_have_is_refused(option: str, bench: Bench, log: Path) -> None:
    finished = bench(metronome_process(""), "-o", log, *option.split())
    assert finished.code == 2
    assert f"{option.split()[0]} is for containers" in finished.stderr
    assert not log.parent.exists()


def test_a_command_is_split_as_a_shell_would(bench: Bench, log: Path) -> None:
    bench("exec:sh -c 'cat; echo \"{}\"'", "-o", log, "--raw-output").succeeds()
    record = read_record(log)
    assert record["target"]["command"][:3] == ["sh", "-c", 'cat; echo "{}"']
    assert record["predictions"]["count"] == 101


def test_a_process_that_stays_behind_is_ended_with_the_target(bench: Bench, log: Path) -> None:
    bench(metronome_process("--daemon"), "-o", log).succeeds()  # which looks for what is left
    assert read_record(log)["run_time"] < 5


@pytest.mark.parametrize("way", ["setsid sleep 600 &", "setsid sh -c 'sleep 600 & exit' &"])
def test_a_daemon_is_ended_with_the_target(way: str, bench: Bench, log: Path) -> None:
    bench(f"exec:sh -c {shlex.quote(f'cat; {way} sleep 0.2')}", "-o", log).succeeds()
    assert read_record(log)["run_time"] < 5


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("nosuch --fast", "Cannot run `nosuch --fast --batch-size 32`: No such file or directory"),
        ("/etc/passwd", "Cannot run `/etc/passwd --batch-size 32`: Permission denied"),
        ("", "needs a command"),
        ("echo 'no end", "No closing quotation"),
    ],
)
def test_a_command_that_cannot_be_run_is_told(
    command: str, reason: str, bench: Bench, log: Path
) -> None:
    assert reason in bench(f"exec:{command}", "-o", log).fails(10)
    assert not log.exists()


def test_input_left_in_the_pipe_is_noticed_however_small(bench: Bench, log: Path) -> None:
    error = bench("exec:sh -c 'echo {}'", "-o", log).fails(14)
    assert "before it had read its input" in error
    assert "left unread" in error
    assert read_failed_record(log)["failure"]["kind"] == "UnreadInput"


def test_the_target_has_no_part_in_ctrl_c(bench: Bench, tmp_path: Path) -> None:
    """It lives in a session of its own: a terminal's Ctrl-C reaches morocco alone."""
    session = tmp_path / "session"
    script = f"cut -d ' ' -f 6 /proc/self/stat > {session}; cat; sleep 0.5"
    with bench.start(f"exec:sh -c {shlex.quote(script)}") as run:
        until(lambda: session.exists() and session.read_text())
        own = Path(f"/proc/{run.pid}/stat").read_text().split()[5]
        assert session.read_text().strip() != own
        run.finish().succeeds()


def test_the_predictions_may_lack_the_last_newline(bench: Bench, log: Path, tmp_path: Path) -> None:
    kept = tmp_path / "predictions.jsonl"
    bench("exec:sh -c 'cat | head -c -1'", "-o", log, "--predictions", kept).succeeds()
    assert read_record(log)["predictions"]["count"] == len(parse(kept.read_text())) == 100


# From Python


def test_a_program_can_measure_too(data_dir: Path, log: Path) -> None:
    record = measure(
        metronome_process("--hang 0.7"),
        data_dir,
        "parus",
        input_size=100,
        batch_size=32,
        output=str(log),
        options=RunOptions(rate=10),
    )
    assert (record.exit_code, record.records_fed, record.prediction_count) == (0, 100, 100)
    assert read_record(log)["run_time"] == record.run_time
    assert len(read_log(log)) >= 7


def test_a_program_may_want_the_record_alone(data_dir: Path) -> None:
    record = measure(metronome_process(""), str(data_dir), "parus", input_size=3)
    assert (record.records_fed, record.batch_size) == (3, 128)


def test_a_program_gets_the_failure_of_a_run_with_what_the_target_logged(data_dir: Path) -> None:
    with pytest.raises(TargetError) as raised:
        measure(metronome_process("--exit-code 3 --say out-of-luck"), data_dir, "parus")
    assert raised.value.cause == "exit code 3"
    assert raised.value.quoted[-1] == "out-of-luck"


def test_log_and_predictions_need_two_files(data_dir: Path, log: Path) -> None:
    with pytest.raises(DataError, match=str(log)):
        measure(metronome_process(""), data_dir, "parus", output=log, predictions=log)
