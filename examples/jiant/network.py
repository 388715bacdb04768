"""The encoder with a head for one task, from the hub or from the files of a trained model."""

import json
import shutil
import textwrap
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.utils import logging as hub_logging
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedModel
from transformers.utils import logging

from models import (
    FAMILIES,
    HEAD,
    MAX_LENGTH,
    MODELS,
    TRAINING,
    Family,
    Model,
    Pooling,
    weight_files,
)
from records import ExampleError
from tasks import Task
from tokens import Settings, Tokens

logging.set_verbosity_error()
logging.disable_progress_bar()
hub_logging.set_verbosity_error()  # type: ignore[no-untyped-call]

_DROPOUT = 0.1
_PROJECTED = 512


@dataclass(frozen=True)
class Inputs:
    """A batch on the device; for the shapes see `batches.Batch`."""

    ids: Tensor
    lengths: Tensor
    seconds: Tensor
    spans: Tensor
    is_padded: bool
    """Kept on the host, so that nothing waits for the device."""


class Network(nn.Module):
    """Computes the scores of the candidates of a batch of passes."""

    def __init__(
        self, encoder: PreTrainedModel, task: Task, family: Family, pooling: Pooling
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.dropout = nn.Dropout(_DROPOUT)
        self.family = family
        self.head = Head(encoder.config.hidden_size, task, pooling)

    def forward(self, inputs: Inputs) -> Tensor:
        """Return the scores (B, outputs) in float32, whatever the precision of the encoder."""
        positions = torch.arange(inputs.ids.shape[1], device=inputs.ids.device)
        real = positions < inputs.lengths[:, None]
        arguments: dict[str, object] = {}
        if self.family.segments:
            arguments["token_type_ids"] = (positions >= inputs.seconds[:, None]).long()
        else:
            arguments["use_cache"] = False
        if inputs.is_padded and not self.family.causal:
            # In the shape attention needs: a plain mask would be inspected on the host.
            arguments["attention_mask"] = real[:, None, None, :]
        states = self.encoder(input_ids=inputs.ids, **arguments).last_hidden_state
        # Few operations whose last digits matter: half precision would gain nothing here.
        scores: Tensor = self.head(self.dropout(states).float(), real, positions, inputs.spans)
        return scores


class Head(nn.Module):
    """A linear layer on the part of the states that the task looks at."""

    def __init__(self, size: int, task: Task, pooling: Pooling) -> None:
        super().__init__()
        self.look, self.pooling = task.look, pooling
        width = {"whole": size, "whole and words": 3 * size, "spans": 2 * _PROJECTED}[task.look]
        spans = 2 if task.look == "spans" else 0
        self.attention = nn.ModuleList(SpanAttention(size) for _ in range(spans))
        self.classifier = nn.Linear(width, task.answer.outputs)

    def forward(self, states: Tensor, real: Tensor, positions: Tensor, spans: Tensor) -> Tensor:
        # (B, S, L): which tokens each span holds
        inside = (positions >= spans[..., :1]) & (positions < spans[..., 1:])
        parts: list[Tensor] = []
        if self.look != "spans":
            parts.append(_pool(states, real, self.pooling))
        if self.look == "whole and words":
            parts.append(_mean(states, inside).flatten(1))
        parts += [part(states, inside[:, n]) for n, part in enumerate(self.attention)]
        scores: Tensor = self.classifier(torch.cat(parts, dim=-1))
        return scores


class SpanAttention(nn.Module):
    """A projection, and its mean over a span by learnt weights (Lee et al. 2017)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.project = nn.Linear(size, _PROJECTED)
        self.weigh = nn.Linear(_PROJECTED, 1)

    def forward(self, states: Tensor, inside: Tensor) -> Tensor:
        """Return (B, 512) from states (B, L, d) and the tokens of the span (B, L)."""
        projected = self.project(states)
        weights = self.weigh(projected).squeeze(-1).masked_fill(~inside, -torch.inf).softmax(-1)
        return torch.einsum("bl,bld->bd", weights, projected)


def _pool(states: Tensor, real: Tensor, pooling: Pooling) -> Tensor:
    if pooling == "first":
        return states[:, 0]
    return states.masked_fill(~real[..., None], -torch.inf).amax(dim=1)


def _mean(states: Tensor, inside: Tensor) -> Tensor:
    """Return the mean state of each span (B, S, d)."""
    weights = inside.to(states.dtype)
    return torch.einsum("bsl,bld->bsd", weights / weights.sum(-1, keepdim=True), states)


def load_pretrained(source: str) -> PreTrainedModel:
    """Load the encoder of a model on the hub or in a folder; ExampleError says why it cannot."""
    try:
        encoder, _ = _load_encoder(source, dtype=torch.float32)  # whatever its published precision
        return encoder
    except Exception as error:  # what a broken file raises depends on its format
        raise ExampleError(
            f"cannot load the pretrained model {source}; where the hub cannot be reached, give a "
            f"folder that holds it ({_shorten(error)})"
        ) from error


def save(network: Network, training: Mapping[str, Any], folder: Path) -> None:
    """Write the weights of a task to a hidden folder until its training has finished."""
    part = _part(folder)
    shutil.rmtree(part, ignore_errors=True)
    network.encoder.save_pretrained(part, max_shard_size="1TB")  # always one file
    save_file(network.head.state_dict(), part / HEAD)
    text = json.dumps(training, ensure_ascii=False, indent=2)
    (part / TRAINING).write_text(text + "\n", encoding="utf-8")


def publish(folder: Path) -> None:
    """Move the last saved weights to their place: the training has finished."""
    shutil.rmtree(folder, ignore_errors=True)
    _part(folder).rename(folder)


def _part(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.part")


def load(out_dir: Path, task: Task, settings: Settings, dtype: torch.dtype) -> Network:
    """Load the trained network of a task; ExampleError names a missing or broken file."""
    _, _, head = weight_files(out_dir, task)
    folder = head.parent
    try:
        encoder, surplus = _load_encoder(str(folder), dtype=dtype, local_files_only=True)
        _check_weights(surplus, "too many")
        network = Network(encoder, task, FAMILIES[settings.family], settings.pooling)
        network.head.load_state_dict(load_file(head))
    except Exception as error:  # what a broken file raises depends on where it is broken
        raise ExampleError(
            f"the weights in {folder} are broken: {_shorten(error)}; copy or train them again"
        ) from error
    return network.eval()


def _load_encoder(source: str, **options: Any) -> tuple[PreTrainedModel, Collection[str]]:
    """Return an encoder, and the weights that do not fit in; ValueError if one is missing."""
    config = AutoConfig.from_pretrained(source, **options)
    if config.model_type not in FAMILIES:
        families = " or ".join(FAMILIES)
        raise ValueError(f"its architecture is {config.model_type}, not {families}")
    if config.model_type == "bert":
        options["add_pooling_layer"] = False  # the head pools by itself
    encoder, info = AutoModel.from_pretrained(
        source, attn_implementation="sdpa", output_loading_info=True, **options
    )
    _check_weights(info["missing_keys"], "missing")  # they would be initialised at random
    return encoder, info["unexpected_keys"]


def _check_weights(names: Collection[str], fault: str) -> None:
    if names:
        raise ValueError(f"{len(names)} weights are {fault}, the first is {min(names)}")


def _shorten(error: BaseException) -> str:
    return textwrap.shorten(str(error), 200).rstrip(".")


def prepare(name: str, out_dir: Path) -> tuple[PreTrainedModel, Tokens]:
    """Return the encoder and the tokens of a model, the latter from OUT_DIR if present.

    ExampleError if there is no such model, or OUT_DIR holds another one.
    """
    known = MODELS.get(name)
    if known is None and not Path(name).is_dir():
        raise ExampleError(f"there is no model {name!r}; give {', '.join(MODELS)}, or a folder")
    tokens = Tokens.load(out_dir) if Tokens.are_in(out_dir) else None
    if tokens and tokens.settings.model != name:
        there = tokens.settings.model
        raise ExampleError(f"{out_dir} holds {there}; give {name} a folder of its own")
    source = known.hub if known else name
    encoder = load_pretrained(source)
    tokens = tokens or _make_tokens(source, encoder, known, name)
    size = tokens.tokenizer.get_vocab_size(with_added_tokens=True)
    if size > encoder.config.vocab_size:
        encoder.resize_token_embeddings(size, mean_resizing=False)
    return encoder, tokens


def _make_tokens(source: str, encoder: PreTrainedModel, known: Model | None, name: str) -> Tokens:
    family, positions = encoder.config.model_type, encoder.config.max_position_embeddings
    pooling = known.pooling if known else "max"
    settings = Settings(name, family, pooling, min(MAX_LENGTH, positions))
    # All models of the table are cased, though not every repository says so.
    options = {"do_lower_case": False} if known else {}
    return Tokens(_load_tokenizer(source, FAMILIES[family], options), settings)


def _load_tokenizer(source: str, family: Family, options: Mapping[str, bool]) -> Tokenizer:
    """Load the fast tokenizer of a model, with the boundary tokens added if it lacks them."""
    try:
        fast = AutoTokenizer.from_pretrained(source, **options)
        if fast.get_vocab().keys() <= set(
            fast.all_special_tokens
        ):  # a missing file raises no error
            raise ValueError("it has no vocabulary")
    except Exception as error:  # what a missing file raises depends on the tokenizer
        raise ExampleError(f"cannot load the tokenizer of {source}: {error}") from error
    tokenizer: Tokenizer = fast.backend_tokenizer
    tokenizer.add_special_tokens([family.start, family.between, family.end])
    return tokenizer
