"""From batches to predictions on a device, without letting it wait."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from answers import Scores
from batches import Batch, Window
from network import Inputs, Network
from records import ExampleError, Record
from tasks import Task

_HALF_PAYS = (7, 0)
"""The compute capability from which GPUs have tensor cores: Volta and later."""


def choose_device(name: str) -> torch.device:
    """Return the device with this name; auto is the GPU if there is one, else the CPU."""
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
    """Return the precision with this name; auto is float16 on GPUs that gain from it."""
    if name != "auto":
        dtype: torch.dtype = getattr(torch, name)
        return dtype
    if device.type == "cuda" and torch.cuda.get_device_capability(device) >= _HALF_PAYS:
        return torch.float16
    return torch.float32


def to_device(batch: Batch, device: torch.device) -> Inputs:
    """Copy a batch to the device in one piece, without waiting for the copy."""
    columns = (batch.ids, batch.lengths, batch.seconds, batch.spans)
    packed = torch.from_numpy(np.concatenate([column.ravel() for column in columns]))
    if device.type == "cuda":
        packed = packed.pin_memory()
    parts = torch.split(packed.to(device, non_blocking=True), [column.size for column in columns])
    ids, lengths, seconds, spans = (
        part.view(column.shape) for part, column in zip(parts, columns, strict=True)
    )
    return Inputs(ids, lengths, seconds, spans, batch.is_padded)


@dataclass(frozen=True)
class _Running:
    """A window whose scores are being computed."""

    window: Window
    scores: torch.Tensor
    """In the order of the batches."""
    arrived: torch.cuda.Event | None
    """None if there is nothing to wait for."""


class Predictor:
    """A trained network on its device."""

    def __init__(self, network: Network, task: Task, device: torch.device) -> None:
        self._network = network
        self._task = task
        self._device = device

    def predict(self, windows: Iterable[Window]) -> Iterator[list[Record]]:
        """Yield the predictions of each window, in the order of its records.

        The next window is sent to the device before the scores of this one are awaited.
        """
        running: _Running | None = None
        for window in windows:
            started = self._start(window)
            if running:
                yield self._finish(running)
            running = started
        if running:
            yield self._finish(running)

    @torch.inference_mode()
    def _start(self, window: Window) -> _Running:
        parts = [torch.empty(0, self._task.answer.outputs, device=self._device)]
        for batch in window.batches:
            try:
                parts.append(self._network(to_device(batch, self._device)))
            except torch.OutOfMemoryError as error:  # noqa: PERF203
                raise ExampleError(
                    f"the GPU has too little memory for {len(batch.ids)} passes at once; "
                    "give a smaller --batch-size"
                ) from error
        scores = torch.cat(parts)
        if self._device.type != "cuda":
            return _Running(window, scores, None)
        host = torch.empty(scores.shape, pin_memory=True)
        host.copy_(scores, non_blocking=True)
        arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
        arrived.record()
        return _Running(window, host, arrived)

    def _finish(self, running: _Running) -> list[Record]:
        if running.arrived:
            running.arrived.synchronize()
        by_batch = running.scores.numpy()
        if not np.isfinite(by_batch).all():
            raise ExampleError(
                "the model's scores are not finite in this precision; "
                "give --dtype bfloat16 or --dtype float32"
            )
        scores = np.empty_like(by_batch)
        if running.window.batches:
            scores[np.concatenate([batch.numbers for batch in running.window.batches])] = by_batch
        return list(self._answer(running.window, scores))

    def _answer(self, window: Window, scores: Scores) -> Iterator[Record]:
        first = 0
        for one in window.asked:
            own = scores[first : first + one.passes]
            yield {"idx": one.idx, **self._task.answer.predict(own, one.keys)}
            first += one.passes
