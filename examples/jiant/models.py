"""The models, one row each, and what those of one architecture have in common."""

from dataclasses import dataclass
from typing import Literal

Pooling = Literal["first", "max"]
"""How the states of the tokens become one: that of the first token, or the maximum over all."""

MAX_LENGTH = 256
"""Tokens of one pass, the boundary tokens among them."""


@dataclass(frozen=True)
class Family:
    """How models of one architecture want their input."""

    start: str
    """The token before the first text."""
    between: str
    """The token between two texts."""
    end: str
    """The token after the last text."""
    segments: bool
    """Whether each token is told which of the texts it belongs to."""
    causal: bool
    """Whether a token sees only those before it; padding behind it is then never seen."""


@dataclass(frozen=True)
class Model:
    """A pretrained model, and how this example uses it."""

    hub: str
    """Its name on the Hugging Face hub."""
    pooling: Pooling = "max"
    """Stored in the checkpoint, so that training and inference use the same."""


FAMILIES = {  # by the `model_type` of the pretrained model's configuration
    "bert": Family("[CLS]", "[SEP]", "[SEP]", segments=True, causal=False),
    "gpt2": Family("<|start|>", "<|delimiter|>", "<|end|>", segments=False, causal=True),
}

MODELS = {
    "rubert": Model("DeepPavlov/rubert-base-cased"),
    "rubert-conversational": Model("DeepPavlov/rubert-base-cased-conversational"),
    "bert-multilingual": Model("bert-base-multilingual-cased", pooling="first"),
    "rugpt3-small": Model("ai-forever/rugpt3small_based_on_gpt2"),
    "rugpt3-medium": Model("ai-forever/rugpt3medium_based_on_gpt2"),
    "rugpt3-large": Model("ai-forever/rugpt3large_based_on_gpt2"),
}
