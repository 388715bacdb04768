"""The RAM of real targets that hold a known amount of memory, in the log and in the record."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Command

from engines import on_every_engine
from paths import ROOT
from runs import Bench, read_log, read_record

MIB = 2**20
TOY = (ROOT / "tests" / "helpers" / "memory_toy.py").read_text()
BRIEF = """
import sys, time
sys.stdin.read()
held = bytearray(60 * 2**20)
time.sleep(0.1)
print('{"idx": 0}')
"""
SIZES = {"forks": 200, "mapped": 200, "shared": 200, "threads": 200, "spike": 300}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "parus" / "1_32_01.jsonl"


def run_toy(
    bench: Bench, command: Command, kind: str, log: Path, case: str, megabytes: int
) -> tuple[Any, float]:
    """Return the peaks of the record, and the largest RAM in the log but one, in MB.

    One reading may fall into the moment of a fork, in which a page counts for two processes.
    """
    python = sys.executable if kind == "process" else "python3"
    target = command(python, "-ISc", TOY, case, str(megabytes), "1.5")
    bench(target, "-o", log, "--force", size=1).succeeds()
    samples = sorted(line["ram"] for line in read_log(log) if line["ram"] is not None)
    return read_record(log)["peaks"], samples[-2:][0] / MIB


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        *((case, "process") for case in SIZES),
        *(pytest.param(case, "container", marks=pytest.mark.docker) for case in SIZES),
        pytest.param("forks", "podman", marks=[pytest.mark.docker, pytest.mark.podman]),
    ],
    indirect=["kind"],
)
def test_ram_is_what_the_target_adds_to_the_machine(
    case: str, kind: str, command: Command, bench: Bench, log: Path
) -> None:
    size = SIZES[case]
    without, _ = run_toy(bench, command, kind, log, case, 0)
    peaks, sampled = run_toy(bench, command, kind, log, case, size)
    truth = size + without["ram"] / MIB
    assert without["ram"] < 20 * MIB
    assert peaks["ram"] / MIB == pytest.approx(truth, rel=0.05)
    assert peaks["ram_source"] == ("cgroup" if kind == "container" else "pss")
    assert sampled < truth * 1.05
    if case != "spike":
        assert sampled == pytest.approx(truth, rel=0.05)


@on_every_engine
@pytest.mark.usefixtures("kind")
def test_a_model_that_lives_for_a_moment_has_a_peak(
    command: Command, bench: Bench, log: Path
) -> None:
    bench(command("python3", "-ISc", BRIEF), "-o", log, size=1).succeeds()
    assert 60 * MIB < read_record(log)["peaks"]["ram"] < 75 * MIB
