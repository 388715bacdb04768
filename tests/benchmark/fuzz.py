"""What the files of strangers cost: no traceback, a bounded time, a bounded memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from figures import Figure
from strange_files import Case, Outcome, cases, plots, run_case

_COUNT = "FUZZ"
"""The variable with the number of files: 10,000 take six minutes."""
_USUAL_COUNT = 2000
_SECONDS, _BYTES = 5, 200 * 10**6


def measure_fuzz(folder: Path) -> Iterator[Figure]:
    """Yield the number of tracebacks, the longest time and the largest memory of many files."""
    done = subprocess.run(  # on its own: the other benchmarks import more than morocco does
        [sys.executable, __file__, str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        check=True,
    )
    found = json.loads(done.stdout)
    name = f"{found['files']:,} strange files, {found['commands']:,} commands"
    faults, slowest, largest = found["faults"], found["slowest"], found["largest"]
    yield Figure(f"{name}: tracebacks and the like", "-", "0", f"{faults}", not faults)
    yield Figure(
        f"{name}: the slowest, CPU time",
        *("-", f"under {_SECONDS} s", f"{slowest:.2f} s", slowest < _SECONDS),
    )
    yield Figure(
        f"{name}: the largest",
        *("-", f"under {_BYTES / 1e6:.0f} MB", f"{largest / 1e6:.0f} MB", largest < _BYTES),
    )


def main(folder: Path) -> None:
    """Try the files, and print what came of it as JSON, faults on stderr."""
    count = int(os.environ.get(_COUNT, _USUAL_COUNT))
    outcomes: list[Outcome] = []
    peaks: list[int] = []
    import matplotlib.backends.backend_svg  # noqa: F401 (part of what the largest command takes)

    base = _read_memory("VmRSS")  # later the fuzzer itself takes more and more

    def try_case(case: Case) -> None:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
            before = _read_memory("VmRSS")
            outcomes.extend(run_case(case, Path(place)))
            peaks.append(base + _read_memory("VmHWM") - before)

    many = settings(max_examples=count, database=None, deadline=None, phases=[Phase.generate])
    many = settings(many, suppress_health_check=list(HealthCheck))
    seed(1)(many(given(cases)(try_case)))()
    few = settings(many, max_examples=count // 100)  # a plot takes a second
    seed(2)(few(given(plots())(try_case)))()
    faults = [outcome for outcome in outcomes if outcome.fault]
    for outcome in faults:
        print(" ".join(outcome.words), outcome.fault, sep="\n", file=sys.stderr)  # noqa: T201
    found = {
        "files": len(peaks),
        "commands": len(outcomes),
        "faults": len(faults),
        "slowest": max(outcome.seconds for outcome in outcomes),
        "largest": max(peaks),
    }
    print(json.dumps(found))  # noqa: T201


def _read_memory(field: str) -> int:
    """Return the memory that this process holds, or held at most, in bytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{field}:")[1].split()[0]) * 1024


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile's, of names that occur twice
        main(Path(sys.argv[1]))
