"""Predict one task: records on stdin, predictions on stdout, one JSON object a line."""

import argparse
import json
import os
import sys
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import joblib

from model import READERS, ExampleError, Model, check_task, predict, read_lines

MODELS = Path(__file__).with_name("models")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", nargs="?", default=os.environ.get("TASK"), help="default: $TASK")
    parser.add_argument("--batch-size", type=int, default=128, metavar="N", help="default: 128")
    parser.add_argument("--model", type=Path, help="default: models/TASK.joblib beside infer.py")
    args = parser.parse_args()
    if args.batch_size < 1:
        parser.error("--batch-size must be at least 1")
    try:
        task = check_task(args.task)
        model = load(task, args.model or MODELS / f"{task}.joblib")
        count = answer(model, args.batch_size, sys.stdin.buffer, sys.stdout.buffer)
    except ExampleError as error:
        sys.exit(f"infer.py: {error}")
    sys.stderr.write(f"infer.py: {task}: {count} predictions\n")


def load(task: str, path: Path) -> Model:
    try:
        model: Model = joblib.load(path)
    except FileNotFoundError as error:
        advice = f"train it with: python train.py DATA_DIR {task} {path}"
        raise ExampleError(f"no model at {path}; {advice}") from error
    if model.task != task:
        raise ExampleError(f"{path} holds a model of {model.task}, not of {task}")
    return model


def answer(model: Model, batch_size: int, records: BinaryIO, predictions: BinaryIO) -> int:
    """Write the predictions batch by batch; return how many there were."""
    count = 0
    items = read_lines(records, READERS[model.task])
    while batch := list(islice(items, batch_size)):
        for prediction in predict(model, batch):
            line = json.dumps(prediction, ensure_ascii=False) + "\n"
            predictions.write(line.encode())
        predictions.flush()
        count += len(batch)
    return count


if __name__ == "__main__":
    main()
