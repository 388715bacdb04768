"""Files written by version 1.0, and what it printed of them: they read as they did then."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from morocco.logs.record import parse_record
from morocco.logs.submission import load_submission
from morocco.util.units import GIB
from runs import parse, run_morocco

OLD = Path(__file__).with_name("version_1_0")
"""`suite` and `bench` wrote the logs, `pack` the zip, `report` the baseline; `printed` holds the
output of `stats`, `check`, `report` and `score`."""
EXAMPLES = Path(__file__).parents[3] / "examples"
LOGS = OLD / "logs" / "constant"


def read(name: str) -> Any:
    return json.loads((OLD / "printed" / name).read_text())


INTERVALS = ("low", "high", "real")
"""Since version 1.2 intervals are Welch's, not those of a bootstrap."""


def keep_keys(new: Any, old: Any) -> Any:
    """Return the values of `new` without the keys that came later."""
    if isinstance(old, list):
        return [keep_keys(*pair) for pair in zip(new, old, strict=True)]
    if not isinstance(old, dict):
        return new
    return {key: keep_keys(new[key], value) for key, value in old.items()}


def drop_intervals(old: Any) -> Any:
    if isinstance(old, list):
        return [drop_intervals(entry) for entry in old]
    if not isinstance(old, dict):
        return old
    kept = (key for key in old if not key.endswith(INTERVALS))
    return {key: drop_intervals(old[key]) for key in kept}


@pytest.mark.parametrize("path", sorted(LOGS.rglob("*.json")), ids=lambda path: path.name)
def test_a_record_keeps_every_value_and_the_order_of_its_keys(path: Path) -> None:
    old = json.loads(path.read_text())
    new = json.loads(json.dumps(parse_record(path.read_bytes()).to_json()))
    assert [key for key in new if key in old] == list(old)
    assert keep_keys(new, old) == old


@pytest.mark.parametrize("path", [LOGS, OLD / "constant.zip"], ids=["folder", "zip"])
def test_logs_give_the_same_numbers(path: Path) -> None:
    old = drop_intervals(parse((OLD / "printed" / "stats.jsonl").read_text()))
    new = parse(run_morocco("stats", path).stdout)
    assert keep_keys(new, old) == old
    assert all(row["ram"] * GIB < 20 * 2**20 for row in new)


def test_a_zip_holds_what_the_folder_does() -> None:
    in_zip, in_folder = load_submission([OLD / "constant.zip"]), load_submission([LOGS])
    assert [(entry.path, entry.digest, entry.record) for entry in in_zip.entries] == [
        (entry.path, entry.digest, entry.record) for entry in in_folder.entries
    ]
    assert len(in_zip.entries) == 8


def test_a_failed_run_has_its_record() -> None:
    (failed,) = load_submission([LOGS]).failed
    assert str(failed.path) == "parus/40_8_03.jsonl"
    assert failed.record is not None
    assert (failed.record.exit_code, failed.record.cause) == (3, "exit code 3")
    assert failed.record.failure is not None
    assert failed.record.stderr == "no weights\n"


def test_check_comes_to_the_same_verdict_by_an_old_profile() -> None:
    done = run_morocco(
        "check", "--profile", OLD / "profile.toml", "--format", "json", OLD / "constant.zip"
    ).succeeds()
    old, new = read("check.json"), json.loads(done.stdout)
    assert (new["valid"], new["profile"]) == (old["valid"], old["profile"]) == (True, "Two tasks")
    assert [_judge(rule) for rule in new["rules"]] == [_judge(rule) for rule in old["rules"]]


def _judge(rule: dict[str, Any]) -> tuple[Any, ...]:
    """Return what does not depend on the wording."""
    return rule["id"], rule["status"], [detail["files"] for detail in rule["found"]]


def test_a_report_with_an_old_baseline_has_the_same_numbers(tmp_path: Path) -> None:
    output = tmp_path / "report.json"
    options = ["--name", "constant=other", "--baseline", OLD / "baseline.json", "-o", output]
    run_morocco("report", LOGS, *options).succeeds()
    old, new = drop_intervals(read("report.json")), json.loads(output.read_text())
    for cell in old["cells"]:
        del cell["logs"]  # their paths are those of the machine
    for key in ("tasks", "models", "cells", "comparison"):
        assert keep_keys(new[key], old[key]) == old[key]


def test_a_baseline_is_saved_as_it_was(tmp_path: Path) -> None:
    saved = tmp_path / "baseline.json"
    run_morocco("report", LOGS, "--save-baseline", saved).succeeds()
    old, new = json.loads((OLD / "baseline.json").read_text()), json.loads(saved.read_text())
    assert new | {"morocco": ""} == old | {"morocco": ""}


def test_predictions_have_the_same_score() -> None:
    done = run_morocco("score", OLD / "predictions", EXAMPLES / "data")
    assert json.loads(done.succeeds().stdout) == read("score.json")


def test_a_report_takes_an_old_score(tmp_path: Path) -> None:
    output = tmp_path / "report.json"
    scores = OLD / "printed" / "score.json"
    run_morocco("report", LOGS, "--scores", f"constant={scores}", "-o", output).succeeds()
    cells = {cell["task"]: cell["score"] for cell in json.loads(output.read_text())["cells"]}
    assert cells == {"parus": 0.625, "rcb": None}


def test_a_suite_recognises_the_runs_that_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples").symlink_to(EXAMPLES)
    shutil.copytree(OLD / "logs", tmp_path / "logs")
    monkeypatch.chdir(tmp_path)
    plan = run_morocco("suite", "--config", OLD / "suite.toml", "--dry-run").succeeds()
    rows = [line.split() for line in plan.stdout.splitlines()]
    # model, task, and before the two times: input size, batch size, runs planned, runs done
    assert [(*row[:2], *row[-6:-2]) for row in rows if row[0] == "constant"] == [
        ("constant", "parus", "1", "1", "2", "2"),
        ("constant", "parus", "40", "8", "2", "2"),
        ("constant", "rcb", "1", "1", "2", "2"),
        ("constant", "rcb", "20", "4", "2", "2"),
    ]
    assert not plan.warnings
