"""From the paths a user gives to logs: all that are found have to be good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from morocco.errors import DataError
from morocco.find import Found, find_logs
from morocco.logs import Log, parse_samples


@dataclass(frozen=True)
class Collection:
    """The logs found, and what was found beside them."""

    logs: tuple[Log, ...]
    many_models: bool
    """Whether the logs lie in more than one model folder."""
    remarks: tuple[str, ...] = ()
    """Files that were passed over, one line each."""


def collect_logs(paths: Sequence[Path]) -> Collection:
    """Read every log below `paths`, sorted by model and path.

    DataError for a path that is not there, holds no log, or holds one that cannot be read.
    """
    with find_logs(paths) as finding:
        logs = tuple(map(_read, finding.logs))
    return Collection(logs, finding.many_models, finding.remarks)


def _read(found: Found) -> Log:
    try:
        samples = parse_samples(found.read_lines(), found.name)
    except OSError as error:
        raise DataError(f"Cannot read {found.name}: {error}.") from None
    return Log(found.name, found.model, found.path, samples)


def by_model_and_task(logs: Sequence[Log]) -> dict[tuple[str, str], list[Log]]:
    """Return the logs grouped by (model, task), in their order."""
    groups: dict[tuple[str, str], list[Log]] = {}
    for log in logs:
        groups.setdefault((log.model, log.path.task), []).append(log)
    return groups
