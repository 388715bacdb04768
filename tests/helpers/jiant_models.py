"""Tiny models with random weights, trained on toy data, for the tests of the jiant example."""

import atexit
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from contextlib import redirect_stderr
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

if not (find_spec("torch") and find_spec("transformers")):
    _REASON = (
        "NOT TESTED: NO PYTORCH OR NO TRANSFORMERS. Install them: pip install -e '.[examples]'"
    )
    if os.environ.get("CI"):
        pytest.fail(_REASON, pytrace=False)
    pytest.skip(_REASON, allow_module_level=True)

import torch

import random_model
from batches import make_windows
from forked import Completed as Completed
from forked import preload, run_forked
from network import load, prepare
from predictor import Predictor
from records import Record
from tasks import TASKS, Task
from tokens import Tokens
from toys import write_toys
from training import Plan, train

JIANT = Path(random_model.__file__).parent
DATA = JIANT.with_name("data")
SHAPES = ("bert-tiny", "gpt2-tiny")
"""One of each architecture."""
TRAINED = [name for name, task in TASKS.items() if not task.weights]
"""The tasks that have weights of their own."""

_STEP = re.compile(r"step (\d+) of \d+: loss ([\d.]+), validation ([\d.]+)")
preload(
    "torch.optim.lr_scheduler",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto",
    "transformers.models.bert.modeling_bert",
    "transformers.models.gpt2.modeling_gpt2",
)
torch.set_num_threads(1)  # more are no help to models as small


@dataclass(frozen=True)
class Step:
    """A line of a training log."""

    number: int
    loss: float
    validation: float


@dataclass(frozen=True)
class Trained:
    """A model trained on a task."""

    out_dir: Path
    steps: list[Step]
    """The steps after which it was validated."""
    facts: Mapping[str, Any]
    """The content of training.json."""


@cache
def workplace() -> Path:
    """Return a folder that is removed when the tests end."""
    folder = TemporaryDirectory(prefix="jiant-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


@cache
def toys() -> Path:
    """Return the data folder of the toys."""
    write_toys(workplace() / "toys")
    return workplace() / "toys"


@cache
def pretrained(shape: str) -> Path:
    """Return a model's folder as the hub lays it out, its tokenizer trained on all texts."""
    folder = workplace() / shape
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["random_model.py", shape, str(folder), str(texts())])
        random_model.main()
    return folder


@cache
def texts() -> Path:
    """Return a folder with the texts of the toys and of the repository."""
    for name, folder in (("toys", toys()), ("data", DATA)):
        for title in TASKS.values():
            shutil.copytree(folder / title.title, workplace() / "texts" / f"{name}-{title.title}")
    return workplace() / "texts"


@cache
def tokens_of(shape: str) -> Tokens:
    """Return a model's tokens as training prepares them."""
    return prepare(str(pretrained(shape)), workplace() / f"tokens-of-{shape}")[1]


@cache
def trained(shape: str, task: str) -> Trained:
    """Return a model trained on a toy task; all tasks of a shape share a folder."""
    out_dir = workplace() / f"trained-{shape}"
    return train_toy(TASKS[task], out_dir, model=str(pretrained(shape)), steps=120)


def train_toy(task: Task, out_dir: Path, data_dir: Path | None = None, **plan: Any) -> Trained:
    """Train quietly, with a learning rate for random weights."""
    log = io.StringIO()
    with redirect_stderr(log):
        train(Plan(**{"learning_rate": 1e-3, **plan}), task, out_dir, data_dir or toys())
    steps = [
        Step(int(number), float(loss), float(validation))
        for number, loss, validation in _STEP.findall(log.getvalue())
    ]
    text = (out_dir / task.name / "training.json").read_text(encoding="utf-8")
    return Trained(out_dir, steps, json.loads(text))


def validation_text(task: str, folder: Path | None = None) -> str:
    """Return the validation file of a task, from the toys or another data folder."""
    split = "LiDiRus" if task == "lidirus" else "val"
    path = (folder or toys()) / TASKS[task].title / f"{split}.jsonl"
    return path.read_text(encoding="utf-8")


def validation_records(task: str, folder: Path | None = None) -> list[Record]:
    """Return the validation records of a task."""
    return [json.loads(line) for line in validation_text(task, folder).splitlines()]


def predict(
    out_dir: Path,
    task: str,
    records: Iterable[Record],
    batch_size: int = 8,
    dtype: torch.dtype = torch.float32,
) -> list[Record]:
    """Return the predictions of the weights in a folder."""
    tokens = Tokens.load(out_dir)
    network = load(out_dir, TASKS[task], tokens.settings, dtype)
    predictor = Predictor(network, TASKS[task], torch.device("cpu"))
    windows = make_windows(map(TASKS[task].read, records), tokens, batch_size)
    return [prediction for window in predictor.predict(windows) for prediction in window]


def run(*arguments: object, records: str = "", **environment: str) -> Completed:
    """Run main.py as its users do."""
    return run_forked(
        JIANT / "main.py", *arguments, records=records, env={**os.environ, **environment}
    )
