"""All runs of a submission sorted for a report: what is good, what failed, and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePath

from morocco.errors import DataError
from morocco.logs.log import INIT_SIZE, Log, Size
from morocco.logs.record import RunRecord
from morocco.logs.submission import Entry, FailedRun, Submission
from morocco.report.comparison import measure, measure_spread, read_group
from morocco.report.model import Cell
from morocco.stats.estimates import Estimate
from morocco.stats.grouping import Clock, Group, TaskRuns, group_runs
from morocco.util.units import plural

Key = tuple[str, str]
"""Model and task."""


@dataclass(frozen=True)
class Failed:
    """A run that is not good."""

    size: Size
    cause: str
    """In a word or two: "out of memory"."""


@dataclass(frozen=True)
class SubmissionRuns:
    """A submission by model and task."""

    submission: Submission

    @cached_property
    def records(self) -> dict[str, RunRecord]:
        """The records that can be read, by the name of their log."""
        entries = self.submission.entries
        return {entry.name: entry.record for entry in entries if entry.record is not None}

    @cached_property
    def good(self) -> dict[Key, list[Log]]:
        """The logs that can be read and whose record, if there is one, tells of no failure."""
        found: dict[Key, list[Log]] = {}
        for entry in self.submission.entries:
            if entry.log is not None and self._find_fault(entry) is None:
                found.setdefault((entry.model, entry.path.task), []).append(entry.log)
        return found

    @cached_property
    def failed(self) -> dict[Key, list[Failed]]:
        """All other runs."""
        found: dict[Key, list[Failed]] = {}
        for entry in self.submission.entries:
            fault = self._find_fault(entry)
            if fault is not None:
                _add(found, entry, fault)
        for run in self.submission.failed:
            _add(found, run, (run.record and _name_cause(run.record)) or "failed")
        return found

    def _find_fault(self, entry: Entry) -> str | None:
        if entry.log is None:
            return "log cannot be read"
        record = self.records.get(entry.name)
        return _name_cause(record) if record else None


def _add(found: dict[Key, list[Failed]], run: Entry | FailedRun, cause: str) -> None:
    found.setdefault((run.model, run.path.task), []).append(Failed(run.path.size, cause))


def _name_cause(record: RunRecord) -> str | None:
    """Return why the run of a record failed, in words: `OutOfMemory` is "out of memory"."""
    kind = record.failure and record.failure.kind
    if record.exit_code and kind in (None, "TargetError"):
        return f"exit code {record.exit_code}"
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).lower() if kind else None


def say_causes(failed: Sequence[Failed]) -> str:
    """Return the causes, the most frequent first: "out of memory, timed out"."""
    return ", ".join(cause for cause, _ in Counter(run.cause for run in failed).most_common())


def rename_models(submission: Submission, names: Mapping[str, str], *, merge: bool) -> Submission:
    """Return the submission with other names for its models, by their old ones.

    DataError, unless they may `merge`, for two models of a name.
    """
    models = list_models(submission)
    new = [names.get(model, model) for model in models]
    twice = [name for name, count in Counter(new).items() if count > 1]
    if twice and not merge:
        raise DataError(
            f"--name: several models would be called {twice[0]!r}, and their runs mixed. Give each "
            "its own name; only --by gpu compares the runs of one model from several folders."
        )
    return replace(
        submission,
        entries=tuple(_rename_entry(e, names.get(e.model, e.model)) for e in submission.entries),
        many_models=len(set(new)) > 1,
        failed=tuple(replace(r, model=names.get(r.model, r.model)) for r in submission.failed),
    )


def _rename_entry(entry: Entry, model: str) -> Entry:
    return replace(entry, model=model, log=entry.log and replace(entry.log, model=model))


def list_models(submission: Submission) -> list[str]:
    """Return the names of the models, sorted; those with failed runs alone are among them."""
    runs: tuple[Entry | FailedRun, ...] = (*submission.entries, *submission.failed)
    return sorted({run.model for run in runs})


@dataclass(frozen=True)
class Choice:
    """The size of a cell that counts, or why there is none."""

    group: Group | None
    reason: str | None
    passed_over: tuple[Size, ...] = ()
    """Other sizes that have a speed."""


def choose(logs: Sequence[Log], failed: Sequence[Failed], clock: Clock, *, many: bool) -> Choice:
    """Return the long size with most runs among those with a speed; of equals the largest input.

    `logs` and `failed` are of one model and task.
    """
    if not logs:
        return Choice(None, _say_nothing_good(failed))
    task = group_runs(list(logs), clock, many)
    usable = [group for group in task.groups if group.has_speed]
    if not usable:
        return Choice(None, _find_reason(task, failed))
    best = max(usable, key=lambda group: (len(group.long.runs), group.path.size))
    return Choice(best, None, tuple(group.path.size for group in usable if group is not best))


def _say_nothing_good(failed: Sequence[Failed]) -> str:
    if not failed:
        return "no runs"
    return f"{_all(len(failed))} failed: {say_causes(failed)}"


def _all(count: int) -> str:
    return f"all {count} runs" if count > 1 else "the only run"


def _find_reason(task: TaskRuns, failed: Sequence[Failed]) -> str:
    if not task.init.logs:
        return "no 1_1 runs" + _say_failed([f for f in failed if f.size == INIT_SIZE])
    if not task.groups:
        return "no long runs" + _say_failed([f for f in failed if f.size != INIT_SIZE])
    if not task.init.runs or not any(group.long.runs for group in task.groups):
        return "no GPU reading to start the clock from"
    short = [run.log for group in task.groups for run in group.too_short]
    names = ", ".join(PurePath(log.name).name for log in short)
    return f"{names}: not longer than the start-up, {task.groups[0].init_time:.1f} s"


def _say_failed(failed: Sequence[Failed]) -> str:
    return f": {plural(len(failed), 'run')} failed, {say_causes(failed)}" if failed else ""


def make_cell(
    key: Key,
    logs: Sequence[Log],
    failed: Sequence[Failed],
    choice: Choice,
    estimate: Estimate | None,
    records: Mapping[str, RunRecord],
) -> Cell:
    """Return a cell; `estimate` is that of the group that was chosen."""
    if choice.group is None or estimate is None:
        tried = len(logs) + len(failed)
        return Cell(*key, tuple(logs), reason=choice.reason, failed=len(failed), tried=tried)
    readings = read_group(choice.group, records)
    sizes = (INIT_SIZE, choice.group.path.size)
    counted = sum(run.size in sizes for run in failed)
    return Cell(
        *key,
        tuple(logs),
        estimate,
        readings=readings,
        ram=measure("ram", readings),
        ram_batch=max(readings.ram_batch, default=None),
        energy=measure("energy", readings),
        spread=measure_spread(readings),
        failed=counted,
        tried=len(choice.group.init.logs) + len(choice.group.long.logs) + counted,
    )
