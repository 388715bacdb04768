"""How much a second lane gains, be it another GPU or another worker of a cluster."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from dask_cluster import DaskCluster
from engines import as_root
from figures import Figure
from gpu_engine import GpuEngine
from nvml_standin import Gpu, Process, build, environment, write_state
from suites import TASKS, suite_command, write_data

_GAIN = 1.9
_SLEEP = 6
"""Seconds that every run sleeps: long compared with the start of a container."""
_REPEATS = 2


def measure_lanes(folder: Path) -> Iterator[Figure]:
    """Yield how much faster a suite of sleeping containers is on two lanes than on one."""
    root = as_root()
    if root is None:
        raise SystemExit("lanes: only root can start the second engine that this needs.")
    write_data(folder)
    gpus = _plug_gpus(folder)
    with GpuEngine(root) as engine:
        for task in TASKS:
            engine.script(f"sleeper-{task}", f"cat; sleep {_SLEEP}")
        env = {**gpus, **engine.environment}
        alone = _time(folder, "alone", env)
        parallel = _time(folder, "parallel", env, "--parallel")
        yield _figure("two GPUs (--parallel)", alone / parallel)
        with DaskCluster(workers=0) as cluster:
            for _ in range(2):
                cluster.start_worker("--no-nanny", "--resources", "GPU=1", env=engine.environment)
            cluster.wait()
            spread = _time(folder, "cluster", env, "--cluster", cluster.address)
        yield _figure("two Dask workers (--cluster)", alone / spread)


def _plug_gpus(folder: Path) -> Mapping[str, str]:
    """Return the environment of a machine with two GPUs."""
    names = ("GPU-benchmark-1", "GPU-benchmark-2")
    state = folder / "machine"
    write_state(state, [Gpu(name, 2**30, 50, [Process(f"top:{name}", 2**30)]) for name in names])
    return environment(build(folder), state)


def _time(folder: Path, name: str, env: Mapping[str, str], *options: str) -> float:
    command = suite_command("sleeper-{task}", folder, _REPEATS, "--logs", folder / name, *options)
    start = time.perf_counter()
    subprocess.run(command, check=True, env=dict(env))
    return time.perf_counter() - start


def _figure(lanes: str, gain: float) -> Figure:
    return Figure(
        f"suite of sleeping containers on {lanes}, against one lane",
        *("-", f"{_GAIN} times faster", f"{gain:.2f}", gain >= _GAIN),
    )
