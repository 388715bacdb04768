"""How fast the example for GPUs answers, beside a plain loop with the same model.

With a GPU: a model as large as RuBERT, in two precisions and three batch sizes. Without: a small
one, once. Its weights are random, which does not change how long they take.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from figures import Figure
from program import morocco

_EXAMPLES = Path(__file__).parents[2] / "examples"
_JIANT = _EXAMPLES / "jiant"
_PLAIN = Path(__file__).with_name("plain_loop.py")
_REPEATS = 3
_TIMES, _BUSY = 3, 0.9


@dataclass(frozen=True)
class _Case:
    dtype: str
    batch_size: int
    records: int


_ON_GPU = tuple(
    _Case(dtype, batch_size, records)
    for dtype in ("float32", "float16")
    for batch_size, records in ((1, 2000), (32, 20_000), (128, 40_000))
)
_ON_CPU = (_Case("float32", 32, 500),)


def measure_baselines(folder: Path) -> Iterator[Figure]:
    """Yield the speed of the example relative to the plain loop's, both as `stats` computes it."""
    has_gpu = torch.cuda.is_available()
    shape = "bert-base" if has_gpu else "bert-small"
    pretrained, trained, data = folder / shape, folder / "trained", folder / "data"
    _run(_JIANT / "random_model.py", shape, pretrained, _EXAMPLES / "data")
    _run(_JIANT / "main.py", "train", pretrained, "terra", trained, _EXAMPLES / "data", "--steps=1")
    write_records(data / "TERRa" / "val.jsonl")
    for case in _ON_GPU if has_gpu else _ON_CPU:
        options, logs = f"--dtype {case.dtype}", folder / f"{case.dtype}-{case.batch_size}"
        infer = f"{_JIANT / 'main.py'} infer {trained} terra {options}"
        ours = _measure(infer, data, logs / "jiant", case)
        plain = _measure(f"{_PLAIN} {pretrained} {options}", data, logs / "plain", case)
        yield _figure(f"{shape}, {case.dtype}, batches of {case.batch_size}", ours, plain, has_gpu)


def write_records(path: Path, count: int = 2000) -> None:
    """Write records as long as TERRa's: 41 words on average, some four times as many."""
    lines = (_EXAMPLES / "data" / "TERRa" / "train.jsonl").read_text().splitlines()
    known = [json.loads(line) for line in lines]
    choice = random.Random(0)
    path.parent.mkdir(parents=True)
    with path.open("w") as file:
        for idx in range(count):
            sentences = min(1 + int(choice.lognormvariate(0, 0.8)), 8)
            premise = " ".join(choice.choice(known)["premise"] for _ in range(sentences))
            record = {"idx": idx, "premise": premise, "hypothesis": known[idx % 50]["hypothesis"]}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _run(*command: object) -> None:
    subprocess.run([sys.executable, *map(str, command)], check=True)


def _measure(command: str, data: Path, logs: Path, case: _Case) -> dict[str, Any]:
    """Return the estimate of `stats`, and the GPU use of the working phase."""
    sizes = ((1, 1), (case.records, case.batch_size))
    paths = [logs / "terra" / f"{n}_{b}_{i:02d}.jsonl" for n, b in sizes for i in range(_REPEATS)]
    for path in paths:
        size, batch, _ = path.stem.split("_")
        morocco(
            *("bench", f"exec:{sys.executable} {command}", str(data), "terra", "-q"),
            *("--input-size", size, "--batch-size", batch, "-o", str(path)),
        )
    estimate: dict[str, Any] = json.loads(morocco("stats", str(logs)))
    return {**estimate, "busy": _busy(paths[-1], estimate["init_time"])}


def _busy(log: Path, init_time: float) -> float | None:
    """Return the mean GPU use from the end of the start-up to the end of the run, 0 to 1."""
    samples = [json.loads(line) for line in log.read_text().splitlines()]
    since = samples[0]["timestamp"] + init_time
    use = [s["gpu_usage"] for s in samples if s["timestamp"] > since and s["gpu_usage"] is not None]
    return sum(use) / len(use) if use else None


def _figure(name: str, ours: dict[str, Any], plain: dict[str, Any], has_gpu: bool) -> Figure:
    times = ours["rps"] / plain["rps"]
    measured = f"{times:.2f} ({ours['rps']:.0f} of {plain['rps']:.0f} records/s)"
    target, reached = f"at least {_TIMES} times faster", times >= _TIMES
    if has_gpu:
        target += f", GPU over {_BUSY:.0%} busy"
        reached = reached and ours["busy"] > _BUSY
        measured += f", {ours['busy']:.0%} busy (plain {plain['busy']:.0%})"
        measured += f", {ours['gpu_ram']:.2f} GB (plain {plain['gpu_ram']:.2f})"
    return Figure(f"jiant, against a plain loop: {name}", "-", target, measured, reached)
