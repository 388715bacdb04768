"""morocco in another PID namespace than the engine, as in the containers of CI jobs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Command

from gpu_machine import require_root
from runs import TIMEOUT, read_failed_record

APART = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


def measure_apart(image: str, data_dir: Path, log: Path) -> subprocess.CompletedProcess[str]:
    """Run `bench` where the processes of the engine cannot be seen."""
    sizes = ("--input-size", "100", "--batch-size", "32", "--gpus", "none")
    return subprocess.run(
        [
            *(*require_root(), *APART, sys.executable, "-m", "morocco", "bench", image),
            *(str(data_dir), "parus", *sizes, "-o", str(log)),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )


@pytest.mark.parametrize("life", [0.5, 30])
def test_a_container_whose_processes_cannot_be_seen_is_not_measured(
    life: float, command_image: Command, data_dir: Path, log: Path
) -> None:
    done = measure_apart(command_image("sh", "-c", f"cat; sleep {life}"), data_dir, log)
    assert done.returncode == 4, done.stderr
    assert "not visible from here" in done.stderr
    assert "--pid=host" in done.stderr
    assert read_failed_record(log)["failure"]["kind"] == "EngineError"
    assert not log.exists()
