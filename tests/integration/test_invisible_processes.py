"""morocco in another PID namespace than the engine, as in the containers of CI jobs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import Command

from gpu_machine import require_root
from runs import read_failed_record, run_bench_behind

APART = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


def measure_apart(image: str, data_dir: Path, log: Path) -> subprocess.CompletedProcess[str]:
    """Run `bench` where the processes of the engine cannot be seen."""
    return run_bench_behind((*require_root(), *APART), image, data_dir, log)


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
