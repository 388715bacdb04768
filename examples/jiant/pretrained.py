"""The model that training begins with: its encoder, and its tokenizer with boundary tokens."""

from pathlib import Path

from checkpoint import load_pretrained
from errors import ExampleError
from models import FAMILIES, MAX_LENGTH, MODELS
from tokenizers import Tokenizer
from tokens import Settings, Tokens
from transformers import AutoTokenizer, PreTrainedModel


def prepare(name: str, out_dir: Path) -> tuple[PreTrainedModel, Tokens]:
    """Return the encoder and the tokens of a model; the tokens are kept in OUT_DIR for all tasks.

    ExampleError where there is no such model, or OUT_DIR holds another one.
    """
    known = MODELS.get(name)
    if known is None and not Path(name).is_dir():
        raise ExampleError(f"there is no model {name!r}; give {', '.join(MODELS)}, or a folder")
    source = known.hub if known else name
    encoder = load_pretrained(source)
    if Tokens.are_in(out_dir):
        tokens = Tokens.load(out_dir)
        if tokens.settings.model != name:
            there = tokens.settings.model
            raise ExampleError(f"{out_dir} holds {there}; give {name} a folder of its own")
    else:
        settings = Settings(
            model=name,
            family=encoder.config.model_type,
            pooling=known.pooling if known else "max",
            max_length=min(MAX_LENGTH, encoder.config.max_position_embeddings),
        )
        tokens = Tokens(_load_tokenizer(source, settings), settings)
        out_dir.mkdir(parents=True, exist_ok=True)
        tokens.save(out_dir)
    size = tokens.tokenizer.get_vocab_size(with_added_tokens=True)
    if size > encoder.config.vocab_size:
        encoder.resize_token_embeddings(size, mean_resizing=False)
    return encoder, tokens


def _load_tokenizer(source: str, settings: Settings) -> Tokenizer:
    """Return the fast tokenizer of a model; boundary tokens that it lacks are added to it."""
    try:
        fast = AutoTokenizer.from_pretrained(source)
        if fast.get_vocab().keys() <= set(fast.all_special_tokens):  # no file is no error to it
            raise ValueError("it has no vocabulary")
    except Exception as error:  # what a missing file raises depends on the tokenizer
        raise ExampleError(f"cannot load the tokenizer of {source}: {error}") from error
    tokenizer: Tokenizer = fast.backend_tokenizer
    family = FAMILIES[settings.family]
    tokenizer.add_special_tokens([family.start, family.between, family.end])
    return tokenizer
