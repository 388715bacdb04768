"""The jiant example learns: toys whose rules are known, by tiny models with random weights."""

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import jiant_models as jiant
import training
from batches import make_windows
from jiant_models import Completed, Trained
from models import MODELS, Model
from network import load, load_pretrained
from predictor import to_device
from records import ExampleError
from tasks import TASKS, Task
from tokens import Tokens
from toys import write_records
from training import read_split, value

GOOD = 0.95
"""A validation metric that is not reached by guessing; the rules of the toys allow 1."""
FILES = ["config.json", "head.safetensors", "model.safetensors", "training.json"]
SERVED = {
    "lidirus": "gpt2-tiny",
    "muserc": "gpt2-tiny",
    "parus": "bert-tiny",
    "rcb": "gpt2-tiny",
    "rucos": "bert-tiny",
    "russe": "gpt2-tiny",
    "rwsd": "bert-tiny",
}
"""What is asked through main.py, and whom."""


def weights_of(model: Trained) -> dict[str, bytes]:
    """Return the files of weights of a model that has learnt PARus."""
    folder = model.out_dir / "parus"
    return {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}


def few_steps(task: str, out_dir: Path, **plan: Any) -> Trained:
    """Train for as many steps as it takes to have been trained."""
    model = str(jiant.pretrained("bert-tiny"))
    return jiant.train_toy(TASKS[task], out_dir, **{"model": model, "steps": 4, **plan})


def changed_copy(
    folder: Path, change: Callable[[torch.Tensor], torch.Tensor], **settings: object
) -> Path:
    """Copy a pretrained model, with other weights and other settings."""
    shutil.copytree(jiant.pretrained("bert-tiny"), folder)
    weights, config = folder / "model.safetensors", folder / "config.json"
    changed = {name: change(weight) for name, weight in load_file(weights).items()}
    save_file(changed, weights, metadata={"format": "pt"})
    config.write_text(json.dumps({**json.loads(config.read_text()), **settings}))
    return folder


def validate(out_dir: Path, task: str, records: int | None = None) -> float:
    """Return the validation metric of the weights in a folder."""
    split = "LiDiRus" if task == "lidirus" else "val"
    gold = read_split(jiant.toys(), TASKS[task], split)[:records]
    predictions = jiant.predict(out_dir, task, jiant.validation_records(task)[:records])
    return value(TASKS[task], gold, predictions)


# Learning


@pytest.mark.parametrize("shape", jiant.SHAPES)
@pytest.mark.parametrize("task", jiant.TRAINED)
def test_a_tiny_model_learns_the_toy_of_a_task(task: str, shape: str) -> None:
    steps = jiant.trained(shape, task).steps
    assert steps[-1].loss < steps[0].loss
    assert max(step.validation for step in steps) >= GOOD


@pytest.mark.parametrize("shape", jiant.SHAPES)
@pytest.mark.parametrize("task", jiant.TRAINED)
def test_the_weights_that_validated_best_are_kept(task: str, shape: str) -> None:
    model = jiant.trained(shape, task)
    best = max(model.steps, key=lambda step: step.validation)  # of equal ones the first
    assert model.facts["step"] == best.number
    assert model.facts["validation"] == pytest.approx(best.validation, abs=1e-4)
    assert validate(model.out_dir, task) == pytest.approx(model.facts["validation"])
    assert sorted(path.name for path in (model.out_dir / task).iterdir()) == FILES


@pytest.mark.parametrize("shape", jiant.SHAPES)
def test_lidirus_is_answered_by_the_weights_of_terra(shape: str) -> None:
    out_dir = jiant.trained(shape, "terra").out_dir
    assert validate(out_dir, "lidirus") >= 0.8
    assert not (out_dir / "lidirus").exists()


@pytest.mark.parametrize("task", ["russe", "rwsd"])
def test_who_does_not_look_at_the_marked_words_learns_nothing_of_the_toy(
    task: str, tmp_path: Path
) -> None:
    blind = replace(TASKS[task], look="whole")
    model = jiant.train_toy(blind, tmp_path, model=str(jiant.pretrained("bert-tiny")), steps=100)
    assert max(step.validation for step in model.steps) <= 0.75


