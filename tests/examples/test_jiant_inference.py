"""The jiant example answers: in order, the same in batches of any size, and never by chance."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from signal import SIGKILL

import psutil
import pytest
import torch
from safetensors.torch import load_file, save_file

import batches
import jiant_models as jiant
from jiant_models import Completed
from network import load
from predictor import choose_device, choose_dtype
from records import ExampleError, Record
from runs import TIMEOUT, until
from tasks import TASKS
from tokens import Tokens
from toys import lines_of
from training import read_split, value

SEALED = """
import runpy, sys

def seal(event, _):
    if event.startswith("socket."):
        raise SystemExit(f"the network was asked for: {event}")

sys.addaudithook(seal)
sys.path.insert(0, sys.argv[1])
sys.argv = [f"{sys.argv[1]}/main.py", *sys.argv[2:]]
runpy.run_path(sys.argv[0], run_name="__main__")
from huggingface_hub.constants import HF_HUB_OFFLINE
sys.stderr.write(f"offline: {HF_HUB_OFFLINE}")
"""
"""Runs main.py where no socket can be made."""

Damage = Callable[[Path], None]


def out_dir_of(shape: str, task: str) -> Path:
    """Return a folder with weights that answer the task."""
    return jiant.trained(shape, TASKS[task].trained_as).out_dir


def mixed_records(task: str) -> list[Record]:
    """Return records of very different lengths: of the toys, and of the repository."""
    return jiant.validation_records(task)[:12] + jiant.validation_records(task, jiant.DATA)[:12]


@pytest.fixture
def parus(tmp_path: Path) -> Path:
    """A folder of a model trained on PARus, to damage."""
    return copy_parus("bert-tiny", tmp_path / "model")


def copy_parus(shape: str, folder: Path) -> Path:
    """Copy what answers PARus, and nothing else."""
    there = out_dir_of(shape, "parus")
    shutil.copytree(there / "parus", folder / "parus")
    for name in ("model.json", "tokenizer.json"):
        shutil.copy(there / name, folder)
    return folder


def load_parus(out_dir: Path) -> None:
    load(out_dir, TASKS["parus"], Tokens.load(out_dir).settings, torch.float32)


def changed(record: Record, **fields: object) -> Record:
    return {**record, **fields}


# The same answers


@pytest.mark.parametrize("shape", jiant.SHAPES)
@pytest.mark.parametrize("task", TASKS)
def test_the_size_of_the_batches_changes_no_label(task: str, shape: str) -> None:
    out_dir, records = out_dir_of(shape, task), mixed_records(task)
    one_by_one = jiant.predict(out_dir, task, records, batch_size=1)
    assert jiant.predict(out_dir, task, records, batch_size=8) == one_by_one
    assert jiant.predict(out_dir, task, records, batch_size=32) == one_by_one


@pytest.mark.parametrize("limit", ["_RECORDS", "_PASSES"])
@pytest.mark.parametrize("task", ["muserc", "russe"])
def test_several_windows_answer_as_one_does(
    task: str, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out_dir, records = out_dir_of("bert-tiny", task), mixed_records(task)
    whole = jiant.predict(out_dir, task, records)
    monkeypatch.setattr(batches, limit, 5)
    tokens = Tokens.load(out_dir)
    assert len(list(batches.make_windows(map(TASKS[task].read, records), tokens, 8))) > 2
    assert jiant.predict(out_dir, task, records) == whole


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", jiant.SHAPES)
@pytest.mark.parametrize("task", TASKS)
def test_half_precision_answers_as_well(task: str, shape: str, dtype: torch.dtype) -> None:
    gold = read_split(jiant.toys(), TASKS[task], "LiDiRus" if task == "lidirus" else "val")
    records = jiant.validation_records(task)
    predictions = jiant.predict(out_dir_of(shape, task), task, records, dtype=dtype)
    assert value(TASKS[task], gold, predictions) >= 0.8


def test_entities_that_the_model_cannot_tell_apart_are_answered_by_the_first_of_them() -> None:
    text = "癵 龘 靐 齉 爩 麤 灪 吁 厵"  # all of them unknown to the tokenizer
    record = {
        "idx": 1,
        "passage": {
            "text": text,
            "entities": [{"start": n, "end": n + 1} for n in range(0, 17, 2)],
        },
        "qas": [{"query": "Вчера @placeholder купил сад", "idx": 0}],
    }
    for batch_size in (1, 2, 8, 32):
        (answer,) = jiant.predict(out_dir_of("bert-tiny", "rucos"), "rucos", [record], batch_size)
        assert answer["label"] == min(text.split())


# Odd input


@pytest.mark.parametrize("task", TASKS)
def test_every_idx_comes_back_as_it_was_and_in_its_place(task: str) -> None:
    first, second, *_ = jiant.validation_records(task)
    idxs = ["первый", 5, "5", 5, 5, None, 0]
    records = [changed(second if n % 2 else first, idx=idx) for n, idx in enumerate(idxs)]
    predictions = jiant.predict(out_dir_of("bert-tiny", task), task, records)
    assert [one["idx"] for one in predictions] == idxs
    labels = [changed(one, idx=0) for one in predictions]
    assert labels[::2] == labels[:1] * 4
    assert labels[1::2] == labels[1:2] * 3


@pytest.mark.parametrize("shape", jiant.SHAPES)
def test_passes_beyond_the_limit_of_the_model_are_cut(shape: str) -> None:
    long = "Старый сосед долго искал новый дом около широкой реки. " * 100
    record = changed(jiant.validation_records("danetqa")[0], passage=long, question=long)
    records = [record, *jiant.validation_records("danetqa")[:3]]
    predictions = jiant.predict(out_dir_of(shape, "danetqa"), "danetqa", records)
    assert predictions[1:] == jiant.predict(out_dir_of(shape, "danetqa"), "danetqa", records[1:])
    assert predictions[0]["label"] in (True, False)


def test_a_record_of_muserc_without_answers_has_its_place() -> None:
    first, second, *_ = jiant.validation_records("muserc")
    empty = {"idx": "пусто", "passage": {"text": "Пусто.", "questions": []}}
    out_dir = out_dir_of("bert-tiny", "muserc")
    predictions = jiant.predict(out_dir, "muserc", [first, empty, second])
    assert predictions[1] == {"idx": "пусто", "passage": {"questions": []}}
    assert predictions[::2] == jiant.predict(out_dir, "muserc", [first, second])
    assert jiant.predict(out_dir, "muserc", [empty]) == predictions[1:2]


# Broken models


def garbage(path: Path) -> None:
    path.write_bytes(b"garbage")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def lacking_a_weight(path: Path) -> None:
    weights = load_file(path)
    weights.popitem()
    save_file(weights, path, metadata={"format": "pt"})


def of_another_shape(path: Path) -> None:
    weights = {name: torch.zeros(3, 3) for name in load_file(path)}
    save_file(weights, path, metadata={"format": "pt"})


@pytest.mark.parametrize("damage", [garbage, empty, truncated, lacking_a_weight, of_another_shape])
@pytest.mark.parametrize("name", ["model.safetensors", "head.safetensors"])
@pytest.mark.parametrize("shape", jiant.SHAPES)
def test_broken_weights_are_never_made_up(
    shape: str, name: str, damage: Damage, tmp_path: Path
) -> None:
    copy_parus(shape, tmp_path)
    damage(tmp_path / "parus" / name)
    with pytest.raises(ExampleError, match=r"the weights in .*parus are broken: .*train them"):
        load_parus(tmp_path)


@pytest.mark.parametrize("damage", [garbage, empty, truncated])
def test_a_broken_configuration_is_told(damage: Damage, parus: Path) -> None:
    damage(parus / "parus" / "config.json")
    with pytest.raises(ExampleError, match=r"the weights in .*parus are broken: "):
        load_parus(parus)


def test_the_weights_of_another_task_are_no_weights_of_this_one(parus: Path) -> None:
    shutil.rmtree(parus / "parus")
    shutil.copytree(out_dir_of("bert-tiny", "rwsd") / "rwsd", parus / "parus")
    with pytest.raises(ExampleError, match="are broken"):
        load_parus(parus)


def test_weights_that_the_model_does_not_have_are_told(parus: Path) -> None:
    config = parus / "parus" / "config.json"
    shallow = {**json.loads(config.read_text()), "num_hidden_layers": 1}
    config.write_text(json.dumps(shallow))
    with pytest.raises(ExampleError, match="16 weights are too many, the first is encoder"):
        load_parus(parus)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "head.safetensors"])
def test_missing_weights_are_answered_with_the_way_to_train_them(name: str, parus: Path) -> None:
    (parus / "parus" / name).unlink()
    with pytest.raises(ExampleError, match=f"{name}; train it with: python main.py train MODEL pa"):
        load_parus(parus)


def test_missing_weights_of_lidirus_are_answered_with_the_way_to_train_terra(parus: Path) -> None:
    with pytest.raises(ExampleError, match=r"python main\.py train MODEL terra"):
        load(parus, TASKS["lidirus"], Tokens.load(parus).settings, torch.float32)


@pytest.mark.parametrize("damage", [garbage, empty, truncated])
@pytest.mark.parametrize("name", ["model.json", "tokenizer.json"])
def test_what_all_tasks_share_can_be_broken_too(name: str, damage: Damage, parus: Path) -> None:
    damage(parus / name)
    with pytest.raises(ExampleError, match=r"the model in .* is broken: ") as told:
        Tokens.load(parus)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("number", [torch.inf, torch.nan])
def test_scores_that_are_not_finite_are_answered_with_dtype(number: float, parus: Path) -> None:
    path = parus / "parus" / "head.safetensors"
    weights = load_file(path)
    weights["classifier.weight"][0, 0] = number
    save_file(weights, path)
    with pytest.raises(ExampleError, match=r"not finite .* --dtype bfloat16 or --dtype float32"):
        jiant.predict(parus, "parus", jiant.validation_records("parus"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gpu", "no device 'gpu'; give auto, cpu, cuda or cuda:1"),
        ("cuda:99", "PyTorch sees no device cuda:99; --device cpu needs none"),
    ],
)
def test_a_device_that_is_not_there_is_told(name: str, message: str) -> None:
    with pytest.raises(ExampleError, match=message):
        choose_device(name)


def test_the_cpu_computes_in_float32_unless_it_is_told_otherwise() -> None:
    assert choose_dtype("auto", torch.device("cpu")) == torch.float32
    assert choose_dtype("bfloat16", torch.device("cpu")) == torch.bfloat16


# Through main.py


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Completed]:
    """What main.py does with PARus, in ways that take seconds each."""
    good = jiant.validation_text("parus")
    there = out_dir_of("bert-tiny", "parus")
    lacking = copy_parus("bert-tiny", tmp_path_factory.mktemp("lacking"))
    shutil.rmtree(lacking / "parus")
    broken = copy_parus("bert-tiny", tmp_path_factory.mktemp("broken"))
    truncated(broken / "parus" / "model.safetensors")
    odd = "\ufeff\n" + good.replace("\n", "\n\n \n")
    wrong = good + '{"idx": 3,\n'
    ask: dict[str, Callable[[], Completed]] = {
        "one by one": lambda: jiant.run("infer", there, "parus", "--batch-size", 1, records=good),
        "between blank lines": lambda: jiant.run("infer", there, "parus", records=odd),
        "without a network": lambda: run_sealed("infer", there, "parus", records=good),
        "nothing": lambda: jiant.run("infer", OUT_DIR=str(there), TASK="parus"),
        "a broken line": lambda: jiant.run("infer", there, "parus", records=wrong),
        "no weights": lambda: jiant.run("infer", lacking, "parus", records=good),
        "broken weights": lambda: jiant.run("infer", broken, "parus", records=good),
        "bfloat16": lambda: jiant.run("infer", there, "parus", "--dtype", "bfloat16", records=good),
    }
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(ask, pool.map(lambda run: run(), ask.values()), strict=True))


def run_sealed(*arguments: object, records: str) -> Completed:
    return subprocess.run(
        [sys.executable, "-c", SEALED, str(jiant.JIANT), *map(str, arguments)],
        input=records,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=TIMEOUT,
        env={**os.environ, "HF_HUB_OFFLINE": "0"},
    )


def popen_infer(out_dir: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, str(jiant.JIANT / "main.py"), "infer", str(out_dir), "parus"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def error_of(done: Completed) -> str:
    """Return the one line of a run that failed."""
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("main.py: ")
    assert done.stderr.count("\n") == 1
    return done.stderr.removeprefix("main.py: ").rstrip("\n")


@pytest.mark.parametrize("how", ["one by one", "between blank lines", "without a network"])
def test_the_answers_are_the_same_however_they_are_asked_for(
    how: str, answered: dict[str, Completed]
) -> None:
    records = jiant.validation_records("parus")
    expected = jiant.predict(out_dir_of("bert-tiny", "parus"), "parus", records)
    assert answered[how].stdout == lines_of(expected)
    assert answered[how].returncode == 0
    told = f"main.py: parus: {len(records)} predictions, on cpu in float32\n"
    assert answered[how].stderr.removesuffix("offline: True") == told


def test_the_hub_is_out_of_reach_even_where_the_environment_allows_it(
    answered: dict[str, Completed],
) -> None:
    assert answered["without a network"].stderr.endswith("offline: True")


def test_an_empty_input_has_no_predictions_and_the_environment_may_name_the_model(
    answered: dict[str, Completed],
) -> None:
    done = answered["nothing"]
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "main.py: parus: 0 predictions, on cpu in float32\n"


def test_dtype_is_the_precision_of_the_answers(answered: dict[str, Completed]) -> None:
    done = answered["bfloat16"]
    assert done.stderr.endswith("predictions, on cpu in bfloat16\n")
    assert [json.loads(line)["idx"] for line in done.stdout.splitlines()] == list(range(24))


def test_a_broken_line_ends_the_run_with_its_number(answered: dict[str, Completed]) -> None:
    assert error_of(answered["a broken line"]).startswith("stdin, line 25: not JSON (")


def test_missing_weights_end_the_run_with_one_line(answered: dict[str, Completed]) -> None:
    assert "train it with: python main.py train MODEL parus" in error_of(answered["no weights"])


def test_broken_weights_end_the_run_with_one_line(answered: dict[str, Completed]) -> None:
    assert "parus are broken: " in error_of(answered["broken weights"])


def test_an_unknown_task_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    error = error_of(jiant.run("infer", tmp_path, "squad"))
    assert error.startswith("there is no task 'squad'; the nine are danetqa, lidirus, muserc")


def test_a_folder_without_a_model_is_answered_with_the_way_to_train_one(tmp_path: Path) -> None:
    error = error_of(jiant.run("infer", tmp_path, "parus"))
    assert "there is no" in error
    assert "python main.py train MODEL TASK" in error


def test_a_reader_that_ends_is_killed_with_one_line_and_no_wrong_answers() -> None:
    process = popen_infer(out_dir_of("bert-tiny", "parus"))
    assert process.stdin
    with process:
        (feeder,) = until(psutil.Process(process.pid).children)
        process.stdin.write(jiant.validation_text("parus").encode())
        process.stdin.flush()
        feeder.send_signal(SIGKILL)
        out, error = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, out) == (1, b"")
    assert error == b"main.py: the process that reads the input was killed by signal 9\n"


def test_who_closes_the_predictions_early_hears_nothing_more() -> None:
    process = popen_infer(out_dir_of("bert-tiny", "parus"))
    assert process.stdout
    with process:
        process.stdout.close()
        process.stdout = None
        _, error = process.communicate(jiant.validation_text("parus").encode(), TIMEOUT)
    assert (process.returncode, error) == (1, b"")
