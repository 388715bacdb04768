"""From batches to predictions, without letting the device wait."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from answers import Scores
from devices import to_device
from errors import ExampleError
from network import Network
from records import Record
from tasks import Task
from windows import Window


@dataclass(frozen=True)
class _Running:
    """A window whose scores are on their way from the device."""

    window: Window
    scores: torch.Tensor
    """In the order of the batches."""
    arrived: torch.cuda.Event | None
    """None where there is nothing to wait for."""


class Predictor:
    """A trained network on its device."""

    def __init__(self, network: Network, task: Task, device: torch.device) -> None:
        self._network = network
        self._task = task
        self._device = device

    def predict(self, windows: Iterable[Window]) -> Iterator[list[Record]]:
        """Yield the predictions of each window, in the order of its records.

        The next window is handed to the device before the answers of this one are awaited.
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
                "in this precision the model's scores are no finite numbers; "
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
