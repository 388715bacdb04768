"""The command `check`: exit codes, formats, profiles."""

from __future__ import annotations

import json
import re
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from command_line import HEAVY, imported_by, run
from morocco.check.check import check
from morocco.check.profile import RUSSIAN_SUPERGLUE, Machine, Profile, Thresholds, read_profile
from morocco.check.render import render, render_text
from morocco.check.rule import CheckResult, Detail, RuleResult
from morocco.errors import DataError
from morocco.logs.submission import Submission, load_submission
from morocco.util.files import read_toml
from submissions import change, lasting, make_submission, with_record

PROFILE = """
name = "Мини"
tasks = ["parus"]
runs = 2
sizes = ["1_1", "2000_32"]

[machine]
gpu = "A100"
gpus = 1
gpu_ram = 40
cores = 16
ram = 128.5

[thresholds]
spread = 0.02
"""


def write(submission: Submission, folder: Path) -> Path:
    """Write the logs and records of a submission of one model."""
    for entry in submission.entries:
        path = folder / str(entry.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        assert entry.log
        path.write_text("".join(sample.to_line() + "\n" for sample in entry.log.samples))
        if entry.record is not None:
            path.with_suffix(".json").write_text(json.dumps(entry.record.to_json()))
    return folder


def pack(folder: Path, archive: Path) -> Path:
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(folder.rglob("*.json*")):
            file.write(path, path.relative_to(folder.parent))
    return archive


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write(make_submission(), tmp_path / "logs")


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    spoilt = change(make_submission(), ["rcb/1_1_01.jsonl"], lasting(18.0))
    return write(spoilt, tmp_path / "bad")


# The command


def test_a_valid_submission_ends_with_code_0(good: Path) -> None:
    done = run("check", good)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "VALID"


def test_an_invalid_submission_ends_with_code_1_and_says_why_on_stdout(bad: Path) -> None:
    done = run("check", bad)
    assert (done.returncode, done.stderr) == (1, "")
    *_, last = done.stdout.splitlines()
    assert last == "INVALID"
    lines = done.stdout.splitlines()
    (at,) = [at for at, line in enumerate(lines) if line.startswith("NO")]
    assert lines[at].split()[1] == "start-up"
    assert "      - rcb/1_1_01.jsonl 18.0 s, the fastest 10.0 s" in lines[at:]
    assert any(line.startswith("     -> ") for line in lines[at:])


def test_a_zip_has_the_same_verdict_as_its_folder(bad: Path, tmp_path: Path) -> None:
    archive = pack(bad, tmp_path / "logs.zip")
    assert run("check", archive).stdout == run("check", bad).stdout


def test_a_single_log_is_not_a_submission(good: Path) -> None:
    done = run("check", good / "rcb" / "1_1_01.jsonl")
    assert done.returncode == 1
    assert "rcb: 1 of 5 runs of 1_1 (missing: 02, 03, 04, 05)" in done.stdout


def test_json_holds_the_verdict_and_every_file(bad: Path) -> None:
    done = run("check", bad, "--format", "json")
    assert done.returncode == 1
    content = json.loads(done.stdout)
    assert (content["valid"], content["profile"]) == (False, "Russian SuperGLUE")
    (rule,) = [rule for rule in content["rules"] if rule["status"] == "NO"]
    assert rule["id"] == "start-up"
    (detail,) = rule["found"]
    assert detail == {
        "what": "18.0 s, the fastest 10.0 s",
        "model": "bad",
        "files": ["rcb/1_1_01.jsonl"],
    }
    assert rule["todo"]


def test_unreadable_logs_do_not_hide_the_others(bad: Path) -> None:
    log = bad / "rcb" / "2000_32_01.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join([*lines[:5], lines[3], *lines[5:]]))
    (bad / "rcb" / "2000_32_02.jsonl").write_text(lines[0] + "{\n")
    (bad / "rcb" / "2000_32_03.json").write_text("[]")
    checked = check(load_submission([bad]))
    found = {result.rule: result.details for result in checked.results}
    assert [detail.files for detail in found["forward"]] == [("rcb/2000_32_01.jsonl",)]
    assert found["forward"][0].what.startswith("line 6: ")
    assert [detail.files for detail in found["readable"]] == [("rcb/2000_32_02.jsonl",)]
    assert found["readable"][0].what.startswith("line 2: ")
    assert [detail.files for detail in found["records"]] == [("rcb/2000_32_03.jsonl",)]
    assert found["start-up"]


def test_equal_bytes_are_a_copy(good: Path) -> None:
    content = (good / "rcb" / "2000_32_01.jsonl").read_bytes()
    (good / "terra" / "2000_32_01.jsonl").write_bytes(content)
    done = run("check", good)
    assert "terra/2000_32_01.jsonl same file as rcb/2000_32_01.jsonl" in done.stdout


def test_a_failed_run_besides_a_full_set_is_a_warning(good: Path) -> None:
    (good / "rcb" / "2000_32_06.jsonl.failed").write_text("")
    done = run("check", good)
    assert done.returncode == 0
    assert "2000_32_06.jsonl.failed: skipped, a failed run" in " ".join(done.stdout.split())
    assert done.stdout.endswith("\nVALID\n")


def test_a_profile_is_read_from_a_file(tmp_path: Path) -> None:
    profile = tmp_path / "mini.toml"
    profile.write_text(PROFILE)
    logs = write(make_submission(["parus"], runs=2), tmp_path / "logs")
    done = run("check", logs, "--profile", profile)
    assert (done.returncode, done.stderr) == (0, "")
    machine = "Tesla V100-SXM2-32GB, not A100, GPU memory 32 GB, not 40, 8 cores, not 16"
    assert machine in " ".join(done.stdout.split())
    assert run("check", logs).returncode == 1


@pytest.mark.parametrize("args", [["logs"], [".", "--profile", "mini.toml"]])
def test_a_missing_path_gives_one_line_and_exit_code_3(args: list[str], tmp_path: Path) -> None:
    done = run("check", *(arg if arg.startswith("-") else tmp_path / arg for arg in args))
    assert (done.returncode, done.stdout) == (3, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("morocco: error: ")


def test_check_imports_nothing_heavy(good: Path) -> None:
    args = ["morocco", "check", str(good)]
    modules = imported_by(f"sys.argv = {args!r}\nfrom morocco.__main__ import run; run()")
    assert "morocco.check.check" in modules
    assert not modules & HEAVY


# The text


@pytest.mark.parametrize("columns", [80, 120])
def test_the_text_is_as_wide_as_the_terminal_and_each_rule_begins_with_its_status(
    bad: Path, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    checked = check(load_submission([bad]))
    *lines, last = render_text(checked).splitlines()
    assert last == "INVALID"
    assert columns - 20 < max(map(len, lines)) <= columns
    lines = [line for line in lines if not line.startswith(" ")]
    assert [re.split(r"\s+", line)[:2] for line in lines] == [
        [result.status, result.rule] for result in checked.results
    ]


def test_many_logs_of_a_size_are_counted_and_few_are_named() -> None:
    five = [
        f"{task}/{size}_0{at}.jsonl"
        for task in ("rcb", "rwsd")
        for size in ("1_1", "9_4")
        for at in range(5)
    ]
    detail = Detail("70%", "rubert", (*five, "terra/9_4_01.jsonl"))
    checked = CheckResult(
        "x", True, (RuleResult("gpu-busy", "warn", "idle", (detail,), "do more"),)
    )
    assert render_text(checked).splitlines() == [
        "warn  gpu-busy  idle:",
        "      - rubert terra/9_4_01.jsonl, rcb rwsd/1_1 9_4 (20 logs) 70%",
        "     -> do more",
        "VALID",
    ]


def test_details_beyond_the_first_are_counted() -> None:
    details = tuple(
        Detail(f"{number} s", "rubert", (f"rcb/1_1_{number}.jsonl",)) for number in range(30)
    )
    rule = RuleResult("cadence", "NO", "samples are missing", details, "measure again")
    *_, last, todo, _ = render_text(CheckResult("x", False, (rule,))).splitlines()
    assert last == "      - 21 more, which --format json lists"
    assert todo == "     -> measure again"


def test_strangers_cannot_write_to_the_terminal() -> None:
    nasty = "\x1b]0;owned\x07\r\n\u202e\udcff"
    submission = change(
        make_submission(["parus"]),
        ["parus/1_1_01.jsonl"],
        with_record(target={"image_id": nasty}, gpus=[{"name": nasty, "driver": nasty}]),
    )
    submission = replace(submission, remarks=(nasty,))
    for text in (render(check(submission), "text"), render(check(submission), "json")):
        assert "owned" in text
        assert all(letter.isprintable() or letter == "\n" for letter in text)
        text.encode()


# Profiles


def test_the_built_in_profile_is_that_of_the_leaderboard() -> None:
    assert len(RUSSIAN_SUPERGLUE.tasks) == 9
    assert RUSSIAN_SUPERGLUE.runs == 5
    assert RUSSIAN_SUPERGLUE.machine == Machine("V100", 1, 32, 8, 96)


def test_a_profile_file_can_set_everything(tmp_path: Path) -> None:
    path = tmp_path / "mini.toml"
    path.write_text(PROFILE, encoding="utf-8")
    assert read_profile(path) == Profile(
        name="Мини",
        tasks=("parus",),
        runs=2,
        sizes=("1_1", "2000_32"),
        machine=Machine("A100", 1, 40, 16, 128.5),
        thresholds=Thresholds(spread=0.02),
    )


def test_only_the_tasks_are_required(tmp_path: Path) -> None:
    path = tmp_path / "mini.toml"
    path.write_text('tasks = ["a", "b"]')
    assert read_profile(path) == Profile(("a", "b"), "mini")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "the key 'tasks' is missing; it must be a list of task names"),
        ("tasks = []", "'tasks' must be a list of task names, not []"),
        ('tasks = "parus"', "'tasks' must be a list"),
        ('tasks = ["a/b"]', "'tasks' must be a list"),
        ("tasks = [1]", "'tasks' must be a list"),
        ('tasks = ["a"]\nrun = 5', "no key 'run'; allowed: tasks, name, runs, sizes, metrics"),
        ('tasks = ["a"]\nruns = 0', "'runs' must be a whole number from 1 up, not 0"),
        ('tasks = ["a"]\nruns = true', "'runs' must be a whole number"),
        ('tasks = ["a"]\nname = 5', "'name' must be a name, not 5"),
        ('tasks = ["a"]\nsizes = ["big"]', 'must be a list of sizes such as ["2000_32"]'),
        ('tasks = ["a"]\nsizes = 5', "'sizes' must be a list of sizes"),
        ('tasks = ["a"]\nmachine = "V100"', "'machine' must be a table"),
        ('tasks = ["a"]\n[machine]\ncpu = 1', "no key 'machine.cpu'; allowed: machine.gpu,"),
        ('tasks = ["a"]\n[machine]\nram = "x"', "'machine.ram' must be a number above 0, not 'x'"),
        ('tasks = ["a"]\n[thresholds]\nspread = -1', "'thresholds.spread' must be a number"),
        ('tasks = ["a"]\n[thresholds]\nspread = nan', "'thresholds.spread' must be a number"),
    ],
)
def test_a_wrong_profile_names_its_key_and_what_is_allowed(
    text: str, named: str, tmp_path: Path
) -> None:
    path = tmp_path / "mini.toml"
    path.write_text(text)
    with pytest.raises(DataError, match=re.escape(named)) as error:
        read_profile(path)
    assert str(error.value).startswith(str(path))


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"a = 1\nb = \n", "line 2"),
        (b"a = 1\nb = 'caf\xe9'\n", "line 2: not UTF-8"),
        (b"a = 1\na = 2\n", "is not TOML"),
        (b"#" * 2**20 + b"#", "longer than 1 MB"),
        (b"a = " + b"[" * 9999, "is not TOML"),
        (b"a = " + b"1" * 5000, "is not TOML"),
        (b"a." * 500_000 + b"a = 1", "a key of more than 50 parts"),
        (b"[" + b"'a' . " * 100_000 + b"a]", "a key of more than 50 parts"),
        (b"x = {" + b'"a".' * 100_000 + b"a = 1}", "a key of more than 50 parts"),
    ],
)
def test_invalid_toml_is_one_error_that_names_the_line(
    content: bytes, named: str, tmp_path: Path
) -> None:
    path = tmp_path / "mini.toml"
    path.write_bytes(content)
    with pytest.raises(DataError, match=named) as error:
        read_toml(path)
    assert str(path) in str(error.value)


def test_a_folder_cannot_be_read_as_toml(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Cannot read"):
        read_toml(tmp_path)
