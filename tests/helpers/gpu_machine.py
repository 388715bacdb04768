"""Fixtures that play a machine with GPUs: its driver and, where containers run, its engine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engines import as_root
from gpu_engine import GpuEngine
from nvml_standin import Gpu, build, environment, write_state


class Machine:
    """A computer whose GPUs a test plugs in and out."""

    def __init__(self, library: Path, state: Path) -> None:
        self._state = state
        self.environment = environment(library, state)
        self.plug()

    def plug(self, *gpus: Gpu, **facts: Any) -> None:
        write_state(self._state, gpus, **facts)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def machine(library: Path, tmp_path: Path) -> Machine:
    return Machine(library, tmp_path / "machine")


@pytest.fixture(scope="session")
def gpu_engine() -> Iterator[GpuEngine]:
    """An engine that hands out GPUs; if none can be started, skip the test, or fail in CI."""
    with GpuEngine(require_root()) as engine:
        yield engine


def require_root() -> list[str]:
    """Return the prefix of a command that starts an engine; without root, skip or fail."""
    root = as_root()
    if root is None or shutil.which("dockerd") is None:
        stop = pytest.fail if os.environ.get("CI") else pytest.skip
        stop("NOT TESTED: only root can start an engine (dockerd). Run the tests as root.")
    return root
