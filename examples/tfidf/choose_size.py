"""Print how many records keep a model busy for some seconds on this machine."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path

import joblib

from model import READERS, ExampleError, Model, check_task, predict, read_lines

_TRIAL = 1.5
"""Seconds of CPU time to try, which other programs on the machine do not shorten."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="a file of records, one JSON object a line")
    parser.add_argument("task", help="the task, in lower case")
    parser.add_argument("model", type=Path, help="the file that train.py has written")
    parser.add_argument("--seconds", type=float, default=6.0, metavar="N", help="default: 6")
    parser.add_argument("--batch-size", type=int, default=128, metavar="N", help="default: 128")
    args = parser.parse_args()
    try:
        model: Model = joblib.load(args.model)
        lines = args.data.read_bytes().splitlines()
        speed = measure(check_task(args.task), model, lines, args.batch_size)
    except (ExampleError, OSError) as error:
        sys.exit(f"choose_size.py: {error}")
    print(max(1, round(speed * args.seconds / 1000)) * 1000)  # noqa: T201


def measure(task: str, model: Model, lines: Sequence[bytes], batch_size: int) -> float:
    """Return how many records a second of CPU time infer.py reads, predicts and writes."""
    items = read_lines(cycle(lines), READERS[task])
    start, count = time.process_time(), 0
    while (passed := time.process_time() - start) < _TRIAL:
        for prediction in predict(model, list(islice(items, batch_size))):
            json.dumps(prediction, ensure_ascii=False).encode()
            count += 1
    return count / passed


if __name__ == "__main__":
    main()
