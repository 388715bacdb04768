"""The published logs of two models in one report: known numbers."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

import pytest

from morocco.logs.submission import load_submission
from morocco.report.build import build_report
from morocco.report.model import Report
from morocco.report.options import ReportSettings
from published import PUBLISHED, load_expected, needs_published
from runs import run_morocco

pytestmark = [needs_published, pytest.mark.slow]
MODELS = ("rubert", "rubert-conversational")
FOLDERS = [PUBLISHED / model for model in MODELS]


@pytest.fixture(scope="module")
def report() -> Report:
    return build_report(load_submission(FOLDERS), ReportSettings(baseline="rubert"))


def test_both_models_need_the_published_gpu_ram(report: Report) -> None:
    means = [model.means["gpu_ram"].arithmetic for model in report.models]
    assert [mean and f"{mean:.2f}" for mean in means] == ["2.39", "2.39"]
    text = run_morocco("report", *FOLDERS).succeeds().stdout
    gpu_ram = text.partition("GPU RAM, GB")[2].partition("geometric mean")[0]
    assert gpu_ram.splitlines()[-1].split() == ["mean", "2.39", "2.39"]


def test_every_speed_is_the_published_one(report: Report) -> None:
    expected = load_expected()
    assert len(report.cells) == len(expected) == 18
    for row in expected:
        cell = report.cells[str(row["model"]), str(row["task"])]
        assert cell.value("rps") == pytest.approx(row["rps"], rel=1e-12)
        assert cell.value("gpu_ram") == pytest.approx(row["gpu_ram"], rel=1e-12)


def test_the_gpu_clock_gives_the_speeds_expected_of_it() -> None:
    report = build_report(load_submission(FOLDERS), ReportSettings(clock="gpu"))
    for row in load_expected():
        cell = report.cells[str(row["model"]), str(row["task"])]
        assert cell.value("rps") == pytest.approx(row["rps_gpu_clock"], rel=1e-12)


def test_the_mean_speed_leaves_out_the_tasks_of_another_scale(report: Report) -> None:
    for model in report.models:
        speeds = [
            row["rps"]
            for row in load_expected()
            if str(row["model"]) == model.name and str(row["task"]) not in ("rucos", "muserc")
        ]
        assert len(speeds) == 7
        assert model.means["rps"].arithmetic == pytest.approx(fmean(speeds))


def test_one_of_four_sizes_counts_and_the_report_says_so(report: Report) -> None:
    cells = report.cells.values()
    assert {(c.estimate.input_size, c.estimate.batch_size) for c in cells if c.estimate} == {
        (2000, 32)
    }
    (note,) = [note for note in report.notes if "2000_32 counts" in note]
    assert note.startswith("rubert danetqa")
    assert note.endswith("not 1000_8, 1000_16, 1000_32.")


def test_two_models_of_one_size_are_told_apart_on_the_slowest_task_alone(report: Report) -> None:
    assert report.comparison
    (model,) = report.comparison.models
    assert model.overall["rps"].real is None  # cold starts leave the speed of some tasks open
    assert model.same_machine is None
    assert model.by_task["rucos"]["rps"].real is True  # 8.94 and 8.50 with little spread


def test_what_stats_warns_of_is_in_the_report(report: Report) -> None:
    assert any(text.startswith("The clock started late") for text in report.warnings)
    assert any(text.startswith("Start-up times differ") for text in report.warnings)


def test_the_report_is_the_same_every_time(tmp_path: Path) -> None:
    files = [tmp_path / "one.json", tmp_path / "two.json"]
    run_morocco("report", *FOLDERS, "-o", files[0]).succeeds()
    run_morocco("report", *reversed(FOLDERS), "-o", files[1]).succeeds()
    assert files[0].read_bytes() == files[1].read_bytes()
    assert json.loads(files[0].read_text())["format"] == 1
