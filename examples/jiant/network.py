"""The pretrained encoder with a head for one task on top."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from models import Family, Pooling
from tasks import Task

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
    """Known to the host, so that nothing waits for the device to tell."""


class Network(nn.Module):
    """From a batch of passes to the scores of their candidates."""

    def __init__(
        self, encoder: PreTrainedModel, task: Task, family: Family, pooling: Pooling
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.dropout = nn.Dropout(_DROPOUT)
        self.family = family
        self.head = Head(encoder.config.hidden_size, task, pooling)

    def forward(self, inputs: Inputs) -> Tensor:
        """Return the scores (B, outputs), float32 whatever the encoder computes in."""
        positions = torch.arange(inputs.ids.shape[1], device=inputs.ids.device)
        real = positions < inputs.lengths[:, None]
        arguments: dict[str, object] = {}
        if self.family.segments:
            arguments["token_type_ids"] = (positions >= inputs.seconds[:, None]).long()
        else:
            arguments["use_cache"] = False
        if inputs.is_padded and not self.family.causal:
            # In the shape that attention takes it in: a plain mask would be looked at on the host.
            arguments["attention_mask"] = real[:, None, None, :]
        states = self.encoder(input_ids=inputs.ids, **arguments).last_hidden_state
        # Few operations, whose last digits decide: half precision would win nothing here.
        scores: Tensor = self.head(self.dropout(states).float(), real, positions, inputs.spans)
        return scores


class Head(nn.Module):
    """What a task looks at, and a linear layer on that."""

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
    """A projection, and the mean over a span by weights that are learnt (Lee et al. 2017)."""

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
