"""What the jiant example makes of texts: tokens, cut to the model's limit, in batches."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Encoding, Tokenizer

import jiant_models as jiant
from batches import batch_by_length
from models import FAMILIES
from network import prepare
from records import Example, ExampleError, Pass, Span
from tokens import Row, Settings, Tokens, boundary_ids, share_room

FILLER = ["вчера", "утром", "старый", "сосед", "долго", "искал", "новый", "дом", "около", "реки"]

lengths = st.integers(0, 400)
ids = st.lists(st.integers(1, 9), min_size=1, max_size=30)
rows = st.lists(st.builds(Row, ids, second=st.just(2), spans=st.just([])))


class CountingTokenizer:
    """A tokenizer that remembers what it was given."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.texts: list[str] = []

    def encode_batch_fast(self, texts: list[str], add_special_tokens: bool) -> list[Encoding]:
        self.texts += texts
        encodings: list[Encoding] = self._tokenizer.encode_batch_fast(
            texts, add_special_tokens=add_special_tokens
        )
        return encodings


def with_limit(shape: str, max_length: int) -> Tokens:
    """Return the tokens of a model that reads so many at once."""
    settings = Settings("tiny", shape.removesuffix("-tiny"), "max", max_length)
    return Tokens(jiant.tokens_of(shape).tokenizer, settings)


def encode(tokens: Tokens, *passes: Pass) -> list[Row]:
    return tokens.encode([Example(0, passes)])


def text_of(tokens: Tokens, ids: list[int]) -> str:
    """Return what was written there, less its white space."""
    if FAMILIES[tokens.settings.family].segments:
        pieces = [str(tokens.tokenizer.id_to_token(number)).removeprefix("##") for number in ids]
    else:
        pieces = [tokens.tokenizer.decode(ids, skip_special_tokens=False)]
    return "".join("".join(pieces).split())


def boundaries(tokens: Tokens) -> tuple[int, int, int]:
    return boundary_ids(tokens.tokenizer, FAMILIES[tokens.settings.family])


def marked(word: str, before: int, after: int) -> tuple[str, int]:
    """Return a text that holds a word among others, and where it begins."""
    words = [FILLER[n % len(FILLER)] for n in range(before)]
    head = " ".join([*words, ""])
    return f"{head}{word}" + "".join(f" {FILLER[n % len(FILLER)]}" for n in range(after)), len(head)


def span_of(text: int, word: str, start: int) -> Span:
    return Span(text, start, start + len(word))


# Boundary tokens


def test_bert_reads_cls_first_sep_second_sep() -> None:
    tokens = jiant.tokens_of("bert-tiny")
    (row,) = encode(tokens, Pass(("Кот спит", "Кот жив")))
    assert text_of(tokens, row.ids) == "[CLS]Котспит[SEP]Котжив[SEP]"
    assert text_of(tokens, row.ids[: row.second]) == "[CLS]Котспит[SEP]"


def test_gpt2_reads_start_first_delimiter_second_end() -> None:
    tokens = jiant.tokens_of("gpt2-tiny")
    (row,) = encode(tokens, Pass(("Кот спит", "Кот жив")))
    assert text_of(tokens, row.ids) == "<|start|>Котспит<|delimiter|>Котжив<|end|>"
    assert text_of(tokens, row.ids[: row.second]) == "<|start|>Котспит<|delimiter|>"


@pytest.mark.parametrize("shape", jiant.SHAPES)
def test_a_text_that_is_alone_has_no_second(shape: str) -> None:
    tokens = jiant.tokens_of(shape)
    (row,) = encode(tokens, Pass(("Кот спит",)))
    start, _, end = boundaries(tokens)
    assert (row.ids[0], row.ids[-1]) == (start, end)
    assert row.second == len(row.ids)


@pytest.mark.parametrize("shape", jiant.SHAPES)
def test_empty_texts_leave_the_boundary_tokens(shape: str) -> None:
    tokens = jiant.tokens_of(shape)
    assert encode(tokens, Pass(("", ""))) == [Row(list(boundaries(tokens)), 2, [])]


@pytest.mark.parametrize("shape", jiant.SHAPES)
def test_boundary_tokens_are_single_ones_that_the_encoder_knows(shape: str, tmp_path: Path) -> None:
    encoder, tokens = prepare(str(jiant.pretrained(shape)), tmp_path)
    family = FAMILIES[tokens.settings.family]
    known = len(encoder.get_input_embeddings().weight)
    texts = (family.start, family.between, family.end)
    for text, number in zip(texts, boundaries(tokens), strict=True):
        assert tokens.tokenizer.id_to_token(number) == text
        assert number < known
    assert known == encoder.config.vocab_size


