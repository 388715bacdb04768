"""The command `score` on made-up data of all nine tasks, and on everything that can go wrong."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from command_line import HEAVY, complete, imported_by
from morocco.errors import DataError
from morocco.score.answers import Pair
from morocco.score.render import render_folder, to_json
from morocco.score.score import Score, Scores, measure, score_folder, score_task
from morocco.tasks import TASKS, find_data
from paths import DATA
from runs import Finished, run_morocco

INFERENCE = ("neutral", "entailment", "contradiction")
LABELS: dict[str, tuple[Any, ...]] = {
    "danetqa": (True, False),
    "lidirus": ("entailment", "not_entailment"),
    "muserc": (0, 1),
    "parus": (0, 1),
    "rcb": INFERENCE,
    "rucos": ("Высота", "Петрозаводск", "Оксана Дёмина"),
    "russe": (True, False),
    "rwsd": (True, False),
    "terra": ("entailment", "not_entailment"),
}
METRICS = {
    **{task: ["accuracy"] for task in TASKS},
    "lidirus": ["mcc"],
    "muserc": ["f1a", "em"],
    "rcb": ["f1", "accuracy"],
    "rucos": ["f1", "em"],
}
ZEROS = 15 / 24
"""The share of labels of PARus that are 0."""
FIELDS = {
    "lex_sem": "lexical-semantics",
    "pr_ar_str": "predicate-argument-structure",
    "logic": "logic",
    "knowledge": "knowledge",
}
KEYS = st.sampled_from(["idx", "label", "passage", "questions", "answers", "qas", "text", "logic"])
ACCURACY = [task for task in TASKS if METRICS[task] == ["accuracy"]]

Line = dict[str, Any]
Answer = Callable[[Any], Any]


def gold_of(task: str) -> list[Line]:
    return [json.loads(line) for line in find_data(DATA, task).read_text("utf-8").splitlines()]


def predict(task: str, answer: Answer = lambda label: label) -> list[Line]:
    """Return predictions in the schema of the task: `answer` of each right label."""
    return [_predict_record(task, record, answer) for record in gold_of(task)]


def _predict_record(task: str, record: Line, answer: Answer) -> Line:
    if task == "rucos":
        return {"idx": record["idx"], "label": answer(record["qas"][0]["answers"][0]["text"])}
    if task != "muserc":
        return {"idx": record["idx"], "label": answer(record["label"])}
    questions = [
        {
            "idx": question["idx"],
            "answers": [
                {"idx": a["idx"], "label": answer(a["label"])} for a in question["answers"]
            ],
        }
        for question in record["passage"]["questions"]
    ]
    return {"idx": record["idx"], "passage": {"questions": questions}}


def write(path: Path, lines: Iterable[Line | str]) -> Path:
    """Write a file of JSON objects; a text goes in as it is."""
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    return path


def score(*args: object) -> Finished:
    return run_morocco("score", *args)


def score_of(done: Finished) -> Any:
    return json.loads(done.succeeds().stdout)


def complaint(task: str, predictions: Path, gold: Path = DATA) -> str:
    with pytest.raises(DataError) as error:
        score_task(task, predictions, gold)
    message = str(error.value)
    assert "\n" not in message
    assert message.isprintable()
    return message


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give the file for the predictions of a test."""
    return tmp_path / "predictions.jsonl"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder of right predictions of all nine tasks."""
    folder = tmp_path / "predictions"
    folder.mkdir()
    for task in TASKS:
        write(folder / f"{task}.jsonl", predict(task))
    return folder


# One task, as its users score it


@pytest.mark.parametrize("task", TASKS)
def test_right_predictions_score_1_by_the_official_names(task: str, path: Path) -> None:
    done = score(task, write(path, predict(task)), DATA)
    found = score_of(done)
    assert done.stderr == ""
    assert list(found)[:1] == ["task"]
    assert [name for name in found if found[name] == 1] == [*METRICS[task], "value"]
    assert (found["missing"], found["repeated"]) == (0, 0)


def test_gold_may_be_a_file_or_the_data_folder(path: Path) -> None:
    write(path, predict("terra"))
    assert score_task("terra", path, DATA) == score_task("terra", path, DATA / "TERRa/val.jsonl")


def test_predictions_may_be_a_folder_as_well(folder: Path) -> None:
    assert score_task("terra", folder, DATA).value == 1


def test_json_has_all_digits_and_the_table_three(path: Path) -> None:
    write(path, predict("parus", lambda _: 0))
    assert score_of(score("parus", path, DATA))["accuracy"] == ZEROS
    lines = write(path, [*predict("rcb", lambda _: "neutral")])
    table = score("rcb", lines, DATA, "--format", "table").succeeds().stdout
    assert table.splitlines() == [
        "task  metrics        score          value",
        "rcb   f1 / accuracy  0.167 / 0.333  0.250",
    ]


def test_predictions_that_bench_kept_are_scored(tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    program = (
        "import json, sys\n"
        "for line in sys.stdin: print(json.dumps({'idx': json.loads(line)['idx'], 'label': 0}))"
    )
    (tmp_path / "model.py").write_text(program)
    target = f"exec:{sys.executable} {tmp_path / 'model.py'}"
    sizes = ("--input-size", 60, "--batch-size", 1)
    run_morocco("bench", target, DATA, "parus", *sizes, "--predictions", kept).succeeds()
    found = score_of(score("parus", kept, DATA))
    assert (found["value"], found["labels"], found["repeated"]) == (ZEROS, 24, 36)


def test_score_imports_nothing_heavy(path: Path) -> None:
    args = ["morocco", "score", "terra", str(write(path, predict("terra"))), str(DATA)]
    modules = imported_by(f"sys.argv = {args!r}\nfrom morocco.__main__ import run; run()")
    assert "morocco.score.score" in modules
    assert not modules & HEAVY
    assert "sklearn" not in modules


# Against scikit-learn, and what holds for any predictions


@st.composite
def guesses(draw: st.DrawFn, tasks: Iterable[str] = TASKS) -> tuple[str, list[Line]]:
    """Draw a task and predictions for all its records, some right, some wrong."""
    task = draw(st.sampled_from(list(tasks)))
    chance = Random(draw(st.integers(0, 2**32)))
    often = draw(st.floats(0, 1))
    wrong = LABELS[task]
    return task, predict(
        task, lambda label: label if chance.random() < often else chance.choice(wrong)
    )


def score_lines(task: str, lines: Iterable[Line], gold: Iterable[Line] | None = None) -> Score:
    with tempfile.TemporaryDirectory() as folder:
        labels = write(Path(folder) / "gold.jsonl", gold_of(task) if gold is None else gold)
        return score_task(task, write(Path(folder) / "predictions.jsonl", lines), labels)


@given(guesses())
def test_every_score_is_within_its_range(drawn: tuple[str, list[Line]]) -> None:
    found = score_lines(*drawn)
    for name, value in found.metrics.items():
        assert (-1 if name == "mcc" else 0) <= value <= 1
    assert min(found.metrics.values()) <= found.value <= max(found.metrics.values())


@given(guesses(), st.randoms(use_true_random=False))
def test_the_order_of_lines_never_matters(drawn: tuple[str, list[Line]], chance: Random) -> None:
    task, lines = drawn
    gold = gold_of(task)
    before = score_lines(task, lines, gold)
    chance.shuffle(lines)
    chance.shuffle(gold)
    assert to_json(score_lines(task, lines, gold)) == to_json(before)


def test_the_order_of_questions_and_answers_does_not_matter_either() -> None:
    lines = predict("muserc", lambda label: label)
    lines[0]["passage"]["questions"][0]["answers"][0]["label"] ^= 1
    before = score_lines("muserc", lines)
    for line in lines:
        line["passage"]["questions"].reverse()
        for question in line["passage"]["questions"]:
            question["answers"].reverse()
    assert score_lines("muserc", lines) == before
    assert before.value < 1


@given(guesses([*ACCURACY, "rcb"]))
@settings(max_examples=30, deadline=None)
def test_accuracy_and_macro_f1_are_those_of_scikit_learn(drawn: tuple[str, list[Line]]) -> None:
    task, lines = drawn
    gold, predicted = ([line["label"] for line in column] for column in (gold_of(task), lines))
    found = score_lines(task, lines).metrics
    assert found["accuracy"] == pytest.approx(accuracy_score(gold, predicted))
    if task == "rcb":
        macro = f1_score(gold, predicted, labels=INFERENCE, average="macro", zero_division=0)
        assert found["f1"] == pytest.approx(macro)


@given(guesses(["muserc"]))
@settings(max_examples=20, deadline=None)
def test_f1a_is_that_of_scikit_learn_over_all_answers(drawn: tuple[str, list[Line]]) -> None:
    task, lines = drawn
    gold, predicted = (
        [
            answer["label"]
            for line in column
            for question in line["passage"]["questions"]
            for answer in question["answers"]
        ]
        for column in (gold_of(task), lines)
    )
    expected = f1_score(gold, predicted, zero_division=0)
    assert score_lines(task, lines).metrics["f1a"] == pytest.approx(expected)


@pytest.mark.slow
@given(guesses(["lidirus"]))
@settings(max_examples=20, deadline=None)
def test_every_correlation_of_lidirus_is_that_of_scikit_learn(
    drawn: tuple[str, list[Line]],
) -> None:
    task, lines = drawn
    found = score_lines(task, lines)
    rows = list(zip(gold_of(task), lines, strict=True))
    assert found.metrics["mcc"] == pytest.approx(correlation_of(rows))
    assert [group.name for group in found.groups] == list(FIELDS)
    for group in found.groups:
        tagged = [(r[FIELDS[group.name]], (r, line)) for r, line in rows if FIELDS[group.name] in r]
        assert group.whole.mcc == pytest.approx(correlation_of([row for _, row in tagged]))
        for tag, part in group.composite.items():
            same = [row for tags, row in tagged if tags == tag]
            assert part.mcc == pytest.approx(correlation_of(same))
        for tag, part in group.atomic.items():
            among = [row for tags, row in tagged if tag in tags.split(";")]
            assert part.mcc == pytest.approx(correlation_of(among))


def correlation_of(rows: Iterable[tuple[Line, Line]]) -> float:
    """Return the correlation of records and predictions by scikit-learn."""
    gold, predicted = ([line["label"] for line in column] for column in zip(*rows, strict=True))
    constant = len(set(gold)) == 1 or len(set(predicted)) == 1
    return 0 if constant else float(matthews_corrcoef(gold, predicted))


# Against the published scores


def test_the_overall_score_of_rubert_is_the_published_one() -> None:
    published = {
        "lidirus": {"mcc": 0.191},
        "rcb": {"f1": 0.367, "accuracy": 0.463},
        "parus": {"accuracy": 0.574},
        "muserc": {"f1a": 0.711, "em": 0.324},
        "terra": {"accuracy": 0.642},
        "russe": {"accuracy": 0.726},
        "rwsd": {"accuracy": 0.669},
        "danetqa": {"accuracy": 0.639},
        "rucos": {"f1": 0.32, "em": 0.314},
    }
    scores = Scores(tuple(Score(task, metrics, 1) for task, metrics in published.items()))
    assert scores.overall == pytest.approx(0.521, abs=0.0005)
    assert render_folder(scores).splitlines()[-1].split() == ["overall", "0.521"]


def test_an_exact_match_of_0_counts_in_the_mean() -> None:
    assert Score("muserc", {"f1a": 0.6, "em": 0.0}, 1).value == 0.3


def test_one_wrong_answer_costs_its_question_and_no_other(path: Path) -> None:
    lines = predict("muserc")
    questions = sum(len(line["passage"]["questions"]) for line in lines)
    lines[-1]["passage"]["questions"][-1]["answers"][-1]["label"] ^= 1
    found = score_task("muserc", write(path, lines), DATA)
    assert found.metrics["em"] == pytest.approx(1 - 1 / questions)
    assert 0.9 < found.metrics["f1a"] < 1


def test_questions_with_the_same_idx_in_two_passages_are_distinct() -> None:
    pairs = [Pair(("0", "0", "0"), 1, 1), Pair(("1", "0", "1"), 1, 0)]
    assert measure("muserc", pairs)["em"] == 0.5


def test_rucos_accepts_any_spelling_of_any_answer(path: Path) -> None:
    answers = (("«Высота»", "Высота"), ("Высота",))
    assert measure("rucos", [Pair(("0",), answers, "высота.")]) == {"f1": 1, "em": 1}
    assert measure("rucos", [Pair(("0",), answers, "«Высота»")]) == {"f1": 0.5, "em": 0.5}
    lines = predict("rucos", lambda text: f" {text.upper()}!\n")
    assert score_task("rucos", write(path, lines), DATA).value == 1


@pytest.mark.parametrize("spell", [str, lambda label: str(label).lower()])
@pytest.mark.parametrize("task", ["danetqa", "russe", "rwsd"])
def test_booleans_may_be_texts(task: str, spell: Answer, path: Path) -> None:
    assert score_task(task, write(path, predict(task, spell)), DATA).value == 1


@pytest.mark.parametrize("task", ["lidirus", "parus"])
def test_an_idx_may_be_a_number_or_a_text(task: str, path: Path) -> None:
    other = int if task == "lidirus" else str
    lines = [{**line, "idx": other(line["idx"])} for line in predict(task)]
    assert score_task(task, write(path, lines), DATA).value == 1


def test_tags_are_reported_both_as_written_and_one_by_one(path: Path) -> None:
    found = score_of(score("lidirus", write(path, predict("lidirus")), DATA))
    logic = found["groups"]["logic"]
    assert list(logic) == ["mcc", "labels", "composite", "atomic"]
    assert "Double negation;Negation" in logic["composite"]
    assert "Double negation;Negation" not in logic["atomic"]
    assert logic["atomic"]["Negation"]["labels"] > logic["composite"]["Negation"]["labels"]


def test_a_group_without_records_has_no_correlation(tmp_path: Path, path: Path) -> None:
    gold = [{"idx": 0, "label": "entailment", "logic": "", "knowledge": None}]
    write(tmp_path / "gold.jsonl", gold)
    found = score_task("lidirus", write(path, gold), tmp_path / "gold.jsonl")
    assert {(group.whole.mcc, group.whole.labels) for group in found.groups} == {(None, 0)}


def test_the_table_of_lidirus_shows_groups_and_tags(path: Path) -> None:
    write(path, predict("lidirus"))
    table = score("lidirus", path, DATA, "--format", "table").succeeds().stdout
    rows = [line.split() for line in table.splitlines()]
    assert rows[:2] == [["task", "metrics", "score", "value"], ["lidirus", "mcc", "1.000", "1.000"]]
    assert rows[3] == ["group", "tags", "are", "mcc", "labels"]
    assert ["logic", "all"] in [row[:2] for row in rows]
    assert ["logic", "Negation", "atomic"] in [row[:3] for row in rows]


def test_control_characters_in_a_tag_are_escaped(tmp_path: Path, path: Path) -> None:
    gold = write(tmp_path / "gold.jsonl", [{"idx": 0, "label": "entailment", "logic": "\x1b[2J"}])
    write(path, [{"idx": 0, "label": "entailment"}])
    table = score("lidirus", path, gold, "--format", "table").succeeds().stdout
    assert "\\x1b[2J" in table
    assert "\x1b" not in table


# Folders


def test_a_folder_of_all_nine_gets_an_overall_score(folder: Path) -> None:
    done = score(folder, DATA)
    found = score_of(done)
    assert done.stderr == ""
    assert list(found) == ["tasks", "overall"]
    assert list(found["tasks"]) == list(TASKS)
    assert {task["value"] for task in found["tasks"].values()} == {1}
    assert found["overall"] == 1


def test_a_task_scores_the_same_in_a_folder_as_alone(folder: Path) -> None:
    write(folder / "rcb.jsonl", predict("rcb", lambda _: "neutral"))
    alone = score_of(score("rcb", folder / "rcb.jsonl", DATA))
    assert {"task": "rcb", **score_of(score(folder, DATA))["tasks"]["rcb"]} == alone


def test_files_may_be_named_as_in_a_submission(folder: Path) -> None:
    for task, about in TASKS.items():
        (folder / f"{task}.jsonl").rename(folder / f"{about.title}.jsonl")
    assert score_folder(folder, DATA).overall == 1


def test_without_all_nine_there_is_no_overall_score(folder: Path) -> None:
    (folder / "rucos.jsonl").unlink()
    (folder / "terra.jsonl").unlink()
    done = score(folder, DATA)
    assert done.warnings == ["no predictions for rucos, terra, so no overall score"]
    assert score_of(done)["overall"] is None
    assert "rucos" not in score_of(done)["tasks"]
    table = score(folder, DATA, "--format", "table").succeeds().stdout.splitlines()
    assert table[0].split() == ["task", "metrics", "score", "value"]
    assert table[-1].split() == ["overall", "-"]
    assert table[-2].split() == ["terra", "-", "-", "-"]


def test_two_files_for_one_task_are_refused(folder: Path) -> None:
    write(folder / "PARus.jsonl", predict("parus"))
    with pytest.raises(DataError, match=r"both parus\.jsonl and PARus\.jsonl"):
        score_folder(folder, DATA)


def test_a_folder_without_predictions_is_refused(tmp_path: Path) -> None:
    assert "holds no predictions" in score(tmp_path, DATA).fails(3)


def test_a_task_missing_from_the_folder_is_refused(folder: Path) -> None:
    (folder / "parus.jsonl").unlink()
    assert complaint("parus", folder) == f"{folder} holds no parus.jsonl and no PARus.jsonl."


def test_two_files_need_the_name_of_their_task(path: Path) -> None:
    write(path, predict("parus"))
    error = score(path, DATA / "PARus" / "val.jsonl").fails(3)
    assert str(path) in error
    assert "TASK PREDICTIONS GOLD" in error


def test_missing_data_is_named(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    error = score(folder, tmp_path / "data").fails(3)
    assert "DaNetQA/val.jsonl" in error


# Missing, repeated, unknown


def test_a_missing_prediction_is_an_error_that_names_the_first(path: Path) -> None:
    lines = predict("parus")
    error = score("parus", write(path, [*lines[:5], *lines[7:]]), DATA).fails(3)
    gold = DATA / "PARus" / "val.jsonl"
    assert error.startswith(
        f"{path} lacks 2 of 24 predictions; the first is idx 5 (line 6 of {gold}"
    )
    assert "--missing wrong" in error


@pytest.mark.parametrize("task", TASKS)
def test_a_missing_prediction_counts_as_wrong_if_asked_to(task: str, path: Path) -> None:
    done = score(task, write(path, predict(task)[1:]), DATA, "--missing", "wrong")
    found = score_of(done)
    assert all(found[name] < 1 for name in METRICS[task])
    assert found["missing"] > 0
    (warning,) = done.warnings
    assert warning.startswith(f"{task}: {found['missing']} label")


@pytest.mark.parametrize("task", ["parus", "terra", "russe", "lidirus"])
def test_with_two_labels_a_missing_prediction_counts_as_the_wrong_one(
    task: str, path: Path
) -> None:
    first, *others = predict(task)
    (wrong,) = set(LABELS[task]) - {first["label"]}
    missing = score_task(task, write(path, others), DATA, "wrong")
    flipped = score_task(task, write(path, [{**first, "label": wrong}, *others]), DATA)
    assert missing.metrics == flipped.metrics


def test_predictions_may_repeat_as_long_as_they_agree(path: Path) -> None:
    once = predict("muserc", lambda _: 1)
    found = score_task("muserc", write(path, once * 3), DATA)
    alone = score_task("muserc", write(path, once), DATA)
    assert found.metrics == alone.metrics
    assert found.repeated == 2 * found.labels


def test_predictions_that_contradict_each_other_are_refused_with_both_lines(path: Path) -> None:
    lines = [*predict("parus"), {"idx": 4, "label": 0}, {"idx": 4, "label": 1}]
    error = score("parus", write(path, lines), DATA).fails(3)
    assert error.startswith(f"{path}, line 2")
    assert error.endswith("idx 4 has a different label on line 5.")


def test_a_contradiction_within_muserc_is_named_in_full(path: Path) -> None:
    lines = predict("muserc")
    again = json.loads(json.dumps(lines[0]))
    again["passage"]["questions"][1]["answers"][0]["label"] ^= 1
    error = complaint("muserc", write(path, [*lines, again]))
    assert "passage 0, question 1, answer 4 has a different label on line 1" in error


def test_gold_that_repeats_a_label_is_refused(path: Path, tmp_path: Path) -> None:
    lines = predict("parus")
    gold = write(tmp_path / "gold.jsonl", [*lines, lines[3]])
    error = complaint("parus", write(path, lines), gold)
    assert error == f"{gold}, line 25, as the gold of parus: idx 3 is already on line 4."


@pytest.mark.parametrize("missing", ["error", "wrong"])
def test_a_prediction_without_a_record_is_refused(path: Path, missing: str) -> None:
    write(path, [*predict("parus"), {"idx": "x\x1b[2J", "label": 0}])
    error = score("parus", path, DATA, "--missing", missing).fails(3)
    assert error.startswith(f"{path}, line 25: there is no idx x\\x1b[2J in ")


def test_an_answer_without_a_question_is_refused(path: Path) -> None:
    lines = predict("muserc")
    lines[1]["passage"]["questions"][0]["answers"].append({"idx": 999, "label": 1})
    assert "line 2: there is no passage 1, question" in complaint("muserc", write(path, lines))


# Wrong labels, wrong tasks, wrong files


@pytest.mark.parametrize(
    ("task", "label", "needed"),
    [
        ("parus", True, "one of 0, 1, not True"),
        ("parus", "0", "one of 0, 1, not '0'"),
        ("parus", 0.0, "one of 0, 1, not 0.0"),
        ("parus", 10**400, "one of 0, 1, not 1000000"),
        ("parus", [], "one of 0, 1, not []"),
        ("danetqa", 1, "one of false, true, not 1"),
        ("danetqa", "yes", "one of false, true, not 'yes'"),
        ("rcb", "not_entailment", "one of neutral, entailment, contradiction"),
        ("terra", "neutral", "one of entailment, not_entailment, not 'neutral'"),
        ("lidirus", None, "one of entailment, not_entailment, not None"),
        ("rucos", 5, "a string, not 5"),
    ],
)
def test_an_invalid_label_is_named_with_its_line(
    path: Path, task: str, label: object, needed: str
) -> None:
    first, second, *others = predict(task)
    error = complaint(task, write(path, [first, "", {**second, "label": label}, *others]))
    assert error.startswith(f"{path}, line 3, as a prediction of {task}: `label` must be {needed}")


@pytest.mark.parametrize(
    ("task", "line", "named"),
    [
        ("parus", "5", "not a JSON object: '5'"),
        ("parus", "Loading weights", "not a JSON object: 'Loading weights'"),
        ("parus", '{"idx": 0, "label": 1', "not a JSON object"),
        ("parus", "[" * 100_000, "not a JSON object"),
        ("parus", '{"idx": ' + "9" * 10_000 + "}", "line 1"),
        ("parus", '{"idx": NaN, "label": 0}', "`idx` must be a whole number or a string, not nan"),
        (
            "parus",
            '{"idx": 1e999, "label": 0}',
            "`idx` must be a whole number or a string, not inf",
        ),
        ("parus", '{"idx": true, "label": 0}', "`idx` must be a whole number or a string"),
        ("parus", '{"idx": 0, "label": NaN}', "`label` must be one of 0, 1, not nan"),
        ("parus", '{"label": 0}', "`idx` is missing"),
        ("parus", '{"idx": 0}', "`label` is missing"),
        ("parus", '{"idx": "\\ud800", "label": 0}', "there is no idx \\ud800"),
        ("rucos", '{"idx": 0, "label": ["a"]}', "`label` must be a string, not ['a']"),
        ("muserc", '{"idx": 0, "label": 1}', "`passage` is missing"),
        ("muserc", '{"idx": 0, "passage": []}', "`passage` must be an object, not []"),
        ("muserc", '{"idx": 0, "passage": {"questions": [5]}}', "a list of objects"),
        ("muserc", '{"idx": 0, "passage": {"questions": [{"answers": [{}]}]}}', "`idx` is missing"),
    ],
)
def test_an_invalid_line_is_named(path: Path, task: str, line: str, named: str) -> None:
    error = complaint(task, write(path, [line]))
    assert error.startswith(f"{path}, line 1")
    assert named in error


@pytest.mark.parametrize(
    ("task", "lines", "named"),
    [
        ("parus", predict("muserc"), "as a prediction of parus: it has the fields of muserc"),
        ("muserc", predict("parus"), "as a prediction of muserc: `passage` is missing"),
        ("terra", gold_of("russe"), "as a prediction of terra: it has the fields of russe"),
        ("danetqa", predict("terra"), "`label` must be one of false, true, not 'entailment'"),
    ],
)
def test_predictions_of_another_task_are_refused(
    path: Path, task: str, lines: list[Line], named: str
) -> None:
    assert named in complaint(task, write(path, lines))


@pytest.mark.parametrize(
    ("task", "other"), [("danetqa", "russe"), ("rucos", "muserc"), ("terra", "lidirus")]
)
def test_gold_of_another_task_is_refused(path: Path, task: str, other: str) -> None:
    error = complaint(task, write(path, predict(task)), find_data(DATA, other))
    assert f"line 1, as the gold of {task}: it has the fields of {other}" in error


@pytest.mark.parametrize("task", [task for task in TASKS if task != "lidirus"])
def test_a_file_without_labels_is_refused_as_gold(path: Path, task: str) -> None:
    gold = DATA / TASKS[task].title / "test.jsonl"
    error = score(task, write(path, predict(task)), gold).fails(3)
    assert error.startswith(f"{gold}, line 1, as the gold of {task}: ")
    assert "val.jsonl" in error


def test_tags_that_are_not_a_text_are_refused(tmp_path: Path, path: Path) -> None:
    lines = predict("lidirus")
    gold = write(tmp_path / "gold.jsonl", [{**lines[0], "logic": ["Negation"]}])
    assert "line 1, as the gold of lidirus: `logic` must be tags" in complaint(
        "lidirus", write(path, lines), gold
    )


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@given(st.sampled_from(list(TASKS)), st.dictionaries(KEYS, anything))
@settings(max_examples=200, deadline=None)
def test_any_invalid_line_gives_one_clear_error(task: str, line: Line) -> None:
    for gold, lines in ((gold_of(task), [line]), ([line], predict(task))):
        with pytest.raises(DataError) as error:
            score_lines(task, lines, gold)
        assert str(error.value).isprintable()


def test_byte_order_marks_windows_line_ends_and_blank_lines_are_ignored(path: Path) -> None:
    lines = [json.dumps(line) for line in predict("terra")]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n \r\n".join(lines).encode())
    assert score_task("terra", path, DATA).value == 1


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_file_is_refused(path: Path, content: str) -> None:
    path.write_text(content)
    assert complaint("parus", path).startswith(f"{path} is empty: it must hold a prediction")
    write(path, predict("parus"))
    (path.parent / "gold.jsonl").write_text(content)
    assert "must hold the gold of parus" in complaint("parus", path, path.parent / "gold.jsonl")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for name in ("nothing.jsonl", "x" * 5000):
        error = score("parus", tmp_path / name, DATA).fails(3)
        assert error.startswith(f"Cannot read {tmp_path / name}: ")


@pytest.mark.parametrize(
    ("name", "named"), [("PARus", "did you mean 'parus'?"), ("squad", "the nine are: danetqa, ")]
)
def test_an_unknown_task_is_answered_with_the_known_ones(name: str, named: str) -> None:
    assert named in score(name, DATA, DATA).fails(3)


def test_the_shell_completes_a_task_and_then_files_only() -> None:
    assert complete("morocco score pa", word=2) == ["parus", "pa"]
    assert complete("morocco score parus pa", word=3) == ["pa"]


@pytest.mark.parametrize("args", [(), ("parus",), ("parus", "a", "b", "c")])
def test_too_few_or_too_many_names_are_wrong_usage(args: tuple[str, ...]) -> None:
    done = score(*args)
    assert (done.code, done.stdout) == (2, "")
    assert "Give TASK PREDICTIONS GOLD, or PREDICTIONS_DIR GOLD_DIR." in done.stderr
