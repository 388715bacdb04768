"""Tasks of one's own: a profile says how `score` and `report` take them."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sklearn.metrics import accuracy_score, f1_score

import morocco
from morocco.check.profile import read_profile, write_profile
from runs import Finished, run_morocco

PROFILE = """
tasks = ["reviews", "names", "parus"]
[metrics]
reviews = "{metric}"
names = "exact_match"
"""


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """A suite of two tasks of one's own, and one of the nine."""
    path = tmp_path / "suite.toml"
    path.write_text(PROFILE.format(metric="accuracy"))
    return path


def score(*arguments: object) -> Any:
    return json.loads(run_morocco("score", *arguments).succeeds().stdout)


def fail(*arguments: object) -> str:
    finished: Finished = run_morocco("score", *arguments)
    return finished.fails(3)


def write(path: Path, labels: list[Any]) -> Path:
    """Write a label for each record, of any JSON value."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"idx": idx, "label": label}) for idx, label in enumerate(labels)]
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("metric", ["accuracy", "f1"])
@pytest.mark.parametrize("labels", [["good", "bad", "so-so"], [0, 1], [True, False]])
def test_labels_are_scored_as_scikit_learn_does(
    metric: str, labels: list[Any], profile: Path, tmp_path: Path
) -> None:
    profile.write_text(PROFILE.format(metric=metric))
    random = Random(1)
    gold, predicted = random.choices(labels, k=60), random.choices(labels, k=60)
    files = write(tmp_path / "predicted.jsonl", predicted), write(tmp_path / "gold.jsonl", gold)
    expected = accuracy_score(gold, predicted)
    if metric == "f1":
        expected = f1_score(gold, predicted, average="macro")
    result = score("reviews", *files, "--profile", profile)
    assert result[metric] == result["value"] == pytest.approx(expected)


def test_a_label_of_another_type_is_the_same_label(profile: Path, tmp_path: Path) -> None:
    gold = write(tmp_path / "gold.jsonl", [1, 0, True])
    predicted = write(tmp_path / "predicted.jsonl", ["1", "0", "true"])
    assert score("reviews", predicted, gold, "--profile", profile)["value"] == 1


def test_texts_match_any_of_the_right_ones_whatever_their_case_and_punctuation(
    profile: Path, tmp_path: Path
) -> None:
    gold = write(tmp_path / "gold.jsonl", [["Пётр I", "Петр Первый"], "Москва", "Нева"])
    predicted = write(tmp_path / "predicted.jsonl", ["петр первый.", "Москва", "Волга"])
    result = score("names", predicted, gold, "--profile", profile)
    assert result["em"] == pytest.approx(2 / 3)


def test_a_folder_is_scored_over_the_tasks_of_the_profile(profile: Path, tmp_path: Path) -> None:
    data, predictions = tmp_path / "data", tmp_path / "predictions"
    record = {"premise": "a", "choice1": "b", "choice2": "c", "idx": 0, "label": 1}
    write(data / "reviews" / "val.jsonl", ["good", "bad"])
    write(data / "names.jsonl", ["Нева"])
    (data / "PARus").mkdir()
    (data / "PARus" / "val.jsonl").write_text(json.dumps(record))
    write(predictions / "reviews.jsonl", ["good", "good"])
    write(predictions / "names.jsonl", ["Нева"])
    write(predictions / "parus.jsonl", [1])
    result = score(predictions, data, "--profile", profile)
    assert {task: entry["value"] for task, entry in result["tasks"].items()} == {
        "reviews": 0.5,
        "names": 1,
        "parus": 1,
    }
    assert result["overall"] == pytest.approx(2.5 / 3)
    scores = morocco.score_folders(predictions, data, profile=profile)
    assert scores.overall == result["overall"]
    table = run_morocco("score", predictions, data, "--profile", profile, "--format", "table")
    assert "reviews" in table.succeeds().stdout
    (predictions / "names.jsonl").unlink()
    partly = run_morocco("score", predictions, data, "--profile", profile)
    assert "no predictions for names" in partly.warnings[0]


@pytest.mark.parametrize("label", [None, 0.5, {"a": 1}])
def test_a_label_that_is_no_label_is_named(label: object, profile: Path, tmp_path: Path) -> None:
    gold = write(tmp_path / "gold.jsonl", ["good"])
    predicted = write(tmp_path / "predicted.jsonl", [label])
    error = fail("reviews", predicted, gold, "--profile", profile)
    assert "line 1" in error
    assert "`label` must be a string, a whole number or a boolean" in error


@pytest.mark.parametrize("label", [[], [1], 3])
def test_a_text_that_is_no_text_is_named(label: object, profile: Path, tmp_path: Path) -> None:
    gold = write(tmp_path / "gold.jsonl", [label])
    predicted = write(tmp_path / "predicted.jsonl", ["Нева"])
    assert "a string or a list of strings" in fail("names", predicted, gold, "--profile", profile)


def test_a_task_of_ones_own_asks_for_a_profile_and_its_metric(tmp_path: Path) -> None:
    files = write(tmp_path / "predicted.jsonl", ["good"]), write(tmp_path / "gold.jsonl", ["good"])
    assert "--profile" in fail("reviews", *files)
    profile = tmp_path / "suite.toml"
    profile.write_text('tasks = ["reviews"]')
    error = fail("reviews", *files, "--profile", profile)
    assert '[metrics]: "reviews" = "accuracy"' in error


@pytest.mark.parametrize(
    ("metrics", "named"),
    [
        ('parus = "f1"', "its metric is that of its leaderboard"),
        ('other = "f1"', "not in 'tasks'"),
        ('reviews = "bleu"', "accuracy or f1 or exact_match"),
    ],
)
def test_a_metric_that_cannot_be_is_refused(metrics: str, named: str, tmp_path: Path) -> None:
    profile = tmp_path / "suite.toml"
    profile.write_text(f'tasks = ["reviews", "parus"]\n[metrics]\n{metrics}\n')
    assert named in fail("parus", tmp_path, tmp_path, "--profile", profile)


def test_the_profile_that_a_suite_writes_has_the_line_to_fill_in(tmp_path: Path) -> None:
    path = tmp_path / "profile.toml"
    write_profile(path, ["parus", "reviews"], runs=3)
    assert read_profile(path).metrics == {}
    path.write_text(path.read_text().replace('# "reviews" = "accuracy"', '"reviews" = "f1"'))
    write_profile(path, ["names"], runs=3)
    kept = read_profile(path)
    assert kept.tasks == ("parus", "reviews", "names")
    assert kept.metrics == {"reviews": "f1"}
