"""`morocco report`: the program itself on made-up logs of several models."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from morocco.logs.log import LogPath
from runs import run_morocco
from sample_logs import (
    BEGIN,
    INIT,
    LONG,
    TIMES,
    make_samples,
    on_gpu,
    write_failure,
    write_record,
    write_runs,
    write_samples,
)

SLOW = {INIT: (10.0, 10.1, 9.9, 10.0, 10.0), LONG: (90.0, 90.2, 89.9, 90.1, 90.0)}
"""25 records a second."""
FAST = {INIT: (10.0, 10.1, 9.9, 10.0, 10.0), LONG: (50.0, 50.2, 49.9, 50.1, 50.0)}
"""50 records a second."""


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Two models and two tasks: `fast` is twice as fast as `slow` in parus, the same in rcb."""
    folder = tmp_path / "logs"
    for model, times in (("fast", FAST), ("slow", SLOW)):
        write_runs(folder / model, "parus", times)
        write_runs(folder / model, "rcb", FAST)
    return folder


def read_report(tmp_path: Path, *args: object) -> dict[str, Any]:
    """Return what `report` writes as JSON."""
    file = tmp_path / "report.json"
    run_morocco("report", *args, "--force", "-o", file).succeeds()
    content: dict[str, Any] = json.loads(file.read_text())
    return content


def find_cell(report: dict[str, Any], model: str, task: str) -> dict[str, Any]:
    (cell,) = [c for c in report["cells"] if (c["model"], c["task"]) == (model, task)]
    found: dict[str, Any] = cell
    return found


def find_model(report: dict[str, Any], name: str) -> dict[str, Any]:
    (model,) = [model for model in report["models"] if model["name"] == name]
    found: dict[str, Any] = model
    return found


def find_line(text: str, *starts: str) -> list[str]:
    """Return the words of the line that begins with the last of `starts`, after the others."""
    lines = iter(text.splitlines())
    for start in starts:
        line = next(line for line in lines if line.startswith(start))
    return line.split()


# Files


def test_an_existing_file_is_replaced_only_with_force(logs: Path, tmp_path: Path) -> None:
    page, saved, image = tmp_path / "r.html", tmp_path / "fast.json", tmp_path / "fast_parus.svg"
    for command in (
        ["report", logs, "-o", page, "--baseline", "fast", "--save-baseline", saved],
        ["plot", logs, tmp_path / "{model}_{task}.svg"],
    ):
        run_morocco(*command).succeeds()
        for file in (page, saved) if "report" in command else (image,):
            file.write_text("mine")
        assert "--force" in run_morocco(*command).fails(3)
        run_morocco(*command, "--force").succeeds()
    assert "mine" not in [file.read_text() for file in (page, saved, image)]


def test_logs_of_which_none_can_be_read_make_no_report(tmp_path: Path) -> None:
    for number in (1, 2):
        log = tmp_path / "rubert" / "parus" / f"1_1_0{number}.jsonl"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("no samples\n")
    error = run_morocco("report", tmp_path / "rubert").fails(3)
    assert "2 logs" in error
    assert "1_1_01.jsonl" in error


# Tables


def test_several_models_stand_side_by_side(logs: Path) -> None:
    text = run_morocco("report", logs).succeeds().stdout
    speed = "Speed, records a second"
    assert find_line(text, speed, "task") == ["task", "fast", "slow"]
    assert [find_line(text, speed, "parus")[place] for place in (0, 1, 4)] == [
        "parus",
        "50.0",
        "25.0",
    ]
    assert find_line(text, speed, "mean") == ["mean", "50.0", "37.5"]
    assert find_line(text, speed, "geometric") == ["geometric", "mean", "50.0", "35.4"]
    assert find_line(text, "GPU RAM, GB", "rcb") == ["rcb", "2.00", "2.00"]


def test_one_model_has_its_metrics_side_by_side(logs: Path) -> None:
    text = run_morocco("report", logs / "fast").succeeds().stdout
    columns = ["rps", "init_time", "gpu_ram", "gpu_ram_batch", "ram", "ram_batch", "energy"]
    assert find_line(text, "task") == ["task", *columns]
    row = find_line(text, "parus")
    assert row[1] == "50.0"
    assert row[4:7] == ["10.0", "2.00", "2.00"]


def test_the_report_of_a_zip_is_that_of_the_folder(logs: Path, tmp_path: Path) -> None:
    pack = tmp_path / "fast.zip"
    run_morocco("pack", logs / "fast", "-o", pack, "--no-check").succeeds()
    from_zip, from_folder = (run_morocco("report", path) for path in (pack, logs / "fast"))
    assert from_zip.succeeds().stdout == from_folder.succeeds().stdout