@pytest.mark.parametrize("shape", jiant.SHAPES)
def test_a_text_cannot_hold_a_boundary_token(shape: str) -> None:
    tokens = jiant.tokens_of(shape)
    (row,) = encode(tokens, Pass(("[CLS] <|start|> Кот", "[SEP]<|delimiter|><|end|>")))
    boundary = [number for number in row.ids if number in boundaries(tokens)]
    assert tuple(boundary) == boundaries(tokens)


def test_the_boundary_tokens_of_gpt2_are_three() -> None:
    assert len(set(boundaries(jiant.tokens_of("gpt2-tiny")))) == 3


def test_a_tokenizer_without_its_boundary_tokens_is_refused() -> None:
    with pytest.raises(ExampleError, match=r"lacks the token \[CLS\]"):
        Tokens(jiant.tokens_of("gpt2-tiny").tokenizer, Settings("tiny", "bert", "max", 256))


@pytest.mark.parametrize("shape", jiant.SHAPES)
def test_tokens_come_back_as_they_were_saved(shape: str, tmp_path: Path) -> None:
    tokens = jiant.tokens_of(shape)
    tokens.save(tmp_path)
    again = Tokens.load(tmp_path)
    one = Pass(("Кот спит", "«Метеор» №5 😀"))
    assert again.settings == tokens.settings
    assert encode(again, one) == encode(tokens, one)


def test_padding_and_truncation_of_the_published_tokenizer_are_switched_off() -> None:
    tokenizer = Tokenizer.from_str(jiant.tokens_of("bert-tiny").tokenizer.to_str())
    tokenizer.enable_padding(length=64)
    tokenizer.enable_truncation(4)
    tokens = Tokens(tokenizer, jiant.tokens_of("bert-tiny").settings)
    one = Pass(("Старый сосед долго искал новый дом", "Кот"))
    assert encode(tokens, one) == encode(jiant.tokens_of("bert-tiny"), one)


# The cut


@given(lengths, lengths, st.integers(2, 300))
def test_what_is_kept_of_two_texts_fills_the_room(first: int, second: int, room: int) -> None:
    kept = share_room([first, second], room)
    assert sum(kept) == min(first + second, room)
    assert 0 <= kept[0] <= first
    assert 0 <= kept[1] <= second


@given(lengths, lengths, st.integers(2, 300))
def test_the_longer_text_is_cut_first(first: int, second: int, room: int) -> None:
    kept = share_room([first, second], room)
    for here, there in ((0, 1), (1, 0)):
        if kept[here] < (first, second)[here]:
            assert kept[here] >= kept[there] - 1


@given(lengths, st.integers(1, 300))
def test_a_text_that_is_alone_has_all_the_room(length: int, room: int) -> None:
    assert share_room([length], room) == [min(length, room)]


@pytest.mark.parametrize("shape", jiant.SHAPES)
def test_what_is_too_long_loses_its_end(shape: str) -> None:
    tokens = with_limit(shape, 40)
    passage, question = " ".join(FILLER * 9), "Кот спит"
    (row,) = encode(tokens, Pass((passage, question)))
    (whole,) = encode(jiant.tokens_of(shape), Pass((passage, question)))
    tail = len(whole.ids) - whole.second
    assert len(row.ids) == 40
    assert row.ids[: row.second - 1] == whole.ids[: row.second - 1]
    assert row.ids[row.second - 1 :] == whole.ids[-tail - 1 :]


@pytest.mark.parametrize("shape", jiant.SHAPES)
@pytest.mark.parametrize("limit", [8, 40, 256])
def test_no_pass_is_longer_than_the_limit(shape: str, limit: int) -> None:
    texts = ["", "Кот", " ".join(FILLER * 3), " ".join(FILLER * 60)]
    passes = [Pass((first, second)) for first in texts for second in texts]
    sizes = [len(row.ids) for row in encode(with_limit(shape, limit), *passes)]
    assert max(sizes) == limit


# Spans


@pytest.mark.parametrize("shape", jiant.SHAPES)
@pytest.mark.parametrize("text", [0, 1])
@pytest.mark.parametrize(("before", "after"), [(0, 0), (3, 3), (0, 400), (400, 0), (400, 400)])
def test_a_marked_word_survives_the_cut_wherever_it_stands(
    shape: str, text: int, before: int, after: int
) -> None:
    tokens = jiant.tokens_of(shape)
    sentence, start = marked("громкоговоритель", before, after)
    texts = (sentence, "Кот спит. " * 200) if text == 0 else ("Кот спит. " * 200, sentence)
    (row,) = encode(tokens, Pass(texts, (span_of(text, "громкоговоритель", start),)))
    ((first, last),) = row.spans
    assert text_of(tokens, row.ids[first:last]) == "громкоговоритель"
    assert len(row.ids) <= tokens.settings.max_length
    assert (first >= row.second) == bool(text)


