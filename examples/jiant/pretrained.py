"""The model that training begins with: its encoder, and its tokenizer with boundary tokens."""

from collections.abc import Mapping
from pathlib import Path

from tokenizers import Tokenizer
from transformers import AutoTokenizer, PreTrainedModel

from checkpoint import load_pretrained
from errors import ExampleError
from models import FAMILIES, MAX_LENGTH, MODELS, Family, Model
from tokens import Settings, Tokens


def prepare(name: str, out_dir: Path) -> tuple[PreTrainedModel, Tokens]:
    """Return the encoder and the tokens of a model; the latter from OUT_DIR if they are there.

    ExampleError where there is no such model, or OUT_DIR holds another one.
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
    # Those of the table are all cased; not every repository says so, and then letters lose accents.
    options = {"do_lower_case": False} if known else {}
    return Tokens(_load_tokenizer(source, FAMILIES[family], options), settings)


def _load_tokenizer(source: str, family: Family, options: Mapping[str, bool]) -> Tokenizer:
    """Return the fast tokenizer of a model; boundary tokens that it lacks are added to it."""
    try:
        fast = AutoTokenizer.from_pretrained(source, **options)
        if fast.get_vocab().keys() <= set(fast.all_special_tokens):  # no file is no error to it
            raise ValueError("it has no vocabulary")
    except Exception as error:  # what a missing file raises depends on the tokenizer
        raise ExampleError(f"cannot load the tokenizer of {source}: {error}") from error
    tokenizer: Tokenizer = fast.backend_tokenizer
    tokenizer.add_special_tokens([family.start, family.between, family.end])
    return tokenizer
