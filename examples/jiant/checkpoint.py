"""Trained weights, to a folder and back."""

import json
import shutil
import textwrap
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.utils import logging as hub_logging
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModel, PreTrainedModel
from transformers.utils import logging

from errors import ExampleError
from files import HEAD, TRAINING, weight_files
from models import FAMILIES
from network import Network
from tasks import Task
from tokens import Settings

logging.set_verbosity_error()  # type: ignore[no-untyped-call]
logging.disable_progress_bar()  # type: ignore[no-untyped-call]
hub_logging.set_verbosity_error()  # type: ignore[no-untyped-call]


def load_pretrained(source: str) -> PreTrainedModel:
    """Return the encoder of a model on the hub, or in a folder; ExampleError says why not."""
    try:
        encoder, _ = _load_encoder(source, dtype=torch.float32)  # whatever it was published in
        return encoder
    except Exception as error:  # what a broken file raises depends on its format
        raise ExampleError(
            f"cannot load the pretrained model {source}; where the hub cannot be reached, give a "
            f"folder that holds it ({_shorten(error)})"
        ) from error


def save(network: Network, training: Mapping[str, Any], folder: Path) -> None:
    """Write the weights of a task to where they wait until its training has ended."""
    part = _part(folder)
    shutil.rmtree(part, ignore_errors=True)
    network.encoder.save_pretrained(part, max_shard_size="1TB")  # always one file
    save_file(network.head.state_dict(), part / HEAD)
    text = json.dumps(training, ensure_ascii=False, indent=2)
    (part / TRAINING).write_text(text + "\n", encoding="utf-8")


def publish(folder: Path) -> None:
    """Put the weights that were saved last in their place: the training has ended."""
    shutil.rmtree(folder, ignore_errors=True)
    _part(folder).rename(folder)


def _part(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.part")


def load(out_dir: Path, task: Task, settings: Settings, dtype: torch.dtype) -> Network:
    """Return the trained network of a task; ExampleError says which file is missing or broken."""
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
    """Return an encoder, and the weights that it has no place for; ValueError if it lacks one."""
    config = AutoConfig.from_pretrained(source, **options)
    if config.model_type not in FAMILIES:
        families = " or ".join(FAMILIES)
        raise ValueError(f"it is of the architecture {config.model_type}, not {families}")
    if config.model_type == "bert":
        options["add_pooling_layer"] = False  # the head pools by itself
    encoder, info = AutoModel.from_pretrained(
        source, attn_implementation="sdpa", output_loading_info=True, **options
    )
    _check_weights(info["missing_keys"], "missing")  # they would be made up at random
    return encoder, info["unexpected_keys"]


def _check_weights(names: Collection[str], fault: str) -> None:
    if names:
        raise ValueError(f"{len(names)} weights are {fault}, the first is {min(names)}")


def _shorten(error: BaseException) -> str:
    return textwrap.shorten(str(error), 200).rstrip(".")