def test_models_can_be_renamed(logs: Path) -> None:
    one = run_morocco("report", logs / "fast", "--name", "RuBERT").succeeds()
    assert find_line(one.stdout, "RuBERT")[1] == "50.0"
    two = run_morocco("report", logs, "--name", "slow=Old=2", "--name", "fast=New")
    assert find_line(two.succeeds().stdout, "Speed", "task") == ["task", "New", "Old=2"]


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (
            ("RuBERT",),
            "fast, slow to call this, such as --name fast=NAME",
        ),
        (("rubert=x",), "--name rubert=x: say which of the models"),
        (("fast=slow",), "several models would be called 'slow'"),
        (("fast= ",), "a name is needed"),
    ],
)
def test_an_invalid_name_gives_an_example(logs: Path, names: Sequence[str], says: str) -> None:
    options = [word for name in names for word in ("--name", name)]
    assert says in run_morocco("report", logs, *options).fails(3)


def test_tasks_of_another_scale_are_left_out_of_the_mean(logs: Path, tmp_path: Path) -> None:
    write_runs(logs / "fast", "rucos", {INIT: TIMES[INIT], (100, 1): (50.0,) * 5})
    report = read_report(tmp_path, logs / "fast")
    means = find_model(report, "fast")["means"]
    assert means["rps"]["arithmetic"] == pytest.approx(50.0)
    assert means["gpu_ram"]["tasks"] == ["parus", "rcb", "rucos"]
    every = read_report(tmp_path, logs / "fast", "--without", "none")
    assert find_model(every, "fast")["means"]["rps"]["tasks"] == ["parus", "rcb", "rucos"]
    parus = read_report(tmp_path, logs / "fast", "--without", "parus,rucos")
    assert find_model(parus, "fast")["means"]["rps"]["tasks"] == ["rcb"]
    assert "there is no task 'ruco'" in run_morocco("report", logs, "--without", "ruco").fails(3)


def test_the_size_with_the_most_runs_counts(logs: Path, tmp_path: Path) -> None:
    write_runs(logs / "fast", "parus", {(9000, 8): (20.0,) * 3})
    report = read_report(tmp_path, logs / "fast")
    cell = find_cell(report, "fast", "parus")
    assert (cell["input_size"], cell["batch_size"], cell["runs"]) == (2000, 32, 5)
    assert any("fast parus: 2000_32 counts" in note for note in report["notes"])
    assert len(cell["logs"]) == 13
    write_runs(logs / "fast", "parus", {(9000, 8): (110.0,) * 5})
    cell = find_cell(read_report(tmp_path, logs / "fast"), "fast", "parus")
    assert (cell["input_size"], cell["rps"]) == (9000, pytest.approx(90.0))


# Energy, price, weights, scores


def test_energy_excludes_the_start_up(logs: Path, tmp_path: Path) -> None:
    cell = find_cell(read_report(tmp_path, logs), "fast", "rcb")
    assert cell["energy"] == pytest.approx((500 - 100) / 2000 * 1000)


def test_energy_is_unknown_where_it_was_not_recorded(tmp_path: Path) -> None:
    write_runs(tmp_path / "logs", energy=None)
    text = run_morocco("report", tmp_path / "logs").succeeds().stdout
    assert "energy" not in find_line(text, "task")


def test_the_price_gives_the_cost_of_a_million_records(logs: Path, tmp_path: Path) -> None:
    report = read_report(tmp_path, logs, "--price", "75")
    assert find_cell(report, "fast", "rcb")["cost"] == pytest.approx(75 * 1_000_000 / 50 / 3600)
    fast = find_model(report, "fast")
    assert fast["price_per_score"] == pytest.approx(75 / fast["weighted"]["score"])
    assert run_morocco("report", logs, "--price", "0").code == 2


def test_weights_come_from_a_file(logs: Path, tmp_path: Path) -> None:
    weights = tmp_path / "weights.toml"
    weights.write_text("parus = 3\nrcb = 1.0\n")
    slow = find_model(read_report(tmp_path, logs, "--weights", weights), "slow")["weighted"]
    parus, rcb = slow["adjusted"]["parus"], slow["adjusted"]["rcb"]
    assert slow["score"] == pytest.approx((parus**3 * rcb) ** (1 / 4))
    assert parus < 25


