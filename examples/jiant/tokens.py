"""From texts to the numbers of their tokens, cut to what the model can read."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from tokenizers import Encoding, Tokenizer

from models import FAMILIES, SETTINGS, TOKENIZER, Family, Pooling, model_files
from records import Example, ExampleError, Pass, Span


@dataclass(frozen=True)
class Settings:
    """What all tasks of a trained model share; a file beside their weights."""

    model: str
    """Its name in the table of models, or the folder it came from."""
    family: str
    pooling: Pooling
    max_length: int
    """Tokens of one pass, the boundary tokens among them."""


class Row(NamedTuple):
    """One pass, tokenised."""

    ids: list[int]
    second: int
    """Where the second text begins; the number of tokens where there is none."""
    spans: list[tuple[int, int]]
    """The first token of each, and the one past its last; none is empty."""


class Tokens:
    """The tokenizer of a model, and how the model wants two texts put together."""

    def __init__(self, tokenizer: Tokenizer, settings: Settings) -> None:
        self.tokenizer = tokenizer
        self.settings = settings
        tokenizer.no_padding()
        tokenizer.no_truncation()
        tokenizer.encode_special_tokens = True  # a text that holds "[SEP]" holds five letters
        family = FAMILIES[settings.family]
        self._start, self._between, self._end = boundary_ids(tokenizer, family)

    @staticmethod
    def are_in(folder: Path) -> bool:
        """Whether tokens have been saved there."""
        return (folder / SETTINGS).exists()

    @classmethod
    def load(cls, folder: Path) -> "Tokens":
        """Read what `save` wrote; ExampleError says what is missing or broken."""
        paths = model_files(folder)
        try:
            settings, tokenizer = (path.read_text(encoding="utf-8") for path in paths)
            return cls(Tokenizer.from_str(tokenizer), Settings(**json.loads(settings)))
        except ExampleError:
            raise
        except Exception as error:  # the tokenizers library raises nothing more exact
            raise ExampleError(f"the model in {folder} is broken: {error}") from error

    def save(self, folder: Path) -> None:
        """Write model.json and tokenizer.json."""
        text = json.dumps(asdict(self.settings), ensure_ascii=False, indent=2)
        self.tokenizer.save(str(folder / TOKENIZER))
        (folder / SETTINGS).write_text(text + "\n", encoding="utf-8")

    def encode(self, examples: Sequence[Example]) -> list[Row]:
        """Return one row per pass of each example, in order."""
        texts: list[str] = []
        passes = [
            (one, numbers) for example in examples for one, numbers in _gather(example, texts)
        ]
        marked = any(one.spans for one, _ in passes)
        # The fast variant omits the offsets, which only spans need.
        encode = self.tokenizer.encode_batch if marked else self.tokenizer.encode_batch_fast
        encodings = encode(texts, add_special_tokens=False)
        ids = [encoding.ids for encoding in encodings]
        return [
            self._join(
                [ids[number] for number in numbers],
                [_place(span, encodings[numbers[span.text]]) for span in one.spans],
                [span.text for span in one.spans],
            )
            for one, numbers in passes
        ]

    def _join(
        self, texts: list[list[int]], places: list[tuple[int, int]], owners: list[int]
    ) -> Row:
        """Join one or two texts, with boundary tokens around them."""
        rooms = share_room([len(ids) for ids in texts], self.settings.max_length - 1 - len(texts))
        ids, spans, second = [self._start], [(0, 1)] * len(places), 0
        for number, (text, room) in enumerate(zip(texts, rooms, strict=True)):
            own = [n for n, owner in enumerate(owners) if owner == number]
            # A span must not be cut away: the text then loses its beginning instead.
            first = max([0, *(places[n][1] - room for n in own)])
            for n in own:
                spans[n] = _shift(places[n], len(ids) - first, len(ids), len(ids) + room)
            ids += text[first : first + room]
            ids.append(self._end if number == len(texts) - 1 else self._between)
            second = second or len(ids)
        return Row(ids, second, spans)


def boundary_ids(tokenizer: Tokenizer, family: Family) -> tuple[int, int, int]:
    """Return the ids of the tokens before, between and after texts; ExampleError if missing."""
    ids = []
    for token in (family.start, family.between, family.end):
        number = tokenizer.token_to_id(token)
        if number is None:
            raise ExampleError(f"the tokenizer lacks the token {token}")
        ids.append(number)
    return ids[0], ids[1], ids[2]


def share_room(lengths: Sequence[int], room: int) -> list[int]:
    """Return how many tokens of each text to keep: the longest is cut first."""
    if len(lengths) == 1 or sum(lengths) <= room:
        return [min(length, room) for length in lengths]
    first, second = lengths
    half = room // 2
    if first <= half:
        return [first, room - first]
    if second <= room - half:
        return [room - second, second]
    return [half, room - half]


def _gather(example: Example, texts: list[str]) -> Iterator[tuple[Pass, list[int]]]:
    """Yield each pass with the numbers of its texts; a shared passage is listed once."""
    known: dict[str, int] = {}
    for one in example.passes:
        for text in one.texts:
            if text not in known:
                known[text] = len(texts)
                texts.append(text)
        yield one, [known[text] for text in one.texts]


def _place(span: Span, encoding: Encoding) -> tuple[int, int]:
    """Return the tokens that overlap a range of characters, at least one."""
    inside = [
        number
        for number, (start, end) in enumerate(encoding.offsets)
        if start < span.end and end > span.start
    ]
    if inside:
        return inside[0], inside[-1] + 1
    return 0, 1  # characters that the tokenizer drops


def _shift(place: tuple[int, int], by: int, low: int, high: int) -> tuple[int, int]:
    """Move a range of tokens, cut to low and high, at least one token long."""
    start = min(max(place[0] + by, low), high - 1)
    return start, max(min(place[1] + by, high), start + 1)
