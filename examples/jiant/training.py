"""Fine-tuning: all weights of a pretrained model, for one task."""

import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR

from batches import make_batch
from checkpoint import publish, save
from dataset import Labelled, Unit, read_split, split_units, value
from devices import choose_device, to_device
from errors import ExampleError
from models import FAMILIES
from network import Network
from predictor import Predictor
from pretrained import prepare
from tasks import Schedule, Task
from tokens import Tokens
from windows import make_windows

_CLIP = 5.0
_PATIENCE = 20
_VALIDATION_BATCH = 64


@dataclass(frozen=True)
class Plan:
    """What the user chooses."""

    model: str
    seed: int = 0
    learning_rate: float = 1e-5
    steps: int | None = None
    """At most; None for what the table of tasks says."""
    device: str = "auto"
    force: bool = False
    """Whether weights that are there are replaced."""


def train(plan: Plan, task: Task, out_dir: Path, data_dir: Path) -> None:
    """Keep the weights that validate best in OUT_DIR/<task>, unless there are some already.

    Tells on stderr how it goes; ExampleError says what is missing or wrong.
    """
    folder = out_dir / task.name
    if task.weights:
        raise ExampleError(
            f"{task.name} has nothing to train on: train {task.weights}, whose weights answer it"
        )
    if folder.exists() and not plan.force:
        _tell(f"{folder} is trained already; --force trains it again")
        return
    schedule = _shorten(task.schedule, plan.steps)
    units = split_units(task, read_split(data_dir, task, "train"))
    validation = read_split(data_dir, task, "val")[: schedule.validated]
    torch.manual_seed(plan.seed)
    encoder, tokens = prepare(plan.model, out_dir)
    out_dir.mkdir(parents=True, exist_ok=True)  # said now if it cannot be written
    family, pooling = FAMILIES[tokens.settings.family], tokens.settings.pooling
    trainer = Trainer(Network(encoder, task, family, pooling), task, tokens, plan.device)
    losses = trainer.learn(_cycle(units, schedule.batch_size, plan.seed), schedule, plan)
    best, best_step = -1.0, 0
    for step, loss in _average(losses, schedule.every):
        reached = trainer.validate(validation)
        _tell(f"step {step} of {schedule.steps}: loss {loss:.4f}, validation {reached:.4f}")
        if reached > best:
            best, best_step = reached, step
            facts = {**asdict(plan), "task": task.name, "step": step, "validation": reached}
            save(trainer.network, facts, folder)
        elif step - best_step >= _PATIENCE * schedule.every:
            break
    tokens.save(out_dir)
    publish(folder)
    _tell(f"{folder} holds the weights of step {best_step}, validation {best:.4f}")


class Trainer:
    """A network that learns."""

    def __init__(self, network: Network, task: Task, tokens: Tokens, device: str) -> None:
        self._device = choose_device(device)
        self.network = network.to(self._device)
        self._task = task
        self._tokens = tokens

    def learn(
        self, batches: Iterable[Sequence[Unit]], schedule: Schedule, plan: Plan
    ) -> Iterator[torch.Tensor]:
        """Take a step for each batch and yield its loss; ExampleError where it is not finite."""
        parameters = list(self.network.parameters())
        optimizer = AdamW(parameters, plan.learning_rate, amsgrad=schedule.amsgrad)
        rate = LambdaLR(optimizer, _rate(schedule))
        for units in islice(batches, schedule.steps):
            self.network.train()
            loss = self.loss(units)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            if not torch.nn.utils.clip_grad_norm_(parameters, _CLIP).isfinite():
                raise ExampleError("the loss is no finite number; give a lower --learning-rate")
            optimizer.step()
            rate.step()
            yield loss.detach()

    def loss(self, units: Sequence[Unit]) -> torch.Tensor:
        """Return the mean cross entropy of a batch."""
        rows = self._tokens.encode([unit.example for unit in units])
        scores = self.network(to_device(make_batch(rows, range(len(rows))), self._device))
        targets = torch.tensor([unit.target for unit in units], device=self._device)
        # Where a pass is chosen, those of a record stand in one row.
        return cross_entropy(scores.reshape(len(units), -1), targets)

    def validate(self, records: Sequence[Labelled]) -> float:
        """Return the validation metric of the network as it is."""
        examples = (one.example for one in records)
        windows = make_windows(examples, self._tokens, _VALIDATION_BATCH)
        predictor = Predictor(self.network.eval(), self._task, self._device)
        return value(self._task, records, chain.from_iterable(predictor.predict(windows)))


def _shorten(schedule: Schedule, steps: int | None) -> Schedule:
    """Return the schedule with other steps, and about as many validations."""
    if steps is None:
        return schedule
    return replace(schedule, steps=steps, every=max(1, schedule.every * steps // schedule.steps))


def _rate(schedule: Schedule) -> Callable[[int], float]:
    """Return the factor of the learning rate at a step: it rises, then falls to 0, in lines."""
    rising = schedule.steps * schedule.warmup

    def factor(step: int) -> float:
        if step < rising:
            return (step + 1) / (rising + 1)
        return (schedule.steps - step) / (schedule.steps - rising)

    return factor


def _cycle(units: Sequence[Unit], batch_size: int, seed: int) -> Iterator[list[Unit]]:
    """Yield batches for ever, in another order each time."""
    shuffled, random_order = list(units), random.Random(seed)
    while True:
        random_order.shuffle(shuffled)
        for start in range(0, len(shuffled), batch_size):
            yield shuffled[start : start + batch_size]


def _average(losses: Iterable[torch.Tensor], every: int) -> Iterator[tuple[int, float]]:
    """Yield the steps at which to validate, each with the mean loss since the one before."""
    since: list[torch.Tensor] = []
    step = 0
    for step, loss in enumerate(losses, start=1):
        since.append(loss)
        if step % every == 0:
            yield step, torch.stack(since).mean().item()
            since = []
    if since:
        yield step, torch.stack(since).mean().item()


def _tell(line: str) -> None:
    sys.stderr.write(f"main.py: {line}\n")
