"""The examples: data in the schemas of the tasks, and the TF-IDF model run as users run it."""

import json
import string
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from forked import Completed, preload, run_forked
from morocco.score.score import score_folder
from paths import DATA

TFIDF = DATA.with_name("tfidf")

TITLES = {
    "danetqa": "DaNetQA",
    "lidirus": "LiDiRus",
    "muserc": "MuSeRC",
    "parus": "PARus",
    "rcb": "RCB",
    "rucos": "RuCoS",
    "russe": "RUSSE",
    "rwsd": "RWSD",
    "terra": "TERRa",
}
FIELDS = {
    "danetqa": "question passage",
    "lidirus": "sentence1 sentence2",
    "muserc": "passage",
    "parus": "premise choice1 choice2 question",
    "rcb": "premise hypothesis verb negation genre",
    "rucos": "passage qas",
    "russe": "word sentence1 sentence2 start1 end1 start2 end2",
    "rwsd": "text target",
    "terra": "premise hypothesis",
}
LABELS: dict[str, set[object]] = {
    "danetqa": {True, False},
    "lidirus": {"entailment", "not_entailment"},
    "parus": {0, 1},
    "rcb": {"entailment", "contradiction", "neutral"},
    "russe": {True, False},
    "rwsd": {True, False},
    "terra": {"entailment", "not_entailment"},
}
ONE_OF_EACH_KIND = ["parus", "terra", "muserc", "rucos"]

Record = dict[str, Any]


