"""Files of strangers: none ends in a traceback, takes long, or acts on a terminal."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from io import StringIO
from pathlib import Path

import pytest

from command_line import run
from morocco.logs.samples import Sample
from runs import run_morocco
from sample_logs import BEGIN, to_text, write_quick_model

ESCAPE = "\x1b]0;owned\x07\u202e\x9b2J"
"""Sets the title of a terminal, writes backwards, and clears the screen."""
MEASURE = """
import resource, sys
from morocco.__main__ import run
code = run()
used = resource.getrusage(resource.RUSAGE_SELF)
peak = open("/proc/self/status").read().split("VmHWM:")[1].split()[0]
print("USED", used.ru_utime + used.ru_stime, peak, file=sys.stderr)
sys.exit(code)
"""
SECONDS, MEMORY = 5, 200 * 10**6


def write_zip(path: Path, files: Mapping[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def write_two(*moments: float) -> str:
    """Return a log of lines at these moments, with the same readings."""
    return to_text(Sample(moment, 1.0, 2**20) for moment in moments)


def is_harmless(text: str) -> bool:
    return all(letter.isprintable() or letter == "\n" for letter in text)


# Values that no machine can have


NONSENSE = {
    "a size of 0": {"parus/0_32_01.jsonl": write_two(BEGIN, BEGIN + 9)},
    "next to no RAM": {
        "parus/1_1_01.jsonl": to_text([Sample(BEGIN, 1.0, 1e-300), Sample(BEGIN + 4)])  # type: ignore[arg-type]
    },
    "no time at all": {
        "parus/1_1_01.jsonl": write_two(0, 5e-324),
        "parus/9_1_01.jsonl": write_two(0, 5e-324),
    },
    "far future": {"parus/1_1_01.jsonl": write_two(2.0**62, 2.0**63)},
}


@pytest.mark.parametrize("nonsense", NONSENSE)
def test_a_model_of_nonsense_does_not_keep_a_report_from_the_others(
    nonsense: str, tmp_path: Path
) -> None:
    good = write_quick_model(tmp_path / "good")
    files = {"parus/1_1_09.jsonl": write_two(BEGIN, BEGIN + 4)}
    bad = write_zip(tmp_path / "bad.zip", files | NONSENSE[nonsense])
    for suffix in (".json", ".html", ".md", ".csv"):
        run_morocco("report", good, bad, "-o", tmp_path / f"report{suffix}").succeeds()
    report = json.loads((tmp_path / "report.json").read_text())
    cells = {cell["model"]: cell for cell in report["cells"]}
    assert (cells["good"]["rps"], cells["good"]["reason"]) == (20.0, None)
    assert cells["bad"]["rps"] is None
    assert "failed, log cannot be read" in cells["bad"]["reason"] or cells["bad"]["failed"]
    assert any("bad.zip/parus/" in warning for warning in report["warnings"])


# Zips that are small, and took minutes


def write_deep_paths(path: Path) -> Path:
    """100 paths of 1900 parts, which differ in the first one."""
    tail = "a/" * 1900 + "parus/1_1_01.jsonl"
    return write_zip(path, {f"{model}/{tail}": write_two(1, 2) for model in range(100)})


def write_equal_readings(path: Path) -> Path:
    """1500 logs with the same readings, each with a pause of its own."""
    moments = ((BEGIN, BEGIN + 1 + number / 1000, BEGIN + 5) for number in range(1500))
    names = (f"parus/1_1_{number}.jsonl" for number in range(1500))
    return write_zip(path, dict(zip(names, (write_two(*times) for times in moments), strict=True)))


def write_many_sizes(path: Path) -> Path:
    """700 start-ups beside 700 sizes with two runs each."""
    sizes = [(1, 1, index) for index in range(700)]
    sizes += [(size, 1, index) for size in range(2, 702) for index in (1, 2)]
    files = {}
    for number, (size, batch, index) in enumerate(sizes):
        start, end = BEGIN + 100 * number, 1 + number / 1000 if size == 1 else 9.0
        files[f"parus/{size}_{batch}_{index}.jsonl"] = write_two(start, start + end)
    return write_zip(path, files)


def write_many_at_once(path: Path) -> Path:
    """1500 runs at the same time, on 1500 machines."""
    files = {}
    for number in range(1500):
        files[f"parus/1_1_{number}.jsonl"] = write_two(BEGIN + number / 1000, BEGIN + 1000 + number)
        files[f"parus/1_1_{number}.json"] = json.dumps({"host": {"name": f"host-{number}"}})
    return write_zip(path, files)


def write_many_models(path: Path) -> Path:
    """As many models and tasks as may be; each model has a run of one task."""
    names = (f"{number}/task{number}/1_1_01.jsonl" for number in range(100))
    return write_zip(path, {name: write_two(BEGIN, BEGIN + 9) for name in names})


SLOW = (
    write_deep_paths,
    write_equal_readings,
    write_many_sizes,
    write_many_at_once,
    write_many_models,
)


@pytest.mark.slow
@pytest.mark.parametrize("write", SLOW)
def test_no_zip_takes_long(write: Callable[[Path], Path], tmp_path: Path) -> None:
    path = write(tmp_path / "logs.zip")
    for command in ("check", "stats", "report"):
        seconds, memory = measure(command, path)
        assert seconds < SECONDS
        assert memory < MEMORY


def measure(*args: object) -> tuple[float, int]:
    """Return the CPU time and the most memory, in bytes, that a command takes."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *map(str, args)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=120,
    )
    assert "Traceback" not in done.stderr
    seconds, peak = done.stderr.rpartition("USED ")[2].split()
    return float(seconds), int(peak) * 1024


