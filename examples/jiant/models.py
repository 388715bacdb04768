"""The models, one row each; what an architecture needs; where a trained model keeps its files.

OUT_DIR/model.json                what all tasks share
OUT_DIR/tokenizer.json
OUT_DIR/<task>/config.json        the encoder, as Transformers keeps it
OUT_DIR/<task>/model.safetensors
OUT_DIR/<task>/head.safetensors
OUT_DIR/<task>/training.json      how it was trained, and how well it validated
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from records import ExampleError
from tasks import Task

Pooling = Literal["first", "max"]
"""How the states of all tokens become one: the state of the first token, or the maximum."""

MAX_LENGTH = 256
"""Tokens per pass, including the boundary tokens."""


@dataclass(frozen=True)
class Family:
    """The input that models of one architecture expect."""

    start: str
    """The token before the first text."""
    between: str
    """The token between two texts."""
    end: str
    """The token after the last text."""
    segments: bool
    """Whether the model is given the text that each token belongs to."""
    causal: bool
    """Whether a token sees only earlier ones, so that padding after it is never seen."""


@dataclass(frozen=True)
class Model:
    """A pretrained model, and how this example uses it."""

    hub: str
    """Its name on the Hugging Face hub."""
    pooling: Pooling = "max"
    """Stored in the checkpoint, so that training and inference use the same."""


FAMILIES = {  # by the `model_type` of the pretrained model's configuration
    "bert": Family("[CLS]", "[SEP]", "[SEP]", segments=True, causal=False),
    "gpt2": Family("<|start|>", "<|delimiter|>", "<|end|>", segments=False, causal=True),
}

MODELS = {
    "rubert": Model("DeepPavlov/rubert-base-cased"),
    "rubert-conversational": Model("DeepPavlov/rubert-base-cased-conversational"),
    "bert-multilingual": Model("bert-base-multilingual-cased", pooling="first"),
    "rugpt3-small": Model("ai-forever/rugpt3small_based_on_gpt2"),
    "rugpt3-medium": Model("ai-forever/rugpt3medium_based_on_gpt2"),
    "rugpt3-large": Model("ai-forever/rugpt3large_based_on_gpt2"),
}


SETTINGS, TOKENIZER = "model.json", "tokenizer.json"
CONFIG, ENCODER, HEAD = "config.json", "model.safetensors", "head.safetensors"
TRAINING = "training.json"


def model_files(out_dir: Path) -> list[Path]:
    """Return the files that all tasks of a model share; ExampleError if one is missing."""
    return [_need(out_dir / name, "MODEL TASK", out_dir) for name in (SETTINGS, TOKENIZER)]


def weight_files(out_dir: Path, task: Task) -> list[Path]:
    """Return the weight files for a task; ExampleError if one is missing."""
    folder = out_dir / task.trained_as
    names = (CONFIG, ENCODER, HEAD)
    return [_need(folder / name, f"MODEL {task.trained_as}", out_dir) for name in names]


def _need(path: Path, what: str, out_dir: Path) -> Path:
    if not path.is_file():
        train = f"python main.py train {what} {out_dir} DATA_DIR"
        raise ExampleError(f"there is no {path}; train it with: {train}")
    return path
