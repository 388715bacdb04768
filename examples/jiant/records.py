"""Records as they come, line by line, and the texts the model reads of each task's record."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar


class ExampleError(Exception):
    """A mistake the user can fix, explained in one line."""


Record = dict[str, Any]

_QUESTIONS = {"cause": "Что было причиной этого?", "effect": "Что случилось в результате?"}


class Span(NamedTuple):
    """A part of one of the texts, which the head looks at."""

    text: int
    """0 for the first text, 1 for the second."""
    start: int
    """In characters."""
    end: int
    """Exclusive."""


class Pass(NamedTuple):
    """What the model reads at once."""

    texts: tuple[str, ...]
    """One or two."""
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True)
class Example:
    """A record ready for the model, which makes one pass over it per candidate."""

    idx: Any
    """As in the record, of any type."""
    passes: Sequence[Pass]
    keys: Sequence[Any] = ()
    """The names of the candidates in the prediction; empty where there is nothing to choose."""


Reader = Callable[[Record], Example]


def read_pair(first: str, second: str) -> Reader:
    """Return a reader of records with two texts, each in a field of its own."""
    return lambda record: Example(record["idx"], [_pass(record[first], record[second])])


def read_choices(record: Record) -> Example:
    """Read PARus: the premise with each of the two choices, preceded by the question."""
    question = _QUESTIONS.get(record["question"])
    if question is None:
        raise ValueError(f"`question` is {record['question']!r}, not cause or effect")
    choices = (f"{question} {_text(record[name])}" for name in ("choice1", "choice2"))
    return Example(record["idx"], [_pass(record["premise"], choice) for choice in choices], (0, 1))


def read_answers(record: Record) -> Example:
    """Read MuSeRC: the passage with each answer, preceded by its question."""
    passage = record["passage"]
    passes, keys = [], []
    for question in passage["questions"]:
        for answer in question["answers"]:
            text = f"{_text(question['question'])} {_text(answer['text'])}"
            passes.append(_pass(passage["text"], text))
            keys.append((question["idx"], answer["idx"]))
    return Example(record["idx"], passes, keys)


def read_entities(record: Record) -> Example:
    """Read RuCoS: the passage with the query, its gap filled by each entity in turn."""
    text, query = _text(record["passage"]["text"]), _text(record["qas"][0]["query"])
    # Sorted, so that of two equally likely entities the first in string order wins.
    names = sorted({text[e["start"] : e["end"]] for e in record["passage"]["entities"]} - {""})
    if not names:
        raise ValueError("there are no entities to choose from")
    passes = [_pass(text, query.replace("@placeholder", name)) for name in names]
    return Example(record["idx"], passes, names)


def read_marked(record: Record) -> Example:
    """Read RUSSE: two sentences, and the position of the word in each."""
    sentences = [_text(record[f"sentence{n}"]) for n in (1, 2)]
    spans = [
        _strip(Span(n, record[f"start{n + 1}"], record[f"end{n + 1}"]), text)
        for n, text in enumerate(sentences)
    ]
    return Example(record["idx"], [_pass(*sentences, spans=spans)])


def read_spans(record: Record) -> Example:
    """Read RWSD: a text, and two parts of it given by their words."""
    text, target = _text(record["text"]), record["target"]
    spans = [_find(text, target[f"span{n}_text"], target[f"span{n}_index"]) for n in (1, 2)]
    return Example(record["idx"], [_pass(text, spans=spans)])


def _pass(*texts: str, spans: Sequence[Span] = ()) -> Pass:
    return Pass(tuple(_text(text) for text in texts), tuple(spans))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _strip(span: Span, text: str) -> Span:
    """Return the span without white space at its ends: `end` may be one too large."""
    marked = text[span.start : span.end]
    word = marked.strip()
    if not word:
        raise ValueError(f"characters {span.start} to {span.end} of {text!r} mark no word")
    start = span.start + marked.index(word)
    return Span(span.text, start, start + len(word))


def _find(text: str, words: str, index: int) -> Span:
    """Return where `words` occur nearest to the word with that index: some indices are wrong."""
    places = [match.span() for match in re.finditer(r"\S+", text)]
    whole = re.compile(rf"(?<!\w){re.escape(words)}(?!\w)", re.IGNORECASE)
    found = [match.span() for match in whole.finditer(text)]
    if not words or not (found or 0 <= index < len(places)):
        raise ValueError(f"{words!r}, word {index}, is not in {text!r}")
    near = places[min(max(index, 0), len(places) - 1)][0]
    if not found:  # the text has them in another form
        last = places[index : index + len(words.split())][-1]
        found = [(near, last[1])]
    return Span(0, *min(found, key=lambda place: abs(place[0] - near)))


T = TypeVar("T")

_BOM = b"\xef\xbb\xbf"
_SURROGATE = re.compile(rb"\\u[dD]")


def read_lines(lines: Iterable[bytes], name: str, take: Callable[[Record], T]) -> Iterator[T]:
    """Yield `take(record)` for each line; ExampleError names the line that fails."""
    for number, line in enumerate(lines, start=1):
        text = line.removeprefix(_BOM).strip()
        if not text:
            continue
        try:
            yield take(_parse(text))
        except KeyError as error:
            raise ExampleError(f"{name}, line {number}: there is no field {error}") from error
        except (IndexError, TypeError, ValueError) as error:
            raise ExampleError(f"{name}, line {number}: {error}") from error


def _parse(text: bytes) -> Record:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error})") from error
    if _SURROGATE.search(text):  # a lone surrogate can be neither tokenised nor printed
        json.dumps(record, ensure_ascii=False).encode()
    if not isinstance(record, dict):
        raise ValueError("not a JSON object")
    return record