def test_the_best_weights_are_kept_even_if_worse_ones_follow(tmp_path: Path) -> None:
    random = Random(0)
    for split in ("train", "val"):
        records = jiant.validation_records("parus")
        shuffled = [{**record, "label": random.randrange(2)} for record in records]
        write_records(tmp_path / "data" / "PARus" / f"{split}.jsonl", shuffled)
    model = few_steps("parus", tmp_path / "out", data_dir=tmp_path / "data", steps=15)
    predictions = jiant.predict(tmp_path / "out", "parus", jiant.validation_records("parus"))
    gold = read_split(tmp_path / "data", TASKS["parus"], "val")
    reached = value(TASKS["parus"], gold, predictions)
    assert len(model.steps) == 15
    assert reached == pytest.approx(max(step.validation for step in model.steps), abs=1e-4)


def test_the_same_seed_makes_the_same_weights(tmp_path: Path) -> None:
    first, again, other = (
        weights_of(few_steps("parus", tmp_path / name, seed=seed))
        for name, seed in (("first", 1), ("again", 1), ("other", 2))
    )
    assert len(first) == 2
    assert first == again
    assert all(first[name] != other[name] for name in first)


def test_every_weight_is_trained(tmp_path: Path) -> None:
    few_steps("parus", tmp_path)
    before = load_pretrained(str(jiant.pretrained("bert-tiny"))).state_dict()
    after = load_file(tmp_path / "parus" / "model.safetensors")
    assert before.keys() == after.keys()
    assert [name for name in before if torch.equal(before[name], after[name])] == []


def test_a_model_published_in_half_precision_is_trained_in_full(tmp_path: Path) -> None:
    folder = changed_copy(tmp_path / "half", lambda weight: weight.half(), dtype="float16")
    model = few_steps("parus", tmp_path / "out", model=str(folder))
    weights = load_file(model.out_dir / "parus" / "model.safetensors")
    assert {weight.dtype for weight in weights.values()} == {torch.float32}


def test_a_loss_that_is_not_finite_ends_the_training(tmp_path: Path) -> None:
    with pytest.raises(ExampleError, match=r"not finite; give a lower --learning-rate"):
        few_steps("parus", tmp_path, steps=20, learning_rate=1e30)
    assert not (tmp_path / "parus").exists()


# The schedule


def rates_of(task: str, out_dir: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[float], bool]:
    """Return the learning rate of every step, and whether they were steps of AMSGrad."""
    rates: list[float] = []
    amsgrad: list[bool] = []

    class Recorder(torch.optim.AdamW):
        def step(self, *_: Any) -> None:  # type: ignore[override]
            rates.append(self.param_groups[0]["lr"])
            amsgrad.append(self.param_groups[0]["amsgrad"])
            super().step()

    monkeypatch.setattr(training, "AdamW", Recorder)
    few_steps(task, out_dir, steps=20, learning_rate=1e-3)
    return rates, all(amsgrad)


def test_the_learning_rate_rises_for_a_tenth_of_the_steps_then_falls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates, amsgrad = rates_of("terra", tmp_path, monkeypatch)
    assert rates[:3] == pytest.approx([1e-3 / 3, 2e-3 / 3, 1e-3])
    falls = [before - after for before, after in pairwise(rates[2:])]
    assert falls == pytest.approx([1e-3 / 18] * 17)
    assert rates[-1] == pytest.approx(1e-3 / 18)
    assert not amsgrad


