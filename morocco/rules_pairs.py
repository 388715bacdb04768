"""Rules on pairs of runs: no run is another one's copy, and no two share the machine."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from morocco.case import Case
from morocco.findings import Detail, name_file, tell
from morocco.logs import Log
from morocco.recorded import Recorded
from morocco.units import Seconds

SAME_STEP: Seconds = 0.0005
"""Adding a number to all timestamps changes the steps between them by far less than this."""
TELLING = 10
"""So many different lines of readings are never the same in two runs."""
TOUCHING: Seconds = 0.1
"""The machine's clock may be set between two runs."""

AT_ONCE = 500
"""No park of machines runs more at once; a zip that claims it must not take minutes."""


def find_copies(case: Case) -> Iterator[Detail]:
    """Yield each log that is another one's copy, byte for byte or shifted in time."""
    digests: dict[str, Log] = {}
    shapes: dict[bytes, list[Log]] = {}
    names = {entry.name: entry.digest for entry in case.entries}
    for log in case.logs:
        first = digests.setdefault(names[log.name], log)
        alike = shapes.setdefault(log.fingerprint, [])
        if first is not log:
            yield tell([log], f"the same file as {_name(first, log)}")
        else:
            original = next((other for other in alike if _is_shifted(log, other)), None)
            if original is not None:
                yield tell([log], f"the readings of {_name(original, log)}")
            alike.append(log)


def _is_shifted(log: Log, other: Log) -> bool:
    """Tell whether two logs with the same readings are one: so many, or in the same rhythm."""
    lines: set[tuple[object, ...]] = set()
    for sample in log.samples:  # not all at once: a log may have millions
        lines.add(sample[1:])
        if len(lines) >= TELLING:
            return True
    steps = zip(pairwise(log.samples), pairwise(other.samples), strict=True)
    return len(log.samples) > 2 and all(
        abs((b.timestamp - a.timestamp) - (d.timestamp - c.timestamp)) < SAME_STEP
        for (a, b), (c, d) in steps
    )


def find_overlaps(case: Case) -> Iterator[Detail]:
    """Yield each log that begins before another one has ended, unless each has its own machine."""
    running: list[Log] = []
    for log in sorted(case.logs, key=lambda log: (log.samples[0].timestamp, log.name)):
        start = log.samples[0].timestamp
        running = [other for other in running if _end(other) - start > TOUCHING]
        beside = next((other for other in running if _may_disturb(log, other, case)), None)
        if beside is not None:
            shared = min(_end(beside), _end(log)) - start
            yield tell([log], f"{shared:.1f} s beside {_name(beside, log)}")
        running = [*running[1 - AT_ONCE :], log]


def _end(log: Log) -> Seconds:
    return log.samples[-1].timestamp


def _may_disturb(log: Log, other: Log, case: Case) -> bool:
    if min(_end(log), _end(other)) - log.samples[0].timestamp <= TOUCHING:
        return False
    one, two = case.records.get(log.name), case.records.get(other.name)
    if one and two:
        if _differ(one.host_name, two.host_name) or _differ(one.machine, two.machine):
            return False
        if _uuids(one) and _uuids(two):
            return not _uuids(one).isdisjoint(_uuids(two))
    return log.model == other.model or _share_host(one, two)


def _differ(one: str | None, two: str | None) -> bool:
    return one is not None and two is not None and one != two


def _share_host(one: Recorded | None, two: Recorded | None) -> bool:
    """Tell whether records say so: models of two authors may well be measured at the same time."""
    return bool(one and two and one.host_name and one.host_name == two.host_name)


def _uuids(record: Recorded) -> set[str]:
    return {gpu.uuid for gpu in record.gpus or () if gpu.uuid}


def _name(log: Log, beside: Log) -> str:
    name = name_file(log)
    return name if log.model == beside.model else f"{log.model}/{name}"