def test_a_missing_task_leaves_no_weighted_score(logs: Path, tmp_path: Path) -> None:
    weights = tmp_path / "weights.toml"
    weights.write_text("parus = 1\nterra = 1\n")
    report = read_report(tmp_path, logs / "fast", "--weights", weights)
    weighted = find_model(report, "fast")["weighted"]
    assert weighted["score"] is None
    assert weighted["missing"] == {"terra": "no runs"}
    assert weighted["partial"] == pytest.approx(weighted["adjusted"]["parus"])
    assert any("fast has no weighted score" in n and "terra" in n for n in report["notes"])
    assert any("without rcb, which have no weight" in note for note in report["notes"])


@pytest.mark.parametrize("content", ["parus = -1", "parus = 'x'", "parus = nan", "", "parus = 0"])
def test_invalid_weights_are_refused(logs: Path, tmp_path: Path, content: str) -> None:
    weights = tmp_path / "weights.toml"
    weights.write_text(content)
    assert "parus = " in run_morocco("report", logs, "--weights", weights).fails(3)


def test_scores_are_read_as_score_prints_them(logs: Path, tmp_path: Path) -> None:
    one, both = tmp_path / "one.json", tmp_path / "both.json"
    scores = {"tasks": {"rcb": {"metrics": {}, "value": 0.25}}, "overall": 0.5}
    one.write_text(json.dumps(scores))
    both.write_text(json.dumps({"fast": scores, "slow": 0.25, "other": {"overall": 1}}))
    report = read_report(tmp_path, logs, "--scores", both)
    assert [model["score"] for model in report["models"]] == [0.5, 0.25]
    assert find_cell(report, "fast", "rcb")["score"] == 0.25
    report = read_report(tmp_path, logs, "--scores", f"slow={one}")
    assert [model["score"] for model in report["models"]] == [None, 0.5]
    alone = run_morocco("report", logs / "fast", "--scores", one).succeeds().stdout
    assert find_line(alone, "Quality", "overall") == ["overall", "0.500"]
    error = run_morocco("report", logs, "--scores", f"rubert={one}").fails(3)
    assert "there is no model 'rubert', only fast, slow" in error
    error = run_morocco("report", logs, "--scores", one).fails(3)
    assert f"say of which: --scores fast={one}" in error


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "{}",
        '{"fast": {}}',
        '{"fast": {"tasks": 5}}',
        '{"fast": 2}',
        '{"fast": NaN}',
        '{"fast": "x"}',
        "{",
    ],
)
def test_invalid_scores_are_refused(logs: Path, tmp_path: Path, content: str) -> None:
    scores = tmp_path / "scores.json"
    scores.write_text(content)
    assert str(scores) in run_morocco("report", logs, "--scores", scores).fails(3)


def write_scores(path: Path, **tasks: float) -> Path:
    path.write_text(json.dumps({"overall": None, "tasks": tasks}))
    return path


def test_scores_of_some_tasks_are_drawn_as_their_mean(logs: Path, tmp_path: Path) -> None:
    fast = write_scores(tmp_path / "fast.json", parus=0.5, rcb=0.7)
    slow = write_scores(tmp_path / "slow.json", parus=0.8)
    scores = ("--scores", f"fast={fast}", "--scores", f"slow={slow}")
    chart = tmp_path / "chart.svg"
    run_morocco("report", logs, *scores, "-o", chart).succeeds()
    assert "Speed, score and memory of 2 models (score: mean of parus)" in chart.read_text()
    text = run_morocco("report", logs, *scores).succeeds().stdout
    assert "slow has no overall score, only those of parus." in text


def test_a_chart_that_cannot_be_drawn_says_what_each_model_lacks(
    logs: Path, tmp_path: Path
) -> None:
    error = run_morocco("report", logs, "-o", tmp_path / "chart.svg").fails(3)
    assert "fast has no score (--scores fast=FILE)" in error
    assert "slow has no score" in error


# Cells without numbers


def test_a_task_that_failed_says_why(logs: Path, tmp_path: Path) -> None:
    for index in (1, 2):
        write_failure(logs / "slow", LogPath("terra", 2000, 32, index))
    write_runs(logs / "fast", "terra")
    done = run_morocco("report", logs).succeeds()
    row = find_line(done.stdout, "Speed", "terra")
    assert " ".join(row[-7:]) == "all 2 runs failed: out of memory"
    assert "slow has no numbers for terra: all 2 runs failed: out of memory." in done.stdout
    assert "skipped, a failed run" not in done.stderr
    slow = find_model(read_report(tmp_path, logs), "slow")
    assert slow["means"]["rps"]["missing"] == ["terra"]
    assert slow["weighted"]["score"] is None


