"""`make benchmark`: every figure that morocco promises, beside its target.

Takes under 25 minutes on a machine that should do nothing else. Arguments choose among startup,
speed, delays, beat, memory, throughput, quiet, suite, lanes, scoring, reports, baselines, fuzz and
intervals; and kills, which takes 20 minutes more and runs only if it is named.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from baselines import measure_baselines
from beat import measure_beat
from delays import measure_delays
from figures import Figure, format_table
from fuzz import measure_fuzz
from intervals import measure_intervals
from kills import measure_kills
from lanes import measure_lanes
from memory import measure_memory
from quiet import measure_quiet
from reports import measure_reports
from scoring import measure_scoring
from speed import measure_speed
from startup import measure_startup
from suites import measure_suite
from throughput import measure_throughput

_BENCHMARKS = {
    "startup": measure_startup,
    "speed": measure_speed,
    "delays": measure_delays,
    "beat": measure_beat,
    "memory": measure_memory,
    "throughput": measure_throughput,
    "quiet": measure_quiet,
    "suite": measure_suite,
    "lanes": measure_lanes,
    "scoring": measure_scoring,
    "reports": measure_reports,
    "baselines": measure_baselines,
    "fuzz": measure_fuzz,
    "intervals": measure_intervals,
    "kills": measure_kills,
}
_BY_NAME_ONLY = ("kills",)


def main(names: list[str]) -> None:
    """Measure, print the table, and exit with 1 where a target is missed."""
    figures: list[Figure] = []
    for name in names or [name for name in _BENCHMARKS if name not in _BY_NAME_ONLY]:
        with tempfile.TemporaryDirectory() as folder:
            for figure in _BENCHMARKS[name](Path(folder)):
                print(f"{figure.name}: {figure.measured}", file=sys.stderr, flush=True)  # noqa: T201
                figures.append(figure)
    print(format_table(figures))  # noqa: T201
    sys.exit(not all(figure.reached for figure in figures))


if __name__ == "__main__":
    main(sys.argv[1:])