def split_of(task: str, split: str) -> list[Record]:
    name = "LiDiRus" if task == "lidirus" else split
    lines = (DATA / TITLES[task] / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def all_splits(task: str) -> list[Record]:
    splits = ["val"] if task == "lidirus" else ["train", "val", "test"]
    return [record for split in splits for record in split_of(task, split)]


preload("joblib", "sklearn.feature_extraction.text", "sklearn.linear_model", "sklearn.metrics")


def run(program: str, *args: object, records: str = "") -> Completed:
    return run_forked(TFIDF / program, *args, records=records)


def lines_of(records: list[Record]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def parsed(output: str) -> list[Record]:
    return [json.loads(line) for line in output.splitlines()]


def infer(models: Path, task: str, *args: object, records: str) -> Completed:
    return run("infer.py", task, "--model", models / f"{task}.joblib", *args, records=records)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the nine models, trained once."""
    folder = tmp_path_factory.mktemp("models")
    done = run("train.py", DATA, *TITLES, folder / "{task}.joblib")
    assert (done.returncode, done.stderr) == (0, "")
    return folder


@pytest.fixture(scope="module")
def outputs(models: Path) -> dict[str, Completed]:
    """What infer.py does with the validation records of each task, seven at a time."""

    def validate(task: str) -> Completed:
        records = lines_of(split_of(task, "val"))
        return infer(models, task, "--batch-size", 7, records=records)

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(TITLES, pool.map(validate, TITLES), strict=True))


def whole_words(text: str, start: int, end: int) -> bool:
    span, neighbours = text[start:end], text[max(start - 1, 0) : start] + text[end : end + 1]
    return span == span.strip() != "" and not any(map(str.isalnum, neighbours))


# The data


def test_the_data_stays_small() -> None:
    assert sum(path.stat().st_size for path in DATA.rglob("*.jsonl")) < 400_000


@pytest.mark.parametrize("task", TITLES)
def test_every_record_has_the_fields_of_its_task(task: str) -> None:
    assert all({"idx", *FIELDS[task].split()} <= record.keys() for record in all_splits(task))


@pytest.mark.parametrize("task", TITLES)
def test_idx_counts_the_records_of_a_file(task: str) -> None:
    records = split_of(task, "val")
    kind = str if task == "lidirus" else int
    assert [record["idx"] for record in records] == [kind(i) for i in range(len(records))]


@pytest.mark.parametrize("task", LABELS)
def test_train_and_val_show_every_label_of_the_task(task: str) -> None:
    for split in ("train", "val"):
        assert {record["label"] for record in split_of(task, split)} == LABELS[task]


@pytest.mark.parametrize("task", sorted(TITLES.keys() - {"lidirus"}))
def test_the_test_split_gives_no_answer_away(task: str) -> None:
    text = lines_of(split_of(task, "test"))
    assert not any(key in text for key in ('"label"', '"gold_sense1"'))
    assert task != "rucos" or '"answers"' not in text


def test_lidirus_tags_are_single_and_composite() -> None:
    logic = {record["logic"] for record in split_of("lidirus", "val") if "logic" in record}
    assert "Negation" in logic
    assert "Double negation;Negation" in logic


def test_russe_offsets_point_at_a_form_of_the_word() -> None:
    for record in all_splits("russe"):
        for n in "12":
            start, end = record[f"start{n}"], record[f"end{n}"]
            sentence = record[f"sentence{n}"]
            assert sentence[start:end].lower().startswith(record["word"][:3])
            assert whole_words(sentence, start, end)


def test_rwsd_indices_count_words() -> None:
    for record in all_splits("rwsd"):
        words, target = record["text"].split(), record["target"]
        for n in "12":
            span, index = target[f"span{n}_text"], target[f"span{n}_index"]
            found = " ".join(words[index : index + len(span.split())])
            assert found.strip(string.punctuation) == span


def test_muserc_answers_are_numbered_through_a_file() -> None:
    questions = [
        q for record in split_of("muserc", "train") for q in record["passage"]["questions"]
    ]
    answers = [answer for question in questions for answer in question["answers"]]
    assert [question["idx"] for question in questions] == list(range(len(questions)))
    assert [answer["idx"] for answer in answers] == list(range(len(answers)))
    assert {answer["label"] for answer in answers} == {0, 1}


def test_rucos_answers_are_entities_of_the_passage() -> None:
    for record in split_of("rucos", "train") + split_of("rucos", "val"):
        text = record["passage"]["text"]
        spans = [(entity["start"], entity["end"]) for entity in record["passage"]["entities"]]
        for question in record["qas"]:
            assert "@placeholder" in question["query"]
            for answer in question["answers"]:
                assert (answer["start"], answer["end"]) in spans
                assert text[answer["start"] : answer["end"]] == answer["text"]


def test_rucos_entities_are_whole_words() -> None:
    for record in all_splits("rucos"):
        text = record["passage"]["text"]
        assert "\n@highlight\n" in text
        for entity in record["passage"]["entities"]:
            assert whole_words(text, entity["start"], entity["end"])


# The model


@pytest.mark.parametrize("task", TITLES)
def test_every_record_gets_one_prediction_with_its_idx(
    task: str, outputs: dict[str, Completed]
) -> None:
    records = split_of(task, "val")
    done = outputs[task]
    assert (done.returncode, done.stderr) == (0, f"infer.py: {task}: {len(records)} predictions\n")
    assert [p["idx"] for p in parsed(done.stdout)] == [record["idx"] for record in records]


@pytest.mark.parametrize("task", LABELS)
def test_a_prediction_is_a_label_of_the_task(task: str, outputs: dict[str, Completed]) -> None:
    for prediction in parsed(outputs[task].stdout):
        assert prediction.keys() == {"idx", "label"}
        assert prediction["label"] in LABELS[task]
        assert type(prediction["label"]) in map(type, LABELS[task])  # True is not 1 in JSON


def test_muserc_labels_every_answer_in_its_place(outputs: dict[str, Completed]) -> None:
    predictions = parsed(outputs["muserc"].stdout)
    labels = [
        answer.pop("label")
        for prediction in predictions
        for question in prediction["passage"]["questions"]
        for answer in question["answers"]
    ]
    assert set(labels) == {0, 1}
    assert predictions == [without_texts(record) for record in split_of("muserc", "val")]


def without_texts(record: Record) -> Record:
    """Return what is left of a record of MuSeRC without its texts and labels."""
    questions = [
        {"idx": question["idx"], "answers": [{"idx": a["idx"]} for a in question["answers"]]}
        for question in record["passage"]["questions"]
    ]
    return {"idx": record["idx"], "passage": {"questions": questions}}


def test_rucos_names_an_entity_of_the_passage(outputs: dict[str, Completed]) -> None:
    predictions = parsed(outputs["rucos"].stdout)
    for record, prediction in zip(split_of("rucos", "val"), predictions, strict=True):
        text = record["passage"]["text"]
        names = [text[e["start"] : e["end"]] for e in record["passage"]["entities"]]
        assert prediction == {"idx": record["idx"], "label": prediction["label"]}
        assert prediction["label"] in names


def test_morocco_scores_what_the_model_prints(
    outputs: dict[str, Completed], tmp_path: Path
) -> None:
    for task, done in outputs.items():
        (tmp_path / f"{task}.jsonl").write_text(done.stdout, encoding="utf-8")
    scores = score_folder(tmp_path, DATA)
    assert scores.warnings == ()
    assert scores.overall is not None
    assert 0 < scores.overall < 1


@pytest.mark.parametrize("task", ONE_OF_EACH_KIND)
def test_neither_batch_size_nor_repetition_changes_a_prediction(
    task: str, models: Path, outputs: dict[str, Completed]
) -> None:
    twice = infer(models, task, records=lines_of(split_of(task, "val")) * 2)
    assert twice.stdout == outputs[task].stdout * 2


def test_a_string_idx_comes_back_as_a_string(models: Path) -> None:
    record = {**split_of("terra", "val")[0], "idx": "первый"}
    (prediction,) = parsed(infer(models, "terra", records=lines_of([record])).stdout)
    assert prediction["idx"] == "первый"


def test_a_broken_line_is_named(models: Path) -> None:
    good = lines_of(split_of("parus", "val")[:2])
    done = infer(models, "parus", records=good + '{"idx": 3,\n')
    assert done.returncode == 1
    assert done.stderr.startswith("infer.py: line 3: not JSON")
    assert done.stderr.count("\n") == 1


def test_a_missing_field_is_named(models: Path) -> None:
    record = split_of("terra", "val")[0]
    del record["hypothesis"]
    done = infer(models, "terra", records=lines_of([record]))
    assert done.returncode == 1
    assert done.stderr == "infer.py: line 1: the record has no field 'hypothesis'\n"


def test_an_unknown_task_is_answered_with_the_known_ones() -> None:
    done = run("infer.py", "squad")
    assert done.returncode == 1
    assert done.stderr.startswith("infer.py: no task squad; the tasks are danetqa, lidirus")


def test_a_missing_model_is_answered_with_the_way_to_train_it(tmp_path: Path) -> None:
    done = run("infer.py", "rcb", "--model", tmp_path / "rcb.joblib")
    assert done.returncode == 1
    assert "train.py DATA_DIR rcb" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_model_of_another_task_is_refused(models: Path) -> None:
    done = run("infer.py", "lidirus", "--model", models / "terra.joblib")
    assert done.returncode == 1
    assert done.stderr.endswith("holds a model of terra, not of lidirus\n")


def test_all_models_of_a_folder_predict_what_each_predicts_alone(
    models: Path, outputs: dict[str, Completed], tmp_path: Path
) -> None:
    done = run("predict.py", DATA, models, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    predictions = {path.stem: path.read_text() for path in tmp_path.iterdir()}
    assert predictions == {task: output.stdout for task, output in outputs.items()}


def test_predicting_with_a_model_of_no_task_fails_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "squad.joblib").write_bytes(b"")
    done = run("predict.py", DATA, tmp_path, tmp_path / "out")
    assert done.returncode == 1
    assert done.stderr.startswith("predict.py: no task squad")
    assert done.stderr.count("\n") == 1


def test_models_of_several_tasks_are_not_trained_into_one_file(tmp_path: Path) -> None:
    done = run("train.py", DATA, "parus", "terra", tmp_path / "model.joblib")
    assert done.returncode == 2
    assert "{task}" in done.stderr
    assert not any(tmp_path.iterdir())


def test_training_without_data_fails_in_one_line(tmp_path: Path) -> None:
    done = run("train.py", tmp_path, "parus", tmp_path / "parus.joblib")
    assert done.returncode == 1
    assert done.stderr.startswith("train.py: ")
    assert done.stderr.count("\n") == 1


def test_the_size_that_is_chosen_is_a_round_number_of_records(models: Path) -> None:
    words = (DATA / "PARus" / "val.jsonl", "parus", models / "parus.joblib")
    done = run("choose_size.py", *words, "--seconds", 100)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) % 1000 == 0
    assert int(done.stdout) > 100_000  # even a slow machine does a thousand records a second


def test_a_size_for_a_model_that_is_not_there_cannot_be_chosen(tmp_path: Path) -> None:
    done = run("choose_size.py", DATA / "PARus" / "val.jsonl", "parus", tmp_path / "parus.joblib")
    assert done.returncode == 1
    assert done.stderr.startswith("choose_size.py: ")
    assert done.stderr.count("\n") == 1