def test_rwsd_begins_with_the_whole_learning_rate_and_learns_with_amsgrad(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates, amsgrad = rates_of("rwsd", tmp_path, monkeypatch)
    assert rates == pytest.approx([1e-3 * left / 20 for left in range(20, 0, -1)])
    assert amsgrad


@pytest.mark.parametrize(("steps", "validated"), [(30, range(3, 31, 3)), (4, range(1, 5))])
def test_fewer_steps_are_validated_as_often(steps: int, validated: range, tmp_path: Path) -> None:
    model = few_steps("parus", tmp_path, steps=steps)
    assert [step.number for step in model.steps] == list(validated)


def test_twenty_validations_without_a_better_one_end_the_training(tmp_path: Path) -> None:
    schedule = replace(TASKS["parus"].schedule, every=1, steps=100)
    task = replace(TASKS["parus"], schedule=schedule)
    model = str(jiant.pretrained("bert-tiny"))
    still = jiant.train_toy(task, tmp_path, model=model, learning_rate=0.0)
    assert [step.number for step in still.steps] == list(range(1, 22))
    assert still.facts["step"] == 1


def test_no_more_records_are_validated_than_the_schedule_says(tmp_path: Path) -> None:
    task = replace(TASKS["parus"], schedule=replace(TASKS["parus"].schedule, validated=3))
    model = jiant.train_toy(task, tmp_path, model=str(jiant.pretrained("bert-tiny")), steps=2)
    assert validate(tmp_path, "parus", 3) == pytest.approx(model.facts["validation"])


# What is kept, and what is refused


def test_training_json_tells_how_the_weights_came_about(tmp_path: Path) -> None:
    facts = few_steps("parus", tmp_path, seed=3).facts
    assert facts["task"] == "parus"
    assert facts["model"] == str(jiant.pretrained("bert-tiny"))
    assert (facts["seed"], facts["steps"], facts["learning_rate"]) == (3, 4, 1e-3)


def test_what_is_trained_is_trained_again_only_by_force(tmp_path: Path) -> None:
    before = weights_of(few_steps("parus", tmp_path, seed=1))
    left_alone = few_steps("parus", tmp_path, seed=2)
    assert (left_alone.steps, weights_of(left_alone)) == ([], before)
    again = few_steps("parus", tmp_path, seed=2, force=True)
    assert weights_of(again) != before
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["parus"]


def test_a_folder_that_cannot_be_written_is_told_before_a_step_is_taken(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        few_steps("parus", tmp_path / "file" / "out")


def test_a_folder_takes_no_second_model(tmp_path: Path) -> None:
    few_steps("parus", tmp_path)
    settings = (tmp_path / "model.json").read_bytes()
    with pytest.raises(ExampleError, match=r"holds .*bert-tiny; give .*gpt2-tiny a folder of its"):
        few_steps("terra", tmp_path, model=str(jiant.pretrained("gpt2-tiny")))
    assert (tmp_path / "model.json").read_bytes() == settings
    assert not (tmp_path / "terra").exists()


def test_lidirus_has_nothing_to_train_on(tmp_path: Path) -> None:
    with pytest.raises(ExampleError, match="nothing to train on: train terra, whose weights"):
        few_steps("lidirus", tmp_path)


def test_missing_data_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(ExampleError, match=r"cannot read .*train\.jsonl"):
        few_steps("parus", tmp_path / "out", data_dir=tmp_path)
    assert not (tmp_path / "out").exists()


def test_an_unknown_model_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ExampleError, match="no model 'rubbert'; give rubert, rubert-conversat"):
        few_steps("parus", tmp_path / "out", model="rubbert")


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExampleError, match="cannot load the pretrained model") as told:
        few_steps("parus", tmp_path / "out", model=str(tmp_path))
    assert "\n" not in str(told.value)


def test_a_model_of_another_architecture_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "t5"}')
    with pytest.raises(ExampleError, match="architecture is t5, not bert or gpt2"):
        few_steps("parus", tmp_path / "out", model=str(tmp_path))


@pytest.mark.parametrize("shape", jiant.SHAPES)
def test_a_model_without_a_tokenizer_is_refused(shape: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(jiant.pretrained(shape), folder, ignore=shutil.ignore_patterns("tokenizer*"))
    with pytest.raises(ExampleError, match=r"cannot load the tokenizer of .*no vocabulary"):
        few_steps("parus", tmp_path / "out", model=str(folder))
    assert not (tmp_path / "out").exists()


def test_a_pretrained_model_that_lacks_a_weight_is_refused(tmp_path: Path) -> None:
    folder = changed_copy(tmp_path / "deeper", lambda weight: weight, num_hidden_layers=3)
    with pytest.raises(ExampleError, match=r"weights are missing, the first is encoder\.layer\.2"):
        few_steps("parus", tmp_path / "out", model=str(folder))


def test_a_model_that_reads_less_at_once_sets_the_limit(tmp_path: Path) -> None:
    def shorten(weight: torch.Tensor) -> torch.Tensor:
        return weight[:48].clone() if len(weight) == 512 else weight

    folder = changed_copy(tmp_path / "short", shorten, max_position_embeddings=48)
    few_steps("parus", tmp_path / "out", model=str(folder))
    assert Tokens.load(tmp_path / "out").settings.max_length == 48


# One pooling for each model


def scores_of(out_dir: Path, task: Task) -> torch.Tensor:
    """Return what the head says of the first records of validation."""
    tokens = Tokens.load(out_dir)
    network = load(out_dir, task, tokens.settings, torch.float32)
    examples = map(task.read, jiant.validation_records(task.name))
    (window,) = make_windows(examples, tokens, batch_size=8)
    with torch.inference_mode():
        return network(to_device(window.batches[0], torch.device("cpu")))  # type: ignore[no-any-return]


def test_the_pooling_of_a_model_is_stored_and_used_in_training_and_inference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MODELS, "tiny", Model(str(jiant.pretrained("bert-tiny")), pooling="first"))
    model = few_steps("rcb", tmp_path, model="tiny", steps=40)
    settings = json.loads((tmp_path / "model.json").read_text())
    assert settings["pooling"] == "first"
    assert settings["model"] == "tiny"
    assert validate(tmp_path, "rcb") == pytest.approx(model.facts["validation"])
    first = scores_of(tmp_path, TASKS["rcb"])
    (tmp_path / "model.json").write_text(json.dumps({**settings, "pooling": "max"}))
    assert not torch.allclose(first, scores_of(tmp_path, TASKS["rcb"]))


