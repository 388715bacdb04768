"""Make a model with random weights, to try the example without the hub."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from tokenizers import (
    Tokenizer,
    decoders,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from tokenizers.models import BPE, WordPiece
from transformers import (
    AutoModel,
    BertConfig,
    GPT2Config,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
)
from transformers.utils import logging

_WORDS = 4000
"""Approximate size of the vocabulary: words of ../data have fewer than two tokens on average."""
_SHAPES: dict[str, Callable[[int], PreTrainedConfig]] = {
    "bert-tiny": lambda words: BertConfig(
        vocab_size=words,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=128,
    ),
    "bert-small": lambda words: BertConfig(
        vocab_size=words,
        hidden_size=512,
        num_hidden_layers=4,
        num_attention_heads=8,
        intermediate_size=2048,
    ),
    "bert-base": lambda words: BertConfig(vocab_size=max(words, 119_547)),  # as RuBERT
    "gpt2-tiny": lambda words: GPT2Config(
        vocab_size=words,
        n_positions=256,
        n_embd=64,
        n_layer=2,
        n_head=2,
        bos_token_id=None,
        eos_token_id=None,
    ),
    "gpt2-base": lambda words: GPT2Config(  # as ruGPT-3 small
        vocab_size=max(words, 50_264), n_positions=2048
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shape", choices=_SHAPES)
    parser.add_argument("folder", type=Path, help="to write")
    parser.add_argument("data_dir", type=Path, help="texts to train the tokenizer on")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    texts = list(_texts(args.data_dir))
    if not texts:
        sys.exit(f"random_model.py: there are no records in {args.data_dir}")
    make_model(args.shape, args.folder, texts, args.seed)


def make_model(shape: str, folder: Path, texts: list[str], seed: int = 0) -> None:
    """Write a pretrained model in the format of the hub: configuration, weights and tokenizer."""
    tokenizer = _train_wordpiece(texts) if shape.startswith("bert") else _train_bpe(texts)
    logging.disable_progress_bar()
    torch.manual_seed(seed)
    model = AutoModel.from_config(_SHAPES[shape](tokenizer.get_vocab_size()))
    model.save_pretrained(folder)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]" if shape.startswith("bert") else None
    )
    fast.save_pretrained(folder)


def _train_wordpiece(texts: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(BPE())
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    # The trainer for WordPiece is not deterministic; this one is.
    trainer = trainers.BpeTrainer(vocab_size=_WORDS // 2, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    pieces = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__)
    words = [*special, *pieces, *(f"##{piece}" for piece in pieces)]
    tokenizer.model = WordPiece({word: n for n, word in enumerate(words)}, unk_token="[UNK]")
    tokenizer.add_special_tokens(special)
    tokenizer.post_processor = processors.BertProcessing(
        *((token, special.index(token)) for token in ("[SEP]", "[CLS]"))
    )
    return tokenizer


def _train_bpe(texts: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=_WORDS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _texts(folder: Path) -> Iterator[str]:
    """Yield all strings of all records."""
    for path in sorted(folder.glob("*/*.jsonl")):
        for line in path.read_text(encoding="utf-8-sig").splitlines():
            yield from _strings(json.loads(line))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


if __name__ == "__main__":
    main()