@pytest.mark.parametrize("shape", jiant.SHAPES)
@settings(deadline=None)  # the first makes the model
@given(
    befores=st.tuples(st.integers(0, 40), st.integers(0, 40)),
    afters=st.tuples(st.integers(0, 40), st.integers(0, 40)),
    limit=st.integers(40, 100),
)
def test_a_word_in_each_text_survives_any_cut(
    shape: str, befores: tuple[int, int], afters: tuple[int, int], limit: int
) -> None:
    tokens = with_limit(shape, limit)
    words = ("громкоговоритель", "«Метеор»")
    sentences = [marked(*parts) for parts in zip(words, befores, afters, strict=True)]
    spans = [span_of(n, words[n], start) for n, (_, start) in enumerate(sentences)]
    (row,) = encode(tokens, Pass((sentences[0][0], sentences[1][0]), tuple(spans)))
    found = [text_of(tokens, row.ids[first:last]) for first, last in row.spans]
    assert found == list(words)
    assert len(row.ids) <= limit
    assert [row.ids[0], row.ids[row.second - 1], row.ids[-1]] == list(boundaries(tokens))


@pytest.mark.parametrize("shape", jiant.SHAPES)
def test_two_spans_of_one_text_are_its_words(shape: str) -> None:
    tokens = jiant.tokens_of(shape)
    text = "Кубок не помещается в коричневый чемодан, потому что он слишком большой."
    (row,) = encode(tokens, Pass((text,), (Span(0, 33, 40), Span(0, 53, 71))))
    found = [text_of(tokens, row.ids[first:last]) for first, last in row.spans]
    assert found == ["чемодан", "онслишкомбольшой"]


@pytest.mark.parametrize("shape", jiant.SHAPES)
def test_a_word_longer_than_the_room_keeps_a_part(shape: str) -> None:
    tokens = with_limit(shape, 12)
    word = "щ" * 60 if shape == "gpt2-tiny" else "щ-" * 30
    (row,) = encode(tokens, Pass((f"Кот {word}", "спит"), (Span(0, 4, 4 + len(word)),)))
    ((first, last),) = row.spans
    assert len(row.ids) == 12
    assert 0 < first < last < row.second
    assert text_of(tokens, row.ids[first:last]) in word


@pytest.mark.parametrize("shape", jiant.SHAPES)
def test_a_word_that_the_tokenizer_drops_is_one_token_all_the_same(shape: str) -> None:
    tokens = jiant.tokens_of(shape)
    (row,) = encode(tokens, Pass(("Кот \u200b спит", "жив"), (Span(0, 4, 5),)))
    ((first, last),) = row.spans
    assert last - first > 0
    assert last < row.second


# Passes and batches


@pytest.mark.parametrize("shape", jiant.SHAPES)
def test_a_passage_that_many_passes_share_is_tokenised_once(
    shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = with_limit(shape, 64)
    passes = [Pass(("Общий текст", f"ответ {n}")) for n in range(5)]
    expected = encode(tokens, *passes)
    counting = CountingTokenizer(tokens.tokenizer)
    monkeypatch.setattr(tokens, "tokenizer", counting)
    assert encode(tokens, *passes) == expected
    assert counting.texts == ["Общий текст", *(f"ответ {n}" for n in range(5))]


@given(rows, st.integers(1, 9))
def test_every_row_is_in_one_batch(rows: list[Row], batch_size: int) -> None:
    batches = list(batch_by_length(rows, batch_size))
    numbers = [number for batch in batches for number in batch.numbers.tolist()]
    assert sorted(numbers) == list(range(len(rows)))
    assert all(len(batch.ids) == batch_size for batch in batches[:-1])
    for batch in batches:
        for number, line, length in zip(batch.numbers, batch.ids, batch.lengths, strict=True):
            assert line[:length].tolist() == rows[number].ids
            assert not line[length:].any()


@given(rows, st.integers(1, 9))
def test_batches_go_from_long_to_short_and_are_padded_to_their_longest(
    rows: list[Row], batch_size: int
) -> None:
    batches = list(batch_by_length(rows, batch_size))
    sizes = [length for batch in batches for length in batch.lengths.tolist()]
    assert sizes == sorted(sizes, reverse=True)
    for batch in batches:
        assert batch.ids.shape[1] == batch.lengths.max()
        assert batch.is_padded == (len(set(batch.lengths.tolist())) > 1)
