"""Made-up data for the nine tasks, by rules that a tiny model with random weights can learn.

A label depends on a word in the right place. In RUSSE and RWSD each text comes with
every marking, and only the marked words decide the label: a model that ignores them learns nothing.
"""

import json
from collections.abc import Callable, Iterator
from itertools import islice, product
from pathlib import Path
from random import Random
from typing import Any

Record = dict[str, Any]
Rule = Callable[[Random], Iterator[Record]]
"""Yields endless records without `idx`."""

_SIZES = {"train": 96, "val": 24}
_TEXT = (
    "вчера утром старый сосед долго искал новый дом около широкой реки а весной его большая семья "
    "снова решила купить красивый сад рядом с городским парком и теперь все друзья очень рады"
)
_FILLERS = _TEXT.split()


def write_toys(folder: Path) -> None:
    """Write the splits of all tasks, laid out like the archive of the leaderboard."""
    for title, rule in _RULES.items():
        for split, size in _SIZES.items():
            records = rule(Random(f"{title} {split}"))
            name = "LiDiRus" if title == "LiDiRus" else split
            write_records(
                folder / title / f"{name}.jsonl",
                [{**record, "idx": idx} for idx, record in enumerate(islice(records, size))],
            )


def write_records(path: Path, records: list[Record]) -> None:
    """Write records, one per line; make the folder if necessary."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(lines_of(records), encoding="utf-8")


def lines_of(records: list[Record]) -> str:
    """Return records as JSON Lines."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def _words(random: Random, *words: str, fillers: int = 5) -> list[str]:
    """Return these words among others, in random order."""
    mixed = [*random.sample(_FILLERS, random.randint(2, fillers)), *words]
    random.shuffle(mixed)
    return mixed


def _text(random: Random, *words: str, fillers: int = 5) -> str:
    return " ".join(_words(random, *words, fillers=fillers))


def _danetqa(random: Random) -> Iterator[Record]:
    """A word in the passage decides the label."""
    while True:
        for label, word in ((True, "точно"), (False, "вряд")):
            passage = _text(random, word, fillers=15)
            yield {"question": f"{_text(random)}?", "passage": passage, "label": label}


def _rcb(random: Random) -> Iterator[Record]:
    """The premise has a word for each label."""
    words = {"entailment": "знает", "contradiction": "отрицает", "neutral": "думает"}
    while True:
        for label, word in words.items():
            yield {
                "premise": _text(random, word),
                "hypothesis": _text(random),
                "verb": word,
                "negation": "no_negation",
                "genre": "toy",
                "label": label,
            }


def _parus(random: Random) -> Iterator[Record]:
    """The right choice has the word, and the wrong one another."""
    while True:
        label = random.randrange(2)
        choices = [_text(random, "дождь" if n == label else "снег") for n in (0, 1)]
        yield {
            "premise": _text(random),
            "choice1": choices[0],
            "choice2": choices[1],
            "question": random.choice(["cause", "effect"]),
            "label": label,
        }


def _entailment(first: str, second: str) -> Rule:
    """Both texts have one of two words; the one in the second text decides the label."""

    def rule(random: Random) -> Iterator[Record]:
        words = ["тепло", "холодно"]
        while True:
            for label, pair in (("not_entailment", words), ("entailment", words[::-1])):
                texts = [_text(random, word, fillers=3) for word in pair]
                yield {first: texts[0], second: texts[1], "label": label}

    return rule


def _russe(random: Random) -> Iterator[Record]:
    """True where the marked words of both sentences are of the same kind, a live one."""
    while True:
        words = [_words(random, "кошка", "мост") for _ in range(2)]
        texts = [f"{' '.join(sentence)}." for sentence in words]
        for marked in product(("кошка", "мост"), repeat=2):
            starts = [text.index(word) for text, word in zip(texts, marked, strict=True)]
            yield {
                "word": marked[0],
                "sentence1": texts[0],
                "sentence2": texts[1],
                "start1": starts[0],
                "end1": starts[0] + len(marked[0]) + 1,  # overshoots, as some of the data does
                "start2": starts[1],
                "end2": starts[1] + len(marked[1]),
                "label": marked == ("кошка", "кошка"),
            }


def _rwsd(random: Random) -> Iterator[Record]:
    """True where both of the marked words are live."""
    while True:
        words = _words(random, "волк", "заяц", "камень", "стул")
        for pair in product(("волк", "камень"), ("заяц", "стул")):
            target: Record = {}
            for n, word in enumerate(pair, start=1):
                target |= {f"span{n}_text": word, f"span{n}_index": words.index(word)}
            label = pair == ("волк", "заяц")
            yield {"text": " ".join(words), "target": target, "label": label}


def _muserc(random: Random) -> Iterator[Record]:
    """An answer is right where it has the word."""
    while True:
        questions = []
        for number in range(2):
            labels = [random.randrange(2) for _ in range(random.randint(1, 3))]
            answers = [
                {"idx": idx, "text": _text(random, "верно" if label else "ложно"), "label": label}
                for idx, label in enumerate(labels)
            ]
            questions.append({"idx": number, "question": f"{_text(random)}?", "answers": answers})
        yield {"passage": {"text": _text(random, fillers=15), "questions": questions}}


def _rucos(random: Random) -> Iterator[Record]:
    """The right one of three entities has a rank; one of them is named twice."""
    names = ["Олег", "Иван", "Пётр", "Глеб", "Павел", "Антон", "Роман"]
    while True:
        right, *wrong = random.sample(names, 3)
        entities = [f"{right} князь", *(f"{name} купец" for name in wrong)]
        random.shuffle(entities)
        parts = [f"{_text(random)} {name}, {_text(random)}." for name in [*entities, entities[0]]]
        text = "\n@highlight\n".join(parts)
        spans = [
            {"start": start, "end": start + len(name)}
            for name in entities
            for start in range(len(text))
            if text.startswith(name, start)
        ]
        answers = [
            {**span, "text": text[span["start"] : span["end"]]}
            for span in spans
            if text[span["start"] : span["end"]].endswith("князь")
        ]
        query = f"{_text(random)} @placeholder {_text(random)}"
        yield {
            "passage": {"text": text, "entities": spans},
            "qas": [{"query": query, "answers": answers, "idx": 0}],
        }


_RULES: dict[str, Rule] = {
    "DaNetQA": _danetqa,
    "LiDiRus": _entailment("sentence1", "sentence2"),
    "MuSeRC": _muserc,
    "PARus": _parus,
    "RCB": _rcb,
    "RUSSE": _russe,
    "RWSD": _rwsd,
    "RuCoS": _rucos,
    "TERRa": _entailment("premise", "hypothesis"),
}
