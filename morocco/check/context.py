"""What the rules judge: a submission with its runs grouped, and a profile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from morocco.check.profile import Profile
from morocco.logs.log import Log, group_by_task
from morocco.logs.record import RunRecord
from morocco.logs.submission import Submission
from morocco.stats.grouping import Group, TaskRuns, group_runs


@dataclass(frozen=True)
class CheckContext:
    """A submission and the profile that it is checked against."""

    submission: Submission
    profile: Profile

    @cached_property
    def models(self) -> list[str]:
        return list(dict.fromkeys(entry.model for entry in self.submission.entries))

    @cached_property
    def logs(self) -> tuple[Log, ...]:
        """Those that can be read."""
        return tuple(entry.log for entry in self.submission.entries if entry.log is not None)

    @cached_property
    def records(self) -> dict[str, RunRecord]:
        """The records that can be read, by the name of their log."""
        entries = self.submission.entries
        return {entry.name: entry.record for entry in entries if entry.record is not None}

    @cached_property
    def tasks(self) -> dict[tuple[str, str], TaskRuns]:
        """All readable runs, by model and task."""
        tasks = group_by_task(self.logs)
        return {key: group_runs(logs, "log", many_models=False) for key, logs in tasks.items()}

    @cached_property
    def groups(self) -> list[Group]:
        """The long runs of each task and size, even if there are no start-up runs beside them."""
        return [group for task in self.tasks.values() for group in task.groups]

    @cached_property
    def measured(self) -> list[Group]:
        """The groups that have a speed: every run is longer than the start-up."""
        return [group for group in self.groups if group.has_speed]

    def recorded(self) -> Iterator[tuple[Log, RunRecord]]:
        """Yield the logs that have a record, with it."""
        for log in self.logs:
            if log.name in self.records:
                yield log, self.records[log.name]
