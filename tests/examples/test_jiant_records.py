"""What the jiant example makes of records: the texts of each pass, the targets, the prediction."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from morocco import tasks
from morocco.score.answers import SCHEMAS
from paths import DATA
from records import Example, ExampleError, Pass, Record, Span, read_lines
from tasks import TASKS, find_task
from toys import write_records
from training import Labelled, read_split, split_units, value

PASSAGE = "Иван Петров, мэр Твери, уехал.\n@highlight\nИван Петров вернётся."
RECORDS: dict[str, Record] = {
    "danetqa": {"question": "Есть ли мост?", "passage": "Мост есть.", "label": True, "idx": 7},
    "lidirus": {
        "sentence1": "Кот спит.",
        "sentence2": "Кот не спит.",
        "logic": "Negation",
        "label": "not_entailment",
        "idx": "7",
    },
    "muserc": {
        "idx": 7,
        "passage": {
            "text": "(1) Пришла весна.",
            "questions": [
                {
                    "question": "Что пришло?",
                    "idx": 3,
                    "answers": [
                        {"idx": 11, "text": "Зима", "label": 0},
                        {"idx": 12, "text": "Весна", "label": 1},
                    ],
                },
                {
                    "question": "Когда?",
                    "idx": 4,
                    "answers": [{"idx": 13, "text": "Вчера", "label": 0}],
                },
            ],
        },
    },
    "parus": {
        "premise": "Пошёл дождь.",
        "choice1": "Я взял зонт.",
        "choice2": "Я лёг спать.",
        "question": "effect",
        "label": 1,
        "idx": 7,
    },
    "rcb": {
        "premise": "Он думал, что прав.",
        "hypothesis": "Он прав.",
        "verb": "думать",
        "negation": "no_negation",
        "genre": "kp",
        "label": "contradiction",
        "idx": 7,
    },
    "rucos": {
        "idx": 7,
        "passage": {
            "text": PASSAGE,
            "entities": [
                {"start": PASSAGE.index(name, after), "end": PASSAGE.index(name, after) + len(name)}
                for name, after in (("Твери", 0), ("Иван Петров", 0), ("Иван Петров", 20))
            ],
        },
        "qas": [
            {
                "query": "Мэр @placeholder уехал, @placeholder ждут.",
                "answers": [{"start": 0, "end": 11, "text": "Иван Петров"}],
                "idx": 0,
            }
        ],
    },
    "russe": {
        "word": "замок",
        "sentence1": "Старый замок.",
        "sentence2": "Замок ржавый.",
        "start1": 7,
        "end1": 12,
        "start2": 0,
        "end2": 6,  # one too many
        "label": False,
        "idx": 7,
    },
    "rwsd": {  # the example of russiansuperglue.com
        "text": "Кубок не помещается в коричневый чемодан, потому что он слишком большой.",
        "target": {
            "span1_text": "чемодан",
            "span1_index": 5,
            "span2_text": "он слишком большой",
            "span2_index": 8,
        },
        "label": False,
        "idx": 7,
    },
    "terra": {
        "premise": "Кот спит.",
        "hypothesis": "Кот жив.",
        "label": "entailment",
        "idx": 7,
    },
}
PASSES = {
    "danetqa": [Pass(("Мост есть.", "Есть ли мост?"))],
    "lidirus": [Pass(("Кот спит.", "Кот не спит."))],
    "muserc": [
        Pass(("(1) Пришла весна.", "Что пришло? Зима")),
        Pass(("(1) Пришла весна.", "Что пришло? Весна")),
        Pass(("(1) Пришла весна.", "Когда? Вчера")),
    ],
    "parus": [
        Pass(("Пошёл дождь.", "Что случилось в результате? Я взял зонт.")),
        Pass(("Пошёл дождь.", "Что случилось в результате? Я лёг спать.")),
    ],
    "rcb": [Pass(("Он думал, что прав.", "Он прав."))],
    "rucos": [
        Pass((PASSAGE, "Мэр Иван Петров уехал, Иван Петров ждут.")),
        Pass((PASSAGE, "Мэр Твери уехал, Твери ждут.")),
    ],
    "russe": [Pass(("Старый замок.", "Замок ржавый."), (Span(0, 7, 12), Span(1, 0, 5)))],
    "rwsd": [Pass((RECORDS["rwsd"]["text"],), (Span(0, 33, 40), Span(0, 53, 71)))],
    "terra": [Pass(("Кот спит.", "Кот жив."))],
}
TARGETS = {
    "danetqa": [1],
    "lidirus": [1],
    "muserc": [0, 1, 0],
    "parus": [1],
    "rcb": [2],
    "rucos": [1, 0],
    "russe": [0],
    "rwsd": [0],
    "terra": [0],
}
ANSWERS = {
    "muserc": {
        "passage": {
            "questions": [
                {"idx": 3, "answers": [{"idx": 11, "label": 0}, {"idx": 12, "label": 1}]},
                {"idx": 4, "answers": [{"idx": 13, "label": 0}]},
            ]
        }
    },
    "rucos": {"label": "Иван Петров"},
}
"""The predictions that are right; those of the other tasks repeat the label of the record."""


def read(task: str, **changes: Any) -> Example:
    return TASKS[task].read({**RECORDS[task], **changes})


def unlabelled(task: str, value: Any) -> Any:
    """Return a part of a record without what gives its answers away."""
    if isinstance(value, list):
        return [unlabelled(task, inner) for inner in value]
    if not isinstance(value, dict):
        return value
    gone = "answers" if task == "rucos" else "label"
    return {key: unlabelled(task, inner) for key, inner in value.items() if key != gone}


def predict(task: str, example: Example, scores: Sequence[Sequence[float]]) -> Record:
    return TASKS[task].answer.predict(np.array(scores, np.float32), example.keys)


def scores_of(task: str, targets: Sequence[int]) -> list[list[float]]:
    """Return what a head says that is sure of these targets."""
    outputs = TASKS[task].answer.outputs
    if outputs == 1:
        return [[float(choice == targets[0])] for choice in (0, 1)]
    return [[float(output == target) for output in range(outputs)] for target in targets]


def split_with(folder: Path, task: str, *records: Record) -> list[Labelled]:
    """Return what a validation split of these records is read as."""
    write_records(folder / TASKS[task].title / "val.jsonl", list(records))
    return read_split(folder, TASKS[task], "val")


def validate(folder: Path, task: str, gold: Sequence[object], predicted: Sequence[object]) -> float:
    """Return the validation metric of these predictions of records with these labels."""
    records = [{**RECORDS[task], "label": label, "idx": idx} for idx, label in enumerate(gold)]
    predictions = [{"label": label, "idx": idx} for idx, label in enumerate(predicted)]
    return value(TASKS[task], split_with(folder, task, *records), predictions)


# The table of tasks


def test_the_tasks_are_those_of_morocco() -> None:
    assert {name: task.title for name, task in TASKS.items()} == {
        name: task.title for name, task in tasks.TASKS.items()
    }


@pytest.mark.parametrize("task", TASKS)
def test_what_the_tests_take_for_a_record_of_a_task_is_one(task: str) -> None:
    assert SCHEMAS[task].fields <= RECORDS[task].keys()
    assert list(SCHEMAS[task].read_gold(RECORDS[task]))


def test_an_unknown_task_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ExampleError, match="no task 'squad'; the nine are danetqa, lidirus, muser"):
        find_task("squad")


@pytest.mark.parametrize(
    ("task", "every", "steps", "batch_size", "validated"),
    [
        ("danetqa", 1000, 5000, 4, 5000),
        ("rcb", 60, 600, 4, 5000),
        ("parus", 100, 1000, 4, 5000),
        ("muserc", 1000, 10_000, 4, None),
        ("rucos", 10_000, 100_000, 8, None),
        ("terra", 625, 6250, 4, 5000),
        ("russe", 1000, 10_000, 4, 5000),
        ("rwsd", 139, 1390, 4, 5000),
    ],
)
def test_a_task_is_trained_as_long_as_the_published_baselines(
    task: str, every: int, steps: int, batch_size: int, validated: int | None
) -> None:
    schedule = TASKS[task].schedule
    assert (schedule.every, schedule.steps) == (every, steps)
    assert (schedule.batch_size, schedule.validated) == (batch_size, validated)


def test_only_rwsd_learns_with_amsgrad_and_without_a_warm_up() -> None:
    schedules = {name: task.schedule for name, task in TASKS.items()}
    assert [name for name, schedule in schedules.items() if schedule.amsgrad] == ["rwsd"]
    assert {name: schedule.warmup for name, schedule in schedules.items()} == {
        name: 0.0 if name == "rwsd" else 0.1 for name in TASKS
    }


def test_only_lidirus_has_the_weights_of_another_task() -> None:
    assert {name: task.trained_as for name, task in TASKS.items()} == {
        name: "terra" if name == "lidirus" else name for name in TASKS
    }


# From a record to what the model reads


@pytest.mark.parametrize("task", TASKS)
def test_a_record_becomes_the_passes_of_its_task(task: str) -> None:
    example = read(task)
    assert list(example.passes) == PASSES[task]
    assert example.idx == RECORDS[task]["idx"]
    assert type(example.idx) is type(RECORDS[task]["idx"])


@pytest.mark.parametrize("task", TASKS)
def test_labels_are_not_needed_to_answer(task: str) -> None:
    record = unlabelled(task, RECORDS[task])
    assert list(TASKS[task].read(record).passes) == PASSES[task]


def test_the_cause_is_asked_for_in_other_words_than_the_effect() -> None:
    texts = [one.texts[1] for one in read("parus", question="cause").passes]
    assert texts == [
        "Что было причиной этого? Я взял зонт.",
        "Что было причиной этого? Я лёг спать.",
    ]


def test_an_entity_ends_where_its_end_says() -> None:
    assert read("rucos").keys == ["Иван Петров", "Твери"]


def test_every_entity_of_the_data_stands_once_and_in_the_order_of_strings() -> None:
    lines = (DATA / "RuCoS" / "val.jsonl").read_bytes().splitlines()
    for example in read_lines(lines, "val", TASKS["rucos"].read):
        assert list(example.keys) == sorted(set(example.keys))
        assert len(example.passes) == len(example.keys) > 1
        for one, name in zip(example.passes, example.keys, strict=True):
            assert name == name.strip(" .,\n")
            assert name in one.texts[1]
            assert "@placeholder" not in one.texts[1]


@pytest.mark.parametrize(("start", "end"), [(7, 12), (7, 13), (6, 12), (6, 13)])
def test_a_marked_word_loses_the_white_space_at_its_ends(start: int, end: int) -> None:
    example = read("russe", sentence1="Старый замок цел.", start1=start, end1=end)
    assert example.passes[0].spans[0] == Span(0, 7, 12)


def test_a_repeated_word_is_the_one_with_the_index() -> None:
    target = {"span1_text": "он", "span1_index": 3, "span2_text": "он", "span2_index": 0}
    example = read("rwsd", text="он видел, что он спит, а он нет", target=target)
    assert example.passes[0].spans == (Span(0, 14, 16), Span(0, 0, 2))


def test_a_word_in_quotes_is_found_by_its_index() -> None:
    target = {"span1_text": "Метеор", "span1_index": 1, "span2_text": "он", "span2_index": 3}
    example = read("rwsd", text="Фильм «Метеор» вышел, он хорош", target=target)
    assert example.passes[0].spans == (Span(0, 7, 13), Span(0, 22, 24))


def test_a_word_whose_index_is_too_high_is_found_all_the_same() -> None:
    target = {"span1_text": "Кубок", "span1_index": 99, "span2_text": "он", "span2_index": 9}
    assert read("rwsd", target=target).passes[0].spans == (Span(0, 0, 5), Span(0, 53, 55))


def test_a_word_is_never_found_inside_another() -> None:
    target = {"span1_text": "фонарь", "span1_index": 0, "span2_text": "он", "span2_index": 9}
    example = read("rwsd", text="фонарь погас, он упал", target=target)
    assert example.passes[0].spans == (Span(0, 0, 6), Span(0, 14, 16))


def test_words_that_the_text_has_in_another_form_are_found_by_their_index() -> None:
    target = {"span1_text": "старый фонарь", "span1_index": 1, "span2_text": "Он", "span2_index": 3}
    example = read("rwsd", text="у старого фонаря он ждал", target=target)
    assert example.passes[0].spans == (Span(0, 2, 16), Span(0, 17, 19))


@pytest.mark.parametrize(
    ("task", "changes", "message"),
    [
        ("parus", {"question": "why"}, "`question` is 'why', not cause or effect"),
        ("terra", {"premise": 5}, "5 is not a text"),
        ("rucos", {"passage": {"text": "Текст", "entities": []}}, "no entities to choose from"),
        ("russe", {"start1": 6, "end1": 7}, "characters 6 to 7 of 'Старый замок.' mark no word"),
        ("russe", {"start2": 90, "end2": 95}, "mark no word"),
        ("rwsd", {"text": "Сосуд не помещается в сумку."}, "'чемодан', word 5, is not in 'Сосуд"),
    ],
)
def test_a_record_that_cannot_be_read_says_why(task: str, changes: Record, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        read(task, **changes)


# From a label to a target, and from scores to a prediction


@pytest.mark.parametrize("task", TASKS)
def test_a_label_becomes_the_targets_of_its_task(task: str) -> None:
    keys = read(task).keys
    assert TASKS[task].answer.targets(RECORDS[task], keys) == TARGETS[task]


@pytest.mark.parametrize("task", TASKS)
def test_who_is_sure_of_the_targets_predicts_the_label(task: str) -> None:
    prediction = predict(task, read(task), scores_of(task, TARGETS[task]))
    assert prediction == ANSWERS.get(task, {"label": RECORDS[task].get("label")})


@pytest.mark.parametrize("task", TASKS)
def test_every_prediction_has_the_form_that_morocco_reads(task: str) -> None:
    example = read(task)
    answer = TASKS[task].answer
    for scores in np.random.default_rng(0).normal(size=(20, len(example.passes), answer.outputs)):
        prediction = {"idx": example.idx, **answer.predict(scores, example.keys)}
        again = json.loads(json.dumps(prediction, ensure_ascii=False))
        gold = list(SCHEMAS[task].read_gold(RECORDS[task]))
        found = list(SCHEMAS[task].read_prediction(again))
        assert [one.key for one in found] == [one.key for one in gold]


@pytest.mark.parametrize(
    ("task", "label"),
    [
        ("danetqa", "true"),
        ("danetqa", 1),
        ("lidirus", "contradiction"),
        ("rcb", "not_entailment"),
        ("russe", None),
        ("rwsd", 0),
        ("terra", ["entailment"]),
    ],
)
def test_a_label_that_the_task_has_not_is_refused(task: str, label: object) -> None:
    with pytest.raises(ValueError, match=r"`label` must be one of"):
        TASKS[task].answer.targets({**RECORDS[task], "label": label}, read(task).keys)


def test_of_entities_that_are_equally_likely_the_first_in_the_order_of_strings_is_taken() -> None:
    assert predict("rucos", read("rucos"), [[0.3, 0.7], [0.3, 0.7]])["label"] == "Иван Петров"
    assert predict("rucos", read("rucos"), [[0.3, 0.7], [0.2, 0.7]])["label"] == "Твери"


@pytest.mark.parametrize("task", ["parus", "rucos"])
def test_rounding_chooses_no_candidate(task: str) -> None:
    """Passes of the same tokens differ in the last digits, by where they stand in a batch."""
    first, second = (
        ([[1.0, 0.5]], [[1.0, 0.5000002]]) if task == "rucos" else ([[0.5]], [[0.5000002]])
    )
    example = read(task)
    assert predict(task, example, first + second)["label"] == example.keys[0]
    assert predict(task, example, second + first)["label"] == example.keys[0]


def test_an_entity_that_is_almost_sure_is_beaten_by_one_that_is_surer() -> None:
    """Both probabilities round to 1."""
    assert predict("rucos", read("rucos"), [[0, 90], [0, 91]])["label"] == "Твери"


def test_a_record_without_answers_has_a_prediction_without_answers() -> None:
    example = read("muserc", passage={"text": "Пусто.", "questions": []})
    scores = np.empty((0, 2), np.float32)
    assert TASKS["muserc"].answer.predict(scores, example.keys) == {"passage": {"questions": []}}


# Files of records


@pytest.mark.parametrize("task", TASKS)
def test_the_records_of_the_repository_are_read(task: str) -> None:
    split = "LiDiRus" if task == "lidirus" else "val"
    assert read_split(DATA, TASKS[task], split)


def test_a_pass_is_learnt_from_alone_but_where_one_of_them_is_chosen(tmp_path: Path) -> None:
    for task, units in (("muserc", 3), ("rucos", 2), ("parus", 1), ("russe", 1)):
        records = split_with(tmp_path, task, RECORDS[task])
        assert len(split_units(TASKS[task], records)) == units


def test_blank_lines_and_the_mark_of_editors_are_passed_over() -> None:
    lines = ["\ufeff".encode() + b'{"idx": 1}\n', b"\n", b"  \r\n", b'{"idx": 2}\r\n']
    assert list(read_lines(lines, "stdin", lambda record: record["idx"])) == [1, 2]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"idx": 3,\n', r"stdin, line 3: not JSON \("),
        (b"[1, 2]\n", "stdin, line 3: not a JSON object"),
        (b"\xff\xfe{}\n", r"stdin, line 3: not JSON \("),
        (b"[" * 100_000, r"stdin, line 3: not JSON \("),
        (b'{"idx": 3, "premise": "a", "hypothesis": "\\ud83d"}', "stdin, line 3: .*surrogates"),
        (b'{"idx": 3, "premise": "a"}\n', "stdin, line 3: there is no field 'hypothesis'"),
        (b'{"premise": "a", "hypothesis": "b"}\n', "stdin, line 3: there is no field 'idx'"),
        (b'{"idx": 3, "premise": "a", "hypothesis": 1}', "stdin, line 3: 1 is not a text"),
    ],
)
def test_a_broken_line_is_named_with_its_number(line: bytes, message: str) -> None:
    good = b'{"idx": 1, "premise": "\\ud83d\\ude00", "hypothesis": "b"}\n'
    with pytest.raises(ExampleError, match=message):
        list(read_lines([good, b"\n", line], "stdin", TASKS["terra"].read))


@pytest.mark.parametrize("task", ["muserc", "parus", "rucos", "terra"])
def test_a_record_without_its_label_is_named_with_its_line(task: str, tmp_path: Path) -> None:
    record = unlabelled(task, RECORDS[task])
    with pytest.raises(ExampleError, match=r"val\.jsonl, line 2: .*(label|answers)"):
        split_with(tmp_path, task, RECORDS[task], record)


@pytest.mark.parametrize("label", [2, True, "1", 1.0])
def test_a_label_of_another_kind_is_named_with_its_line(label: object, tmp_path: Path) -> None:
    with pytest.raises(ExampleError, match=r"val\.jsonl, line 2: `label` must be one of 0, 1"):
        split_with(tmp_path, "parus", RECORDS["parus"], {**RECORDS["parus"], "label": label})


def test_missing_data_is_answered_with_where_it_comes_from(tmp_path: Path) -> None:
    with pytest.raises(ExampleError, match=r"cannot read .*PARus/train\.jsonl: No such file") as of:
        read_split(tmp_path, TASKS["parus"], "train")
    assert "russiansuperglue.com" in str(of.value)
    assert "\n" not in str(of.value)


def test_a_split_without_an_answer_is_refused(tmp_path: Path) -> None:
    record = {"idx": 1, "passage": {"text": "Пусто.", "questions": []}}
    with pytest.raises(ExampleError, match=r"MuSeRC/val\.jsonl holds no labelled records"):
        split_with(tmp_path, "muserc", record)


def test_an_empty_split_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExampleError, match=r"PARus/val\.jsonl holds no labelled records"):
        split_with(tmp_path, "parus")


# The validation metric


def test_danetqa_is_validated_by_the_mean_of_accuracy_and_f1(tmp_path: Path) -> None:
    gold, predicted = [True, True, False, False], [True, False, False, False]
    assert validate(tmp_path, "danetqa", gold, predicted) == pytest.approx((3 / 4 + 2 / 3) / 2)


def test_rcb_is_validated_by_macro_f1_alone(tmp_path: Path) -> None:
    gold = ["neutral", "neutral", "entailment", "contradiction"]
    predicted = ["neutral", "entailment", "entailment", "contradiction"]
    assert validate(tmp_path, "rcb", gold, predicted) == pytest.approx((2 / 3 + 2 / 3 + 1) / 3)


@pytest.mark.parametrize("task", ["russe", "rwsd"])
def test_the_tasks_of_true_and_false_are_validated_by_accuracy(task: str, tmp_path: Path) -> None:
    gold, predicted = [True, True, False, False], [True, False, False, False]
    assert validate(tmp_path, task, gold, predicted) == pytest.approx(3 / 4)


def test_muserc_is_validated_by_the_mean_of_f1a_and_exact_match(tmp_path: Path) -> None:
    records = split_with(tmp_path, "muserc", RECORDS["muserc"])
    scores = scores_of("muserc", [1, 1, 0])
    prediction = {"idx": 7, **predict("muserc", read("muserc"), scores)}
    assert value(TASKS["muserc"], records, [prediction]) == pytest.approx((2 / 3 + 1 / 2) / 2)


def test_rucos_is_validated_by_the_mean_of_f1_and_exact_match(tmp_path: Path) -> None:
    records = split_with(tmp_path, "rucos", RECORDS["rucos"], {**RECORDS["rucos"], "idx": 8})
    predictions = [{"idx": 7, "label": "Иван Петров"}, {"idx": 8, "label": "Твери"}]
    assert value(TASKS["rucos"], records, predictions) == pytest.approx(1 / 2)
