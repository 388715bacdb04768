"""Measure a container on the GPUs that NVML shows, although the engine has none to hand out.

Arguments: image, data file, log, arguments of the container.
"""

from __future__ import annotations

import sys
from pathlib import Path

from morocco.bench.display import RunDisplay
from morocco.bench.run import RunSpec, run_target
from morocco.bench.writers import FileWriter
from morocco.hardware.gpu import Gpus
from morocco.targets.container import ContainerTarget
from morocco.targets.options import RunOptions
from morocco.tasks import load_records

image, data, log, *arguments = sys.argv[1:]
options = RunOptions(rate=10)
with Gpus.open("all") as gpus, RunDisplay(live=False, quiet=True) as display:
    target = ContainerTarget(image, arguments, options, (), lambda _: None)
    spec = RunSpec(image, "parus", load_records(Path(data), 100), batch_size=32, options=options)
    run_target(spec, target, gpus, FileWriter(Path(log)), display)