def test_the_mean_over_fewer_tasks_is_marked(logs: Path) -> None:
    write_runs(logs / "fast", "terra")
    text = run_morocco("report", logs).succeeds().stdout
    assert find_line(text, "Speed", "terra")[-2:] == ["no", "runs"]
    assert find_line(text, "Speed", "mean")[-1] == "37.5*"
    assert "The means of slow are over fewer tasks, without terra" in text


def test_runs_that_failed_lower_the_weighted_score(logs: Path, tmp_path: Path) -> None:
    write_failure(logs / "fast", LogPath("rcb", 2000, 32, 6), "TimedOut")
    write_failure(logs / "fast", LogPath("rcb", 2000, 64, 1))
    report = read_report(tmp_path, logs / "fast")
    cell = find_cell(report, "fast", "rcb")
    assert (cell["failed"], cell["tried"]) == (1, 11)  # the one of another size does not count
    adjusted = find_model(report, "fast")["weighted"]["adjusted"]["rcb"]
    assert adjusted == pytest.approx(cell["rps"] * (1 - cell["spread"]) * (1 - 1 / 11))


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ({INIT: (10.0,)}, "no long runs"),
        ({LONG: (50.0,)}, "no 1_1 runs"),
        ({INIT: (10.0,), LONG: (9.0,)}, "2000_32_01.jsonl: not longer than the start-up, 10.0 s"),
    ],
)
def test_runs_that_give_no_speed_say_why(tmp_path: Path, sizes: Any, reason: str) -> None:
    write_runs(tmp_path / "logs", times=sizes)
    report = read_report(tmp_path, tmp_path / "logs")
    assert find_cell(report, "logs", "parus")["reason"] == reason


def test_without_a_gpu_reading_its_clock_gives_no_speed(tmp_path: Path) -> None:
    write_runs(tmp_path / "logs")
    for log in (tmp_path / "logs").rglob("*.jsonl"):
        log.write_text(re.sub(r'"(gpu_\w+)": [0-9.]+', r'"\1": null', log.read_text()))
    report = read_report(tmp_path, tmp_path / "logs", "--clock", "gpu")
    assert "GPU reading" in find_cell(report, "logs", "parus")["reason"]
    error = run_morocco("report", tmp_path / "logs", "--clock", "gpu", "--save-baseline", "b.json")
    assert "logs has no numbers" in error.fails(3)


def test_the_only_run_of_each_size_has_a_speed_without_an_interval(tmp_path: Path) -> None:
    write_runs(tmp_path / "logs", times={INIT: (10.0,), LONG: (50.0,)})
    text = run_morocco("report", tmp_path / "logs").succeeds().stdout
    assert find_line(text, "parus")[1:3] == ["50.0", "10.0"]


def test_a_record_that_cannot_be_read_is_named(logs: Path) -> None:
    (logs / "fast" / "rcb" / "2000_32_01.json").write_text("nonsense")
    (warning,) = run_morocco("report", logs / "fast").succeeds().warnings
    assert "2000_32_01.jsonl: its record cannot be used" in warning


def test_a_log_that_cannot_be_read_counts_as_failed(logs: Path, tmp_path: Path) -> None:
    (logs / "fast" / "rcb" / "2000_32_01.jsonl").write_text("nonsense\n")
    done = run_morocco("report", logs / "fast").succeeds()
    assert any("cannot be read and counts as failed: line 1" in text for text in done.warnings)
    cell = find_cell(read_report(tmp_path, logs / "fast"), "fast", "rcb")
    assert (cell["runs"], cell["failed"], cell["tried"]) == (4, 1, 10)


def test_a_log_whose_record_says_it_failed_does_not_count(logs: Path, tmp_path: Path) -> None:
    log = logs / "fast" / "rcb" / "2000_32_01.jsonl"
    write_record(log, {"exit_code": 1, "failure": {"kind": "TargetError"}})
    report = read_report(tmp_path, logs / "fast")
    cell = find_cell(report, "fast", "rcb")
    assert (cell["runs"], cell["failed"]) == (4, 1)
    (note,) = [note for note in report["notes"] if "failed" in note]
    assert all(fact in note for fact in ("fast", "exit code 1", "rcb 1"))


