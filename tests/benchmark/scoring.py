"""How long it takes to score the largest of the nine tasks."""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from figures import Figure
from program import morocco

RECORDS = 7257
"""Records in the test split of RuCoS."""
_WORDS = 220
"""Words in a passage: about 1600 letters, 3 KB."""
_ENTITIES = 15
_REPEATS = 5
_TARGET = 3.0


def measure_scoring(folder: Path) -> Iterator[Figure]:
    """Yield the time of the whole program, from start to exit, for a made-up RuCoS."""
    gold, predictions = write_rucos(folder)
    times = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        score = json.loads(morocco("score", "rucos", str(predictions), str(gold)))
        times.append(time.perf_counter() - start)
    assert score["labels"] == RECORDS
    seconds = statistics.median(times)
    size = gold.stat().st_size / 1e6
    yield Figure(
        f"score of {RECORDS} records of RuCoS ({size:.0f} MB)",
        *("-", f"under {_TARGET:g} s", f"{seconds:.2f} s", seconds < _TARGET),
    )


def write_rucos(folder: Path) -> tuple[Path, Path]:
    """Write made-up gold and predictions, half of them right, in another order."""
    chance = random.Random(1)
    records = [_make_record(idx, chance) for idx in range(RECORDS)]
    predictions = [{"idx": record["idx"], "label": _answer(record, chance)} for record in records]
    chance.shuffle(predictions)
    paths = folder / "gold.jsonl", folder / "predictions.jsonl"
    for path, lines in zip(paths, (records, predictions), strict=True):
        texts = (json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        path.write_text("".join(texts), encoding="utf-8")
    return paths


def _make_record(idx: int, chance: random.Random) -> dict[str, object]:
    words = [
        "".join(chance.choices("абвгдежзиклмнопрстуя", k=7)).capitalize() for _ in range(_WORDS)
    ]
    entities, start = [], 0
    for word in words[:_ENTITIES]:
        entities.append({"start": start, "end": start + len(word)})
        start += len(word) + 1
    answers = [
        {**entity, "text": word} for entity, word in zip(entities[:2], words[:2], strict=True)
    ]
    query = "Жители города @placeholder узнали об этом в понедельник"
    return {
        "idx": idx,
        "passage": {"text": " ".join(words), "entities": entities},
        "qas": [{"idx": idx, "query": query, "answers": answers}],
    }


def _answer(record: dict[str, object], chance: random.Random) -> str:
    """Return the first entity, which is right, or the last, which is not."""
    passage = record["passage"]
    assert isinstance(passage, dict)
    return str(passage["text"].split()[0 if chance.random() < 0.5 else _ENTITIES - 1])
