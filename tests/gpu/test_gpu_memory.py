"""On a real GPU: what morocco measures, what the framework took, and what nvidia-smi shows."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from morocco.util.units import GIB

_NEEDED = ("torch", "transformers")
_TARGET = Path(__file__).with_name("bert.py")

pytestmark = pytest.mark.skipif(
    shutil.which("nvidia-smi") is None or not all(map(importlib.util.find_spec, _NEEDED)),
    reason=f"needs an NVIDIA GPU, {' and '.join(_NEEDED)}",
)


@dataclass(frozen=True)
class Measured:
    """One run, measured in three ways."""

    record: dict[str, Any]
    reserved: int
    """Peak of PyTorch's allocator, in bytes."""
    shown: int
    """Peak of nvidia-smi, less its value before the run, in bytes."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    folder = tmp_path_factory.mktemp("gpu")
    records = (json.dumps({"idx": idx, "text": "слово " * 20}) for idx in range(100))
    (folder / "bert.jsonl").write_text("\n".join(records))
    log = folder / "bert" / "20000_256_01.jsonl"
    before = shown = device_memory()
    with (folder / "stderr").open("w") as stderr:
        target = f"exec:sh -c '{sys.executable} {_TARGET} \"$@\" 2>{folder}/torch.json' sh"
        command = ("bench", target, str(folder), "bert", "-o", str(log), "--gpus", "0")
        sizes = ("--input-size", "20000", "--batch-size", "256")
        bench = subprocess.Popen([sys.executable, "-m", "morocco", *command, *sizes], stderr=stderr)
        while bench.poll() is None:
            shown = max(shown, device_memory())
            time.sleep(0.1)
    assert bench.returncode == 0, (folder / "stderr").read_text()
    reserved = json.loads((folder / "torch.json").read_text().splitlines()[-1])
    record = json.loads(log.with_suffix(".json").read_text())
    return Measured(record, reserved["max_memory_reserved"], shown - before)


def device_memory() -> int:
    """Return the memory in use on GPU 0 as nvidia-smi shows it, in bytes."""
    query = ("nvidia-smi", "--id=0", "--query-gpu=memory.used", "--format=csv,noheader,nounits")
    return int(subprocess.run(query, check=True, capture_output=True, text=True).stdout) * 2**20


def test_gpu_ram_is_what_nvidia_smi_shows(measured: Measured) -> None:
    assert measured.record["peaks"]["gpu_ram"] == pytest.approx(measured.shown, rel=0.02)


def test_gpu_ram_is_what_the_framework_took_and_a_cuda_context(measured: Measured) -> None:
    context = measured.record["peaks"]["gpu_ram"] - measured.reserved
    assert 0 < context < 1.5 * GIB


def test_the_clocks_are_those_of_a_gpu_at_work(measured: Measured) -> None:
    (clocks,) = measured.record["gpu_clocks"]
    query = "clocks.max.sm,power.limit"
    command = ("nvidia-smi", "--id=0", f"--query-gpu={query}", "--format=csv,noheader,nounits")
    highest, _, limit = subprocess.run(
        command, check=True, capture_output=True, text=True
    ).stdout.partition(",")
    assert clocks["sm_clock_max"] == int(highest)
    assert 200 < clocks["sm_clock_lowest"] <= clocks["sm_clock"] <= int(highest)
    assert 20 < clocks["temperature"] < 100
    assert 20 < clocks["power"] <= clocks["power_highest"] < 1.3 * float(limit)
    assert 0 < clocks["busy"] <= measured.record["run_time"]
    assert clocks["throttling"]["slowdown"] <= clocks["busy"]
    assert measured.record["gpu_users"] in ([], None)


def test_the_gpu_was_busy_and_its_energy_counted(measured: Measured) -> None:
    assert measured.record["energy"] is None or measured.record["energy"] > 0
    assert measured.record["gpus"][0]["memory"] > measured.record["peaks"]["gpu_ram"]
    assert measured.record["warnings"] == [] or measured.record["peaks"]["gpu_ram_source"]
