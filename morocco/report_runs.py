"""All runs of a submission sorted for a report: what is good, what failed, and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from morocco.case import Size
from morocco.errors import DataError
from morocco.logs import Log
from morocco.recorded import Recorded, read_record
from morocco.submission import Entry, FailedRun, Submission

Key = tuple[str, str]
"""Model and task."""


@dataclass(frozen=True)
class Failed:
    """A run that is not good."""

    size: Size
    cause: str
    """In a word or two: "out of memory"."""


@dataclass(frozen=True)
class Runs:
    """A submission by model and task."""

    submission: Submission

    @cached_property
    def records(self) -> dict[str, Recorded]:
        """What the records say, by the name of their log."""
        told = ((entry.name, entry.record) for entry in self.submission.entries)
        return {name: read_record(record) for name, record in told if record is not None}

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
            _add(found, run, _name_cause(read_record(run.record or {})) or "failed")
        return found

    def _find_fault(self, entry: Entry) -> str | None:
        if entry.log is None:
            return "log cannot be read"
        record = self.records.get(entry.name)
        return _name_cause(record) if record else None


def _add(found: dict[Key, list[Failed]], run: Entry | FailedRun, cause: str) -> None:
    path = run.path
    failed = Failed((path.input_size, path.batch_size), cause)
    found.setdefault((run.model, path.task), []).append(failed)


def _name_cause(record: Recorded) -> str | None:
    """Return why the run of a record failed, in words: `OutOfMemory` is "out of memory"."""
    if record.exit_code and record.failure in (None, "TargetError"):
        return f"exit code {record.exit_code}"
    if record.failure is None:
        return None
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", record.failure).lower()


def say_causes(failed: Sequence[Failed]) -> str:
    """Return the causes, the most frequent first: "out of memory, timed out"."""
    return ", ".join(cause for cause, _ in Counter(run.cause for run in failed).most_common())


def rename(submission: Submission, names: Mapping[str, str], *, merge: bool) -> Submission:
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
