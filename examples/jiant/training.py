"""Fine-tuning: the labelled records of a task, and a pretrained model trained on them."""

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

import morocco
from batches import make_batch, make_windows
from models import FAMILIES
from network import Network, prepare, publish, save
from predictor import Predictor, choose_device, to_device
from records import Example, ExampleError, Record, read_lines
from tasks import Schedule, Task
from tokens import Tokens

_MAX_GRADIENT_NORM = 5.0
_PATIENCE = 20
"""Validations without improvement after which training stops."""
_VALIDATION_BATCH = 64


@dataclass(frozen=True)
class Labelled:
    """A record with its labels."""

    example: Example
    targets: Sequence[int]
    """The right output of the head for each pass, or the right pass where one is selected."""
    record: Record
    """As it was read, with its labels."""


@dataclass(frozen=True)
class Unit:
    """What one term of the loss covers: a pass, or all passes of a record that selects one."""

    example: Example
    target: int


def read_split(data_dir: Path, task: Task, split: str) -> list[Labelled]:
    """Read the records of train or val; ExampleError names what is missing or wrong."""
    path = data_dir / task.title / f"{split}.jsonl"

    def take(record: Record) -> Labelled:
        example = task.read(record)
        return Labelled(example, task.answer.targets(record, example.keys), record)

    try:
        with path.open("rb") as file:
            records = list(read_lines(file, str(path), take))
    except OSError as error:
        advice = "DATA_DIR is the unpacked archive of russiansuperglue.com, data/public"
        raise ExampleError(f"cannot read {path}: {error.strerror}; {advice}") from error
    if not any(one.targets for one in records):  # a record of MuSeRC may have no answers
        raise ExampleError(f"{path} holds no labelled records")
    return records


def split_units(task: Task, records: Iterable[Labelled]) -> list[Unit]:
    """Return the units of the loss; where passes are judged one by one, each is a unit."""
    if task.answer.outputs == 1:
        return [Unit(one.example, one.targets[0]) for one in records]
    return [
        Unit(Example(one.example.idx, [one_pass]), target)
        for one in records
        for one_pass, target in zip(one.example.passes, one.targets, strict=True)
    ]


def value(task: Task, records: Sequence[Labelled], predictions: Iterable[Record]) -> float:
    """Return the validation metric of predictions, one for each record and in their order."""
    predicted = list(predictions)
    gold = [one.record for one in records]
    metrics = dict(morocco.score_predictions(task.name, predicted, gold).metrics)
    if "f1" in task.schedule.metrics and "f1" not in metrics:
        metrics["f1"] = _f1([one["label"] for one in gold], [one["label"] for one in predicted])
    chosen = task.schedule.metrics or tuple(metrics)
    return sum(metrics[name] for name in chosen) / len(chosen)


def _f1(gold: Sequence[bool], predicted: Sequence[bool]) -> float:
    """Return F1 of the label True, 1 where it occurs nowhere: 2 TP / (2 TP + FP + FN)."""
    both = sum(g and p for g, p in zip(gold, predicted, strict=True))
    either = sum(gold) + sum(predicted)
    return 2 * both / either if either else 1.0


@dataclass(frozen=True)
class Plan:
    """What the user chooses."""

    model: str
    seed: int = 0
    learning_rate: float = 1e-5
    steps: int | None = None
    """At most; None for the value in the table of tasks."""
    device: str = "auto"
    force: bool = False
    """Whether to replace existing weights."""


