"""`morocco bench exec:COMMAND`: what only holds for a bare process."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from conftest import metronome_process

from morocco.bench.run import measure
from morocco.errors import DataError, TargetError
from morocco.targets.options import RunOptions
from runs import Bench, parse, read_failed_record, read_log, read_record, until
from special_files import describe, make_device

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
    [
        *("--memory 1g", "--cpus 1", "--shm-size 1g", "--network none", "--pull never"),
        *("--read-only", "--pids-limit 9", "--cap-add SETUID"),
    ],
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


@pytest.mark.parametrize("score", [1000, 500])
def test_the_kernel_ends_a_target_before_others_where_memory_runs_out(
    score: int, bench: Bench, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    options = () if score == 1000 else ("--oom-score-adj", score)
    command = "exec:sh -c 'cat > /dev/null; cat /proc/self/oom_score_adj'"
    bench(command, *options, "--raw-output", "--predictions", kept).succeeds()
    assert int(kept.read_text()) == score
    assert int(Path("/proc/self/oom_score_adj").read_text()) != score


def test_a_device_takes_the_log_and_stdout_the_predictions(bench: Bench, tmp_path: Path) -> None:
    device = make_device(tmp_path / "null")
    before = describe(device)
    finished = bench("exec:sh -c cat", "-o", device, "--predictions", "/dev/stdout").succeeds()
    assert len(finished.lines) == 100
    assert finished.warnings == []
    assert describe(device) == before
    assert list(tmp_path.iterdir()) == [device]


def test_a_process_that_stays_behind_is_ended_with_the_target(bench: Bench, log: Path) -> None:
    bench(metronome_process("--daemon"), "-o", log).succeeds()  # which looks for what is left
    assert read_record(log)["run_time"] < 5


@pytest.mark.parametrize("way", ["setsid sleep 600 &", "setsid sh -c 'sleep 600 & exit' &"])
def test_a_daemon_is_ended_with_the_target(way: str, bench: Bench, log: Path) -> None:
    bench(f"exec:sh -c {shlex.quote(f'cat; {way} sleep 0.2')}", "-o", log).succeeds()
    assert read_record(log)["run_time"] < 5


@pytest.mark.parametrize(("name", "codes"), [("docker", ["works-elsewhere"]), ("model", [])])
def test_a_client_of_an_engine_is_told_that_its_work_is_not_measured(
    name: str, codes: list[str], bench: Bench, log: Path, tmp_path: Path
) -> None:
    client = tmp_path / name
    client.write_text("#!/bin/sh\nsleep 2.5\ncat\n")
    client.chmod(0o755)
    bench(f"exec:{client} run -i image", "-o", log).succeeds()
    assert read_record(log)["warning_codes"] == codes


DAEMON = """
import os, subprocess, sys, time
server = "x = b'x' * (100 * 2**20)\\nwhile True: pass"
daemon = "import os, sys; open(sys.argv[2], 'w').write(str(os.getpid())); exec(sys.argv[1])"
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.execve(sys.executable, [sys.executable, "-c", daemon, server, sys.argv[1]], {ENV})
    os._exit(0)
os.wait()
sys.stdout.write(sys.stdin.read())
sys.stdout.flush()
time.sleep(1.5)
"""


@pytest.mark.parametrize("environment", ["os.environ", "{}"], ids=["marked", "cleared"])
def test_a_server_that_daemonises_is_measured_and_ended(
    environment: str, data_dir: Path, tmp_path: Path, log: Path
) -> None:
    """It leaves its session and its parents, and clears its environment."""
    program, pid = tmp_path / "daemon.py", tmp_path / "pid"
    program.write_text(DAEMON.replace("{ENV}", environment))
    other = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        record = measure(
            f"exec:{sys.executable} {program} {pid}",
            data_dir,
            "parus",
            input_size=100,
            batch_size=32,
            output=log,
            options=RunOptions(rate=10),
        )
        assert not Path(f"/proc/{pid.read_text()}").exists()  # not even as a zombie
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
        with suppress(ProcessLookupError):
            os.kill(int(pid.read_text()), signal.SIGKILL)
    assert record.peaks.ram is not None
    assert record.peaks.ram > 100 * 2**20
    assert max(line["cpu_usage"] or 0 for line in read_log(log)) > 0.25  # its share may be small


def test_what_other_children_leave_behind_is_not_adopted(data_dir: Path) -> None:
    measure(metronome_process(""), data_dir, "parus", input_size=3)
    orphan = subprocess.check_output(["sh", "-c", "sleep 60 >/dev/null & echo $!"], text=True)
    try:
        parent = Path(f"/proc/{orphan.strip()}/stat").read_text().rpartition(")")[2].split()[1]
        assert int(parent) != os.getpid()
    finally:
        os.kill(int(orphan), signal.SIGKILL)


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