# What reaches a terminal


@pytest.fixture
def nasty(tmp_path: Path) -> Path:
    """A folder of logs whose names and records act on a terminal; the bytes of one are no text."""
    for name in (f"model{ESCAPE}", os.fsdecode(b"b\xff")):
        folder = write_quick_model(tmp_path / "logs" / name)
        record = {"warnings": [ESCAPE], "target": {"target": ESCAPE}, "host": {"cpu": ESCAPE}}
        for log in folder.rglob("*.jsonl"):
            log.with_suffix(".json").write_text(json.dumps(record))
        (folder / f"x{ESCAPE}.jsonl").write_text("")
    return tmp_path / "logs"


@pytest.mark.parametrize(
    "args",
    [
        ["check"],
        ["check", "--format", "json"],
        ["stats"],
        ["stats", "--format", "csv"],
        ["stats", "--format", "table"],
        ["report"],
    ],
)
def test_names_and_records_cannot_act_on_a_terminal(args: list[str], nasty: Path) -> None:
    done = run(args[0], nasty, *args[1:])
    assert "Traceback" not in done.stderr
    assert "owned" in done.stdout + done.stderr
    assert is_harmless(done.stdout)
    assert is_harmless(done.stderr)


def test_a_plot_is_named_so_that_its_name_can_be_printed(nasty: Path, tmp_path: Path) -> None:
    done = run("plot", nasty, tmp_path / "{model}.svg")
    assert (done.returncode, is_harmless(done.stdout)) == (0, True)
    assert len(done.stdout.splitlines()) == 2


def test_json_stays_json_where_it_holds_what_a_terminal_would_act_on(tmp_path: Path) -> None:
    write_quick_model(tmp_path / "logs" / "a")
    write_quick_model(tmp_path / "logs" / "del\x7f")
    done = run("stats", tmp_path / "logs")
    assert {json.loads(line)["model"] for line in done.stdout.splitlines()} == {"a", "del\x7f"}
    assert is_harmless(done.stdout)


def test_score_files_cannot_act_on_a_terminal(tmp_path: Path) -> None:
    logs = write_quick_model(tmp_path / "logs")
    scores = tmp_path / f"scores{ESCAPE}.json"
    scores.write_text(json.dumps({"overall": ESCAPE}))
    done = run("report", logs, "--scores", scores)
    assert done.returncode == 3
    assert is_harmless(done.stderr)


def test_what_a_target_logs_cannot_act_on_a_terminal(data_dir: Path, tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    script.write_text(f"import sys; sys.stderr.write({ESCAPE!r} + '\\n'); sys.exit(3)")
    target = f"exec:{sys.executable} {script}"
    done = run_morocco("bench", target, data_dir, "parus", "--input-size", 9)
    message = done.fails(10)
    assert "\\x1b]0;owned\\x07\\u202e\\u009b2J" in message
    assert is_harmless(done.stderr)


def test_a_line_of_a_stranger_cannot_pass_for_a_verdict(tmp_path: Path) -> None:
    done = run("check", tmp_path / "logs\nVALID")
    assert done.returncode == 3
    assert "VALID" not in done.stderr.splitlines()


# What reaches a spreadsheet


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_a_name_is_no_formula_in_a_spreadsheet(start: str, tmp_path: Path) -> None:
    name = f'{start}HYPERLINK("evil")'
    for model in (name, "-7"):
        write_quick_model(tmp_path / "logs" / model)
    file = tmp_path / "report.csv"
    run_morocco("report", tmp_path / "logs", "-o", file).succeeds()
    printed = run("stats", tmp_path / "logs", "--format", "csv").stdout
    escaped = name.replace("\t", "\\t").replace("\r", "\\r")
    for text, shown in ((file.read_bytes().decode(), name), (printed, escaped)):
        rows = list(csv.DictReader(StringIO(text, newline="")))
        assert {row["model"] for row in rows} == {f"'{shown}", "-7"}
        assert {row["rps"] for row in rows} == {"20.0"}


# Nothing at all


@pytest.mark.parametrize("target", ["", " "])
@pytest.mark.parametrize("command", [["bench", "{}", "data", "parus"], ["suite", "{}", "data"]])
def test_an_empty_target_is_one_error_with_code_2(command: list[str], target: str) -> None:
    done = run(*(word.format(target) for word in command))
    assert (done.returncode, done.stdout) == (2, "")
    assert "'TARGET': it is empty; name an image" in done.stderr.replace("[TARGET]", "TARGET")


@pytest.mark.parametrize("text", ['target = ""', '[models]\na = ""', '[models.a]\ntarget = " "'])
def test_an_empty_target_of_a_suite_file_is_named(text: str, tmp_path: Path) -> None:
    file = tmp_path / "suite.toml"
    file.write_text(text)
    done = run("suite", tmp_path, "--config", file, "--dry-run")
    assert done.returncode in (2, 3)
    assert "target" in done.stderr.lower()
    assert "Traceback" not in done.stderr