def train(plan: Plan, task: Task, out_dir: Path, data_dir: Path) -> None:
    """Train a task and keep the weights that validate best in OUT_DIR/<task>.

    Does nothing if they exist, unless forced. Reports progress on stderr; ExampleError says what is
    missing or wrong.
    """
    folder = out_dir / task.name
    if task.weights:
        raise ExampleError(
            f"{task.name} has nothing to train on: train {task.weights}, whose weights answer it"
        )
    if folder.exists() and not plan.force:
        _report(f"{folder} is trained already; --force trains it again")
        return
    schedule = _shorten(task.schedule, plan.steps)
    units = split_units(task, read_split(data_dir, task, "train"))
    validation = read_split(data_dir, task, "val")[: schedule.validated]
    torch.manual_seed(plan.seed)
    encoder, tokens = prepare(plan.model, out_dir)
    out_dir.mkdir(parents=True, exist_ok=True)  # fails now if it cannot be written
    family, pooling = FAMILIES[tokens.settings.family], tokens.settings.pooling
    trainer = Trainer(Network(encoder, task, family, pooling), task, tokens, plan.device)
    losses = trainer.learn(_cycle(units, schedule.batch_size, plan.seed), schedule, plan)
    best, best_step = -1.0, 0
    for step, loss in _average(losses, schedule.every):
        reached = trainer.validate(validation)
        _report(f"step {step} of {schedule.steps}: loss {loss:.4f}, validation {reached:.4f}")
        if reached > best:
            best, best_step = reached, step
            facts = {**asdict(plan), "task": task.name, "step": step, "validation": reached}
            save(trainer.network, facts, folder)
        elif step - best_step >= _PATIENCE * schedule.every:
            break
    tokens.save(out_dir)
    publish(folder)
    _report(f"{folder} holds the weights of step {best_step}, validation {best:.4f}")


class Trainer:
    """Trains a network."""

    def __init__(self, network: Network, task: Task, tokens: Tokens, device: str) -> None:
        self._device = choose_device(device)
        self.network = network.to(self._device)
        self._task = task
        self._tokens = tokens

    def learn(
        self, batches: Iterable[Sequence[Unit]], schedule: Schedule, plan: Plan
    ) -> Iterator[torch.Tensor]:
        """Take a step per batch and yield its loss; ExampleError if it is not finite."""
        parameters = list(self.network.parameters())
        optimizer = AdamW(parameters, plan.learning_rate, amsgrad=schedule.amsgrad)
        rate = LambdaLR(optimizer, _rate(schedule))
        for units in islice(batches, schedule.steps):
            self.network.train()
            loss = self.loss(units)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            if not torch.nn.utils.clip_grad_norm_(parameters, _MAX_GRADIENT_NORM).isfinite():
                raise ExampleError("the loss is not finite; give a lower --learning-rate")
            optimizer.step()
            rate.step()
            yield loss.detach()

    def loss(self, units: Sequence[Unit]) -> torch.Tensor:
        """Return the mean cross entropy of a batch."""
        rows = self._tokens.encode([unit.example for unit in units])
        scores = self.network(to_device(make_batch(rows, range(len(rows))), self._device))
        targets = torch.tensor([unit.target for unit in units], device=self._device)
        # Where one pass is selected, all passes of a record form one row.
        return cross_entropy(scores.reshape(len(units), -1), targets)

    def validate(self, records: Sequence[Labelled]) -> float:
        """Return the validation metric of the network as it is."""
        examples = (one.example for one in records)
        windows = make_windows(examples, self._tokens, _VALIDATION_BATCH)
        predictor = Predictor(self.network.eval(), self._task, self._device)
        return value(self._task, records, chain.from_iterable(predictor.predict(windows)))


def _shorten(schedule: Schedule, steps: int | None) -> Schedule:
    """Return the schedule with another number of steps and about as many validations."""
    if steps is None:
        return schedule
    return replace(schedule, steps=steps, every=max(1, schedule.every * steps // schedule.steps))


def _rate(schedule: Schedule) -> Callable[[int], float]:
    """Return the factor of the learning rate by step: a linear rise, then a linear fall to 0."""
    rising = schedule.steps * schedule.warmup

    def factor(step: int) -> float:
        if step < rising:
            return (step + 1) / (rising + 1)
        return (schedule.steps - step) / (schedule.steps - rising)

    return factor


def _cycle(units: Sequence[Unit], batch_size: int, seed: int) -> Iterator[list[Unit]]:
    """Yield batches forever, reshuffled in each epoch."""
    shuffled, random_order = list(units), random.Random(seed)
    while True:
        random_order.shuffle(shuffled)
        for start in range(0, len(shuffled), batch_size):
            yield shuffled[start : start + batch_size]


def _average(losses: Iterable[torch.Tensor], every: int) -> Iterator[tuple[int, float]]:
    """Yield the steps at which to validate, each with the mean loss since the last."""
    since: list[torch.Tensor] = []
    step = 0
    for step, loss in enumerate(losses, start=1):
        since.append(loss)
        if step % every == 0:
            yield step, torch.stack(since).mean().item()
            since = []
    if since:
        yield step, torch.stack(since).mean().item()


def _report(line: str) -> None:
    sys.stderr.write(f"main.py: {line}\n")
