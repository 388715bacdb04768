"""Pretrained models as the hub has them: old weight files, tokenizers without a tokenizer.json."""

import json
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from transformers import BertConfig, BertForPreTraining, GPT2LMHeadModel

import jiant_models as jiant
import models
from models import FAMILIES, Model
from network import prepare
from records import Example, Pass

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "Ёж", "еж", "спит", "й", "и"]


@pytest.fixture
def old_bert(tmp_path: Path) -> Path:
    """A folder as BERTs of 2019 have it: vocab.txt, weights by PyTorch, names of TensorFlow."""
    folder = tmp_path / "old-bert"
    folder.mkdir()
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
    )
    weights = BertForPreTraining(config).state_dict()
    torch.save(
        {_old_name(name): weight for name, weight in weights.items()}, folder / "pytorch_model.bin"
    )
    (folder / "config.json").write_text(json.dumps(config.to_dict()))
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    return folder


def _old_name(name: str) -> str:
    gamma = name.replace("LayerNorm.weight", "LayerNorm.gamma")
    return gamma.replace("LayerNorm.bias", "LayerNorm.beta")


@pytest.fixture
def old_gpt2(tmp_path: Path) -> Path:
    """A folder as GPT-2 models of 2020 have it: vocab.json, merges.txt, weights by PyTorch."""
    new, folder = jiant.pretrained("gpt2-tiny"), tmp_path / "old-gpt2"
    folder.mkdir()
    model = GPT2LMHeadModel.from_pretrained(new)
    buffer = {"transformer.h.0.attn.masked_bias": torch.tensor(-1e4)}
    torch.save({**model.state_dict(), **buffer}, folder / "pytorch_model.bin")
    (folder / "config.json").write_text((new / "config.json").read_text())
    bpe = json.loads((new / "tokenizer.json").read_text(encoding="utf-8"))["model"]
    (folder / "vocab.json").write_text(json.dumps(bpe["vocab"]), encoding="utf-8")
    merges = "".join(f"{first} {second}\n" for first, second in bpe["merges"])
    (folder / "merges.txt").write_text(f"#version: 0.2\n{merges}", encoding="utf-8")
    return folder


def test_old_weights_of_bert_are_all_found(old_bert: Path, tmp_path: Path) -> None:
    encoder, _ = prepare(str(old_bert), tmp_path / "out")
    there = torch.load(old_bert / "pytorch_model.bin", weights_only=True)
    ours = encoder.state_dict()
    assert torch.equal(
        ours["embeddings.LayerNorm.weight"], there["bert.embeddings.LayerNorm.gamma"]
    )
    assert {f"bert.{name}" for name in ours if "LayerNorm" not in name} <= there.keys()


def test_a_model_of_the_table_is_cased_whatever_its_repository_says(
    old_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(models.MODELS, "old", Model(str(old_bert)))
    _, tokens = prepare("old", tmp_path / "out")
    (row,) = tokens.encode([Example(0, [Pass(("Ёж спит й",))])])
    assert [WORDS[number] for number in row.ids] == ["[CLS]", "Ёж", "спит", "й", "[SEP]"]


def test_gpt2_gets_its_boundary_tokens_and_states_for_them(old_gpt2: Path, tmp_path: Path) -> None:
    encoder, tokens = prepare(str(old_gpt2), tmp_path / "out")
    before = Tokenizer.from_file(str(jiant.pretrained("gpt2-tiny") / "tokenizer.json"))
    text = "Ёж спит"
    (row,) = tokens.encode([Example(0, [Pass((text,))])])
    assert row.ids[1:-1] == before.encode(text).ids
    assert tokens.tokenizer.id_to_token(row.ids[0]) == FAMILIES["gpt2"].start
    assert before.get_vocab_size() <= row.ids[0] < encoder.config.vocab_size
