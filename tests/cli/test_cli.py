"""The command line, run as its users run it."""

from __future__ import annotations

import os
from pathlib import Path

import click
import pytest

from command_line import (
    HEAVY,
    MODULE,
    SCRIPT,
    complete,
    imported_by,
    run,
)
from morocco import __version__
from morocco.cli import SECTIONS, cli
from morocco.tasks import TASKS
from morocco.util.params import Duration, MemorySize, Variable
from sample_logs import write_quick_model

COMMANDS = {
    name: command
    for name in cli.list_commands(click.Context(cli))
    if (command := cli.get_command(click.Context(cli), name)) is not None
}
OPTIONS = [param.name for param in COMMANDS["bench"].params if isinstance(param, click.Option)]
WARNING = ("morocco: warning: ", "  ")
"""How each line of a warning starts: its first, and those of its list."""


@pytest.mark.parametrize("program", [MODULE, SCRIPT], ids=["module", "script"])
def test_help_lists_the_commands(program: tuple[str, ...]) -> None:
    done = run("--help", program=program)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: morocco [OPTIONS] COMMAND")
    _, _, sections = done.stdout.partition("Measure:")
    listed = [line.split()[0] for line in sections.splitlines() if line.startswith("  ")]
    assert listed == list(COMMANDS)


def test_help_lists_the_commands_in_sections() -> None:
    lines = run("--help").stdout.splitlines()
    titles = [line.removesuffix(":") for line in lines if line.endswith(":") and line[0] != " "]
    assert [title for title in titles if title in SECTIONS] == list(SECTIONS)


def test_the_module_and_the_script_are_the_same_program() -> None:
    for args in (["--help"], ["bench", "-h"], ["stats"], ["--version"]):
        as_module, as_script = (run(*args, program=program) for program in (MODULE, SCRIPT))
        assert as_module.stdout == as_script.stdout
        assert as_module.stderr == as_script.stderr
        assert as_module.returncode == as_script.returncode


