"""Train the TF-IDF example on one or more tasks."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from model import (
    READERS,
    ExampleError,
    Item,
    Model,
    Record,
    check_task,
    compare,
    read_lines,
    search,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="the folder that holds DaNetQA, RCB and the others")
    parser.add_argument("task", nargs="+", help="the task, in lower case")
    parser.add_argument("model", help="the file to write; {task} in its name stands for the task")
    parser.add_argument("--words", type=int, metavar="N", help="know only the N most frequent")
    args = parser.parse_args()
    if len(args.task) > 1 and "{task}" not in args.model:
        parser.error("several tasks need {task} in the name of the file")
    try:
        for task in args.task:
            model = train(check_task(task), args.data, args.words)
            save(model, Path(args.model.replace("{task}", task)))
    except (ExampleError, OSError) as error:
        sys.exit(f"train.py: {error}")


def save(model: Model, path: Path) -> None:
    """Write a model so that a training that is broken off leaves no half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    joblib.dump(model, draft)
    draft.replace(path)


def train(task: str, data: Path, words: int | None = None) -> Model:
    # LiDiRus has no training data of its own: it takes the classifier of TERRa.
    items, labels = read("terra" if task == "lidirus" else task, data)
    # Five letters are a rough stem: the rest of a Russian word is mostly its ending.
    vectorizer = TfidfVectorizer(token_pattern=r"\b\w{1,5}", sublinear_tf=True, max_features=words)
    vectorizer.fit(text for item in items for text in (*item.left, *item.right))
    if task == "rucos":
        return Model(task, vectorizer)
    if task == "muserc":
        return Model(task, vectorizer, threshold=best_threshold(vectorizer, items, labels))
    classifier = LogisticRegression(C=10, max_iter=1000).fit(compare(vectorizer, items), labels)
    return Model(task, vectorizer, classifier)


def read(task: str, data: Path) -> tuple[list[Item], list[Any]]:
    """Return the items, and the labels of their candidates in one list."""
    folder = next((path for path in data.iterdir() if path.name.lower() == task), data / task)
    with (folder / "train.jsonl").open("rb") as file:
        pairs = list(read_lines(file, lambda x: (READERS[task](x), labels_of(task, x))))
    return [item for item, _ in pairs], [label for _, labels in pairs for label in labels]


def labels_of(task: str, record: Record) -> list[Any]:
    if task == "rucos":
        return []
    if task == "muserc":
        return [a["label"] for q in record["passage"]["questions"] for a in q["answers"]]
    if task == "parus":
        return [record["label"] == 0, record["label"] == 1]
    return [record["label"]]


def best_threshold(words: TfidfVectorizer, items: Sequence[Item], labels: Sequence[int]) -> float:
    scores = np.concatenate(list(search(words, items)))
    return float(max(np.linspace(0, 1, 101), key=lambda x: f1_score(labels, scores >= x)))


if __name__ == "__main__":
    main()