def test_only_bert_multilingual_is_pooled_by_its_first_token() -> None:
    assert {name: model.pooling for name, model in MODELS.items() if model.pooling != "max"} == {
        "bert-multilingual": "first"
    }


# Through main.py


@dataclass(frozen=True)
class Served:
    """A model, and how main.py fared with it."""

    model: Trained
    answered: Completed
    scored: Completed


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Served]:
    """What main.py does with models that were trained too little to make no mistakes."""
    folder = tmp_path_factory.mktemp("served")
    models = {
        task: few_steps(
            TASKS[task].trained_as, folder / shape, model=str(jiant.pretrained(shape)), steps=3
        )
        for task, shape in SERVED.items()
    }

    def serve(task: str) -> Served:
        records = jiant.validation_text(task)
        answered = jiant.run("infer", models[task].out_dir, task, records=records)
        predictions = folder / f"{task}.jsonl"
        predictions.write_text(answered.stdout, encoding="utf-8")
        return Served(models[task], answered, jiant.run("eval", task, predictions, jiant.toys()))

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(SERVED, pool.map(serve, SERVED), strict=True))


@pytest.mark.parametrize("task", SERVED)
def test_main_py_answers_every_record(task: str, served: dict[str, Served]) -> None:
    answered = served[task].answered
    records = jiant.validation_records(task)
    told = f"main.py: {task}: {len(records)} predictions, on cpu in float32\n"
    assert (answered.returncode, answered.stderr) == (0, told)
    predictions = [json.loads(line) for line in answered.stdout.splitlines()]
    assert predictions == jiant.predict(served[task].model.out_dir, task, records)
    assert [one["idx"] for one in predictions] == [record["idx"] for record in records]


@pytest.mark.parametrize("task", SERVED)
def test_morocco_scores_the_answers_as_validation_did(task: str, served: dict[str, Served]) -> None:
    model, scored = served[task].model, served[task].scored
    assert (scored.returncode, scored.stderr) == (0, "")
    score = json.loads(scored.stdout)
    reached = validate(model.out_dir, "lidirus") if task == "lidirus" else model.facts["validation"]
    assert score["f1" if task == "rcb" else "value"] == pytest.approx(reached)


def test_the_way_that_the_readme_shows(tmp_path: Path) -> None:
    model, predictions = jiant.pretrained("bert-tiny"), tmp_path / "terra.jsonl"
    options = ("--steps", 100, "--learning-rate", 1e-3)
    done = jiant.run("train", model, "terra", tmp_path / "tiny", jiant.DATA, *options)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines()[0].startswith("main.py: step 10 of 100: loss ")
    assert done.stderr.splitlines()[-1].startswith(f"main.py: {tmp_path}/tiny/terra holds the weig")
    text = jiant.validation_text("terra", jiant.DATA)
    predictions.write_text(jiant.run("infer", tmp_path / "tiny", "terra", records=text).stdout)
    score = json.loads(jiant.run("eval", "terra", predictions, jiant.DATA).stdout)
    facts = json.loads((tmp_path / "tiny" / "terra" / "training.json").read_text())
    assert score["accuracy"] == pytest.approx(facts["validation"])
