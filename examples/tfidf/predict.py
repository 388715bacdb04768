"""Predict the validation records of every model in a folder, to be scored."""

import argparse
import sys
from pathlib import Path

from infer import answer, load
from model import ExampleError, check_task


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="the folder that holds DaNetQA, RCB and the others")
    parser.add_argument("models", type=Path, help="the folder of the models, as TASK.joblib")
    parser.add_argument("output", type=Path, help="the folder to write, as TASK.jsonl")
    args = parser.parse_args()
    try:
        args.output.mkdir(parents=True, exist_ok=True)
        for model in sorted(args.models.glob("*.joblib")):
            predict_records(args.data, model, args.output / f"{model.stem}.jsonl")
    except (ExampleError, OSError) as error:
        sys.exit(f"predict.py: {error}")


def predict_records(data: Path, model: Path, output: Path) -> None:
    loaded = load(check_task(model.stem), model)
    with find_records(data, loaded.task).open("rb") as records, output.open("wb") as predictions:
        answer(loaded, 128, records, predictions)


def find_records(data: Path, task: str) -> Path:
    """Return the file of the validation records; LiDiRus has one file of its own name."""
    folder = next((path for path in data.iterdir() if path.name.lower() == task), data / task)
    return folder / (f"{folder.name}.jsonl" if task == "lidirus" else "val.jsonl")


if __name__ == "__main__":
    main()
