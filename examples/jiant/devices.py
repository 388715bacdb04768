"""Where the model computes, and in which precision."""

import numpy as np
import torch

from batches import Batch
from errors import ExampleError
from network import Inputs

_HALF_PAYS = (7, 0)
"""The compute capability from which GPUs have tensor cores: Volta and later."""


def choose_device(name: str) -> torch.device:
    """Return the device of that name, for auto the GPU where there is one, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ExampleError(
            f"there is no device {name!r}; give auto, cpu, cuda or cuda:1"
        ) from error
    if device.type == "cuda" and not (device.index or 0) < torch.cuda.device_count():
        raise ExampleError(f"PyTorch sees no device {name}; --device cpu needs none")
    return device


def choose_dtype(name: str, device: torch.device) -> torch.dtype:
    """Return the precision of that name, for auto float16 on GPUs that gain from it."""
    if name != "auto":
        dtype: torch.dtype = getattr(torch, name)
        return dtype
    if device.type == "cuda" and torch.cuda.get_device_capability(device) >= _HALF_PAYS:
        return torch.float16
    return torch.float32


def to_device(batch: Batch, device: torch.device) -> Inputs:
    """Copy a batch to the device, all at once and without waiting for the copy to end."""
    columns = (batch.ids, batch.lengths, batch.seconds, batch.spans)
    packed = torch.from_numpy(np.concatenate([column.ravel() for column in columns]))
    if device.type == "cuda":
        packed = packed.pin_memory()
    parts = torch.split(packed.to(device, non_blocking=True), [column.size for column in columns])
    ids, lengths, seconds, spans = (
        part.view(column.shape) for part, column in zip(parts, columns, strict=True)
    )
    return Inputs(ids, lengths, seconds, spans, batch.is_padded)