def test_control_characters_in_names_are_escaped(tmp_path: Path) -> None:
    folder = tmp_path / "a\x1b[31m|b"
    write_runs(folder)
    out = tmp_path / "report.md"
    done = run_morocco("report", folder).succeeds()
    assert "\x1b" not in done.stdout
    run_morocco("report", folder, "-o", out).succeeds()
    assert "a\\\\x1b[31m\\|b" in out.read_text()


def test_a_name_that_is_not_valid_unicode_is_written_anyway(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"ru\xffbert")
    write_runs(folder)
    files = [tmp_path / f"report{suffix}" for suffix in (".md", ".csv", ".json")]
    run_morocco("report", folder, *(word for file in files for word in ("-o", file))).succeeds()
    assert all("bert" in file.read_text() for file in files)
    assert "bert" in run_morocco("report", folder).succeeds().stdout


def test_logs_are_needed(tmp_path: Path) -> None:
    assert "holds no log" in run_morocco("report", tmp_path).fails(3)
    assert run_morocco("report").code == 2


# Comparison


def test_a_model_is_compared_with_another(logs: Path, tmp_path: Path) -> None:
    done = run_morocco("report", logs, "--baseline", "slow").succeeds()
    assert "fast: 1.41x faster; the same init time (no difference shown)" in done.stdout
    (fast,) = read_report(tmp_path, logs, "--baseline", "slow")["comparison"]["models"]
    parus, rcb = (fast["by_task"][task]["rps"] for task in ("parus", "rcb"))
    assert parus["value"] == pytest.approx(2, rel=1e-3)
    assert parus["low"] < 2 < parus["high"]
    assert (parus["real"], rcb["real"]) == (True, False)
    assert fast["same_machine"] is True


def test_a_baseline_can_be_kept_in_a_file(logs: Path, tmp_path: Path) -> None:
    kept = tmp_path / "baseline.json"
    run_morocco("report", logs, "--baseline", "slow", "--save-baseline", kept).succeeds()
    direct = read_report(tmp_path, logs, "--baseline", "slow")["comparison"]
    later = read_report(tmp_path, logs / "fast", "--baseline", kept)["comparison"]
    assert later == direct


def test_an_unknown_baseline_is_answered_with_the_models(logs: Path) -> None:
    error = run_morocco("report", logs, "--baseline", "rubert").fails(3)
    assert "rubert is neither a model of this report (fast, slow) nor a file" in error


def test_saving_a_baseline_needs_a_choice_among_several_models(logs: Path, tmp_path: Path) -> None:
    error = run_morocco("report", logs, "--save-baseline", tmp_path / "b.json").fails(3)
    assert "Say which: --baseline fast" in error
    assert not (tmp_path / "b.json").exists()


def test_model_and_baseline_must_use_the_same_clock(logs: Path, tmp_path: Path) -> None:
    kept = tmp_path / "baseline.json"
    run_morocco("report", logs / "slow", "--save-baseline", kept).succeeds()
    error = run_morocco("report", logs / "fast", "--baseline", kept, "--clock", "gpu").fails(3)
    assert "--clock log" in error


def test_a_model_that_ran_on_several_machines_is_flagged(tmp_path: Path) -> None:
    write_runs(tmp_path / "m", "parus", **on_gpu("V100"))
    write_runs(tmp_path / "m", "rcb", **on_gpu("V100", machine="ffff"))
    (warning,) = run_morocco("report", tmp_path / "m").succeeds().warnings
    assert "several machines" in warning
    assert "(3f0c)" in warning  # equal descriptions are told apart
    assert "(ffff)" in warning


def test_unequal_machines_are_flagged(tmp_path: Path) -> None:
    for name, gpu in (("one", on_gpu("V100")), ("two", on_gpu("A100", machine="ffff"))):
        write_runs(tmp_path / name, **gpu)
    done = run_morocco("report", tmp_path / "one", tmp_path / "two", "--baseline", "one")
    (warning,) = [text for text in done.succeeds().warnings if "unequal machines" in text]
    assert "one: V100" in warning
    assert "two: A100" in warning
    assert "but on another machine" in done.stdout


def test_missing_records_of_machines_are_noted(logs: Path) -> None:
    for record in logs.rglob("*.json"):
        record.unlink()
    done = run_morocco("report", logs, "--baseline", "slow").succeeds()
    assert "fast, slow: no records" in done.stdout


def test_differences_from_the_baseline_are_noted(logs: Path) -> None:
    write_runs(logs / "slow", "terra")
    write_runs(logs / "fast", "rwsd")
    write_runs(logs / "slow", "rwsd", {INIT: TIMES[INIT], (500, 4): (50.0,) * 5})
    text = run_morocco("report", logs, "--baseline", "slow").succeeds().stdout
    assert "fast / slow is without terra" in text
    assert "fast / slow compares other input or batch sizes for rwsd." in text