def test_the_version_is_told() -> None:
    assert run("--version").stdout == f"morocco {__version__}\n"


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_and_option_explains_itself(command: str) -> None:
    shown = run(command, "--help").stdout
    for param in COMMANDS[command].params:
        for name in param.opts:
            assert name in shown or isinstance(param, click.Argument)


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (["--fast"], "--fast"),
        (["bench", "image", "data", "parus", "--input", "5"], "--input"),
        (["bench", "image", "data"], "TASK"),
        (["bench", "image", "data", "parus", "--batch-size", "0"], "--batch-size"),
        (["bench", "image", "data", "parus", "--memory", "much"], "write it as 512m or 8g"),
        (["bench", "image", "data", "parus", "--timeout", "soon"], "write it as 90s, 30m or 2h"),
        (["bench", "image", "data", "parus", "--env", "=5"], "'=5' is not KEY=VALUE"),
        (["bench", "exec:true", "data", "parus", "--memory", "8g"], "--memory is for containers"),
        (["stats"], "PATH"),
        (["measure"], "measure"),
    ],
)
def test_wrong_usage_is_named_and_ends_with_code_2(args: list[str], named: str) -> None:
    done = run(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert named in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("text", ["512m", "8g", "8G", "64k", "100b", "010m"])
def test_a_size_is_taken_as_docker_writes_it(text: str) -> None:
    assert MemorySize().convert(text, None, None) == text


@pytest.mark.parametrize("text", ["", "g", "8gb", "1.5g", "-1", "8 g", "8t", "0", "0m", "٣m"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a size"):
        MemorySize().convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("1.5", 1.5),
        ("30m", 1800),
        ("2h", 7200),
        (" 5s ", 5),
        ("0.5h", 1800),
    ],
)
def test_a_duration_is_taken_in_seconds_minutes_or_hours(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "s", "0", "0.0h", "-5", "1d", "5 s", "1m30s", "nan", "inf"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a duration"):
        Duration().convert(text, None, None)


@pytest.mark.parametrize("text", ["A=1", "HOME", "A=", "A=b=c"])
def test_a_variable_has_a_key_and_may_have_a_value(text: str) -> None:
    assert Variable().convert(text, None, None) == text


@pytest.mark.parametrize("text", ["", "=", "=5"])
def test_a_variable_without_a_key_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not KEY=VALUE"):
        Variable().convert(text, None, None)


def test_a_variable_that_is_not_set_here_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOWHERE", raising=False)
    with pytest.raises(click.BadParameter, match="NOWHERE is not set here"):
        Variable().convert("NOWHERE", None, None)


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_of_bench_can_be_set_in_the_environment(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {"pull": "never", "memory": "1g", "shm_size": "1g", "env": "A=1"}
    monkeypatch.setenv(f"MOROCCO_BENCH_{name.upper()}", values.get(name, "1"))
    command = ["bench", "image", "data", "parus"]
    group = cli.make_context("morocco", command)
    bench = COMMANDS["bench"].make_context("bench", command[1:], parent=group)
    assert bench.get_parameter_source(name) is click.core.ParameterSource.ENVIRONMENT


def test_a_wrong_value_in_the_environment_names_its_option() -> None:
    done = run("bench", "image", "data", "parus", MOROCCO_BENCH_BATCH_SIZE="0")
    assert done.returncode == 2
    assert "'--batch-size': 0 is not in the range" in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_of_a_shell_is_printed(shell: str) -> None:
    done = run(program=SCRIPT, _MOROCCO_COMPLETE=f"{shell}_source")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"_MOROCCO_COMPLETE={shell}_complete" in done.stdout


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("morocco bench image data pa", ["parus"]),
        ("morocco bench image data ru", ["rucos", "russe"]),
        ("morocco be", ["bench"]),
        ("morocco bench --pull n", ["never"]),
        ("morocco bench --inp", ["--input-size"]),
        ("morocco suite --tasks te", ["terra"]),
        ("morocco suite --tasks terra,pa", ["terra,parus"]),
        ("morocco bench ex", ["exec:"]),
        ("morocco suite ex", ["exec:"]),
    ],
)
def test_the_shell_completes_what_is_typed(typed: str, completed: list[str]) -> None:
    assert complete(typed, word=len(typed.split()) - 1) == completed


def test_the_models_of_a_suite_file_are_offered(tmp_path: Path) -> None:
    file = tmp_path / "suite.toml"
    file.write_text('[models]\nlarge = "exec:cat"\nsmall = "exec:cat"\n')
    assert complete(f"morocco suite --config {file} --models l", word=5) == ["large"]
    assert complete(f"morocco suite --config {file} --models large,", word=5) == ["large,small"]


def test_all_nine_tasks_are_offered() -> None:
    assert complete("morocco bench image data ", word=4) == list(TASKS)


@pytest.mark.parametrize(
    "code",
    [
        "sys.argv = ['morocco', '--help']\nfrom morocco.__main__ import run; run()",
        "import morocco.stats.estimates, morocco.logs.discovery, morocco.stats.render",
    ],
)
def test_nothing_heavy_is_imported_in_vain(code: str) -> None:
    modules = imported_by(code)
    assert any(name.startswith("morocco.") for name in modules)
    assert not modules & HEAVY


def test_stats_imports_nothing_heavy(tmp_path: Path) -> None:
    logs = write_quick_model(tmp_path)
    args = ["morocco", "stats", str(logs)]
    modules = imported_by(f"sys.argv = {args!r}\nfrom morocco.__main__ import run; run()")
    assert "morocco.stats.estimates" in modules
    assert not modules & HEAVY


def test_a_path_that_does_not_exist_is_one_line_and_code_3(tmp_path: Path) -> None:
    done = run("stats", tmp_path / "logs")
    assert (done.returncode, done.stdout) == (3, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"morocco: error: {tmp_path / 'logs'} does not exist.")


def test_a_task_that_is_misspelt_is_one_line_and_code_3(tmp_path: Path) -> None:
    done = run("bench", "exec:true", tmp_path, "paruss")
    assert (done.returncode, done.stdout) == (3, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("morocco: error: No data for the task 'paruss'")


def test_estimates_go_to_stdout_and_doubts_to_stderr(tmp_path: Path) -> None:
    done = run("stats", write_quick_model(tmp_path))
    assert done.returncode == 0
    assert '"rps": 20.0' in done.stdout
    assert all(line.startswith(WARNING) for line in done.stderr.splitlines())


@pytest.mark.parametrize("args", [("stats",), ("--help",)])
def test_a_reader_that_has_seen_enough_causes_no_complaint(
    tmp_path: Path, args: tuple[str, ...]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = run(*args, write_quick_model(tmp_path), stdout=writer)
    finally:
        os.close(writer)
    assert done.returncode in (0, 1)
    assert all(line.startswith(WARNING) for line in done.stderr.splitlines())


@pytest.mark.parametrize("args", [("stats",), ("--help",)])
def test_a_disk_that_is_full_is_one_line_and_code_6(tmp_path: Path, args: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = run(*args, write_quick_model(tmp_path), stdout=full.fileno())
    assert done.returncode == 6
    assert done.stderr.splitlines()[-1].startswith("morocco: error: ")
    assert "Traceback" not in done.stderr
