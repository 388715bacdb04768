"""What remains of suites that are killed a thousand times, and in containers a hundred times."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

from figures import Figure
from random_kills import Victim, kill_suites
from runs import METRONOME
from suites import TASKS, count_containers, show_harm, suite_command, tag_image, write_data

_KILLS, _CONTAINER_KILLS = 1000, 100
_REPEATS = 3
_PLAN = len(TASKS) * 2 * _REPEATS


def measure_kills(folder: Path) -> Iterator[Figure]:
    """Yield what 1000 kills of suites of processes harmed, and 100 of suites of containers."""
    write_data(folder)
    metronome = shlex.join(["exec:" + sys.executable, str(METRONOME), "--rate", "200"])
    process = Victim(suite_command(metronome, folder, _REPEATS), _PLAN, longest=1.5)
    with ThreadPoolExecutor(2) as pool:  # as two users of a machine
        jobs = [
            pool.submit(kill_suites, process, folder / f"logs-{n}", _KILLS // 2, Random(n))
            for n in (1, 2)
        ]
        yield show_harm("processes", sum((job.result() for job in jobs), Counter[str]()))
    with tag_image("--rate 200 --hang 0.3") as target:
        container = Victim(suite_command(target, folder, _REPEATS), _PLAN, longest=3)
        harm = kill_suites(container, folder / "containers", _CONTAINER_KILLS, Random(3))
        yield show_harm("containers", harm, count_containers())