# GPUs


def test_kinds_of_gpu_are_compared(tmp_path: Path) -> None:
    write_runs(tmp_path / "a" / "rubert", times=FAST, **on_gpu("A100"))
    write_runs(tmp_path / "v" / "rubert", times=SLOW, **on_gpu("V100"))
    names = ("--name", "a/rubert=rubert", "--name", "v/rubert=rubert")
    report = read_report(tmp_path, tmp_path / "a", tmp_path / "v", "--by", "gpu", *names)
    assert [(card["name"], card["cells"], card["runs"]) for card in report["cards"]] == [
        ("A100", 1, 5),
        ("V100", 1, 5),
    ]
    assert [card["mean"] for card in report["cards"]] == pytest.approx([1, 0.5])


def test_gpus_of_one_kind_are_compared_by_uuid(tmp_path: Path) -> None:
    write_runs(tmp_path / "m", "parus", {INIT: (10.0,) * 2, LONG: (50.0,) * 2}, **on_gpu("V100"))
    samples = make_samples(BEGIN, 60.0)
    for index in (3, 4):
        log = write_samples(tmp_path / "m" / "parus" / f"2000_32_{index:02}.jsonl", samples)
        write_record(log, on_gpu("V100", "GPU-2"))
    text = run_morocco("report", tmp_path / "m", "--by", "gpu").succeeds().stdout
    assert find_line(text, "Speed of", "V100 (GPU-1)")[2:] == ["1", "2", "1.000", "1.000", "1.000"]
    assert find_line(text, "Speed of", "V100 (GPU-2)")[2:] == ["1", "2", "0.800", "0.800", "0.800"]


def test_a_single_gpu_cannot_be_compared(logs: Path) -> None:
    text = run_morocco("report", logs, "--by", "gpu").succeeds().stdout
    assert "there are none to compare" in text


# Files


def test_every_kind_of_file_is_written_at_once(logs: Path, tmp_path: Path) -> None:
    files = [tmp_path / "out" / f"report{suffix}" for suffix in (".md", ".csv", ".json")]
    options = [word for file in files for word in ("-o", file)]
    done = run_morocco("report", logs, *options).succeeds()
    assert done.stdout.split() == list(map(str, files))
    assert all(file.stat().st_size for file in files)
    again = run_morocco("report", logs, *options, "--force").succeeds()
    assert again.stdout == done.stdout


def test_csv_has_a_row_for_each_model_and_task(logs: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.csv"
    run_morocco("report", logs, "-o", file, "--baseline", "slow").succeeds()
    rows = list(csv.DictReader(StringIO(file.read_text())))
    assert [(row["model"], row["task"]) for row in rows] == [
        ("fast", "parus"),
        ("fast", "rcb"),
        ("slow", "parus"),
        ("slow", "rcb"),
    ]
    assert float(rows[0]["rps_ratio"]) == pytest.approx(2, rel=1e-3)
    assert (rows[0]["rps_ratio_real"], rows[2]["rps_ratio"]) == ("True", "")


def test_markdown_holds_tables_notes_and_warnings(logs: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.md"
    (logs / "fast" / "rcb" / "1_1_01.jsonl").write_text("")
    run_morocco("report", logs, "-o", file, "--baseline", "slow").succeeds()
    text = file.read_text()
    assert "| task | fast | slow |\n| :-- | --: | --: |\n| parus | 50.0" in text
    assert "## fast / slow\n\nfast: " in text
    assert "\n## Notes\n\n- " in text
    assert "\n## Warnings\n\n- " in text


def test_a_file_of_another_kind_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    error = run_morocco("report", tmp_path / "nowhere", "-o", tmp_path / "report.docx").fails(3)
    assert "must end in one of .md, .csv, .json" in error


def test_a_file_that_cannot_be_written_is_named(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    error = run_morocco("report", logs, "-o", tmp_path / "file" / "report.md").fails(6)
    assert str(tmp_path / "file" / "report.md") in error


def test_nothing_heavy_is_imported_for_tables() -> None:
    heavy = {"docker", "matplotlib", "numpy", "pandas", "rich"}
    modules = (
        "morocco.report.command, morocco.report.build, morocco.report.data, morocco.report.text"
    )
    code = f"import sys, {modules}; print(*sorted({heavy!r} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""
