"""Measure a container on the GPUs that NVML shows, though the engine has none to hand out.

Arguments: image, data file, log, arguments of the container.
"""

from __future__ import annotations

import sys
from pathlib import Path

from morocco.bench.display import RunDisplay
from morocco.bench.run import RunSpec, run_bench
from morocco.bench.writers import FileWriter
from morocco.hardware.gpu import Gpus
from morocco.targets.container import ContainerTarget
from morocco.targets.options import RunOptions
from morocco.tasks import load_records

image, data, log, *arguments = sys.argv[1:]
with Gpus.open("all") as gpus, RunDisplay(live=False, quiet=True) as screen:
    target = ContainerTarget(image, arguments, RunOptions(), (), lambda _: None)
    plan = RunSpec("parus", load_records(Path(data), 100), batch_size=32, period=0.1)
    run_bench(plan, target, gpus, FileWriter(Path(log)), screen)
