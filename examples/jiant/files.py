"""Where a trained model keeps its files.

OUT_DIR/model.json                what all tasks share
OUT_DIR/tokenizer.json
OUT_DIR/<task>/config.json        the encoder, as Transformers keeps it
OUT_DIR/<task>/model.safetensors
OUT_DIR/<task>/head.safetensors
OUT_DIR/<task>/training.json      how it was trained, and how well that went
"""

from pathlib import Path

from errors import ExampleError
from tasks import Task

SETTINGS, TOKENIZER = "model.json", "tokenizer.json"
CONFIG, ENCODER, HEAD = "config.json", "model.safetensors", "head.safetensors"
TRAINING = "training.json"


def model_files(out_dir: Path) -> list[Path]:
    """Return what all tasks of a model share; ExampleError where it is not there."""
    return [_need(out_dir / name, "MODEL TASK", out_dir) for name in (SETTINGS, TOKENIZER)]


def weight_files(out_dir: Path, task: Task) -> list[Path]:
    """Return the weights that answer a task; ExampleError where one is missing."""
    folder = out_dir / task.trained_as
    names = (CONFIG, ENCODER, HEAD)
    return [_need(folder / name, f"MODEL {task.trained_as}", out_dir) for name in names]


def _need(path: Path, what: str, out_dir: Path) -> Path:
    if not path.is_file():
        train = f"python main.py train {what} {out_dir} DATA_DIR"
        raise ExampleError(f"there is no {path}; train it with: {train}")
    return path
