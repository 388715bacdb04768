"""Submissions made in memory: a valid one, and ways to spoil it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import count
from typing import Any

from morocco.check.check import check
from morocco.check.profile import RUSSIAN_SUPERGLUE, Profile
from morocco.check.rule import CheckResult, RuleResult
from morocco.logs.log import Log, LogPath
from morocco.logs.record import parse_record
from morocco.logs.samples import Sample
from morocco.logs.submission import Entry, Submission
from morocco.tasks import TASKS
from sample_logs import BEGIN, INIT, LONG, make_record, make_samples

NINE = tuple(TASKS)


def make_entry(path: LogPath, samples: tuple[Sample, ...], model: str = "rubert") -> Entry:
    """Return a log that was read, and the record of a good run."""
    name = f"{model}/{path}"
    log = Log(name, model, path, samples)
    digest = sha256(repr(samples).encode()).hexdigest()
    return Entry(name, model, path, log, None, digest, parse_record(make_record(log)))


def make_submission(
    tasks: Sequence[str] = NINE,
    models: Sequence[str] = ("rubert",),
    *,
    runs: int = 5,
    long: Sequence[tuple[int, int]] = (LONG,),
) -> Submission:
    """Return a valid submission: start-up takes 10 s, the work 40 s."""
    serial = count()
    entries = [
        make_entry(
            LogPath(task, *size, index),
            make_samples(BEGIN + 100.7 * next(serial), 10.0 if size == INIT else 50.0),
            model,
        )
        for model in models
        for task in tasks
        for size in (INIT, *long)
        for index in range(1, runs + 1)
    ]
    return Submission(tuple(entries), len(models) > 1)


def change(
    submission: Submission, files: Sequence[str], spoil: Callable[[Entry], Entry]
) -> Submission:
    """Return the submission with some of its entries, as `parus/1_1_01.jsonl`, changed."""
    there = {str(entry.path) for entry in submission.entries}
    assert set(files) <= there, set(files) - there
    entries = [spoil(entry) if str(entry.path) in files else entry for entry in submission.entries]
    return replace(submission, entries=tuple(entries))


def drop(submission: Submission, *files: str) -> Submission:
    """Return the submission without the logs whose names start with `files`."""
    kept = [entry for entry in submission.entries if not str(entry.path).startswith(files)]
    assert len(kept) < len(submission.entries)
    return replace(submission, entries=tuple(kept))


def with_samples(
    make: Callable[[Log], tuple[Sample, ...]], *, record: bool = True
) -> Callable[[Entry], Entry]:
    """Spoil the samples of an entry; its record fits them, or is left out."""

    def spoil(entry: Entry) -> Entry:
        assert entry.log
        spoilt = make_entry(entry.path, make(entry.log), entry.model)
        return spoilt if record else replace(spoilt, record=None)

    return spoil


def lasting(run_time: float, **how: Any) -> Callable[[Entry], Entry]:
    """Make runs that take this many seconds."""
    return with_samples(lambda log: make_samples(log.samples[0].timestamp, run_time, **how))


def with_record(**changes: Any) -> Callable[[Entry], Entry]:
    """Change keys of the record."""

    def spoil(entry: Entry) -> Entry:
        assert entry.log
        return replace(entry, record=parse_record(make_record(entry.log, **changes)))

    return spoil


def without_records(submission: Submission) -> Submission:
    entries = [replace(entry, record=None) for entry in submission.entries]
    return replace(submission, entries=tuple(entries))


def find(checked: CheckResult, rule: str) -> RuleResult:
    (result,) = [result for result in checked.results if result.rule == rule]
    return result


def ask(
    submission: Submission, rule: str, profile: Profile = RUSSIAN_SUPERGLUE
) -> dict[tuple[str, ...] | str, str]:
    """Return the details of one rule: the log, or the logs, and the text about them."""
    details = find(check(submission, profile), rule).details
    return {
        detail.files[0] if len(detail.files) == 1 else detail.files: detail.what
        for detail in details
    }
