"""The rules of `check`, one after the other: what each asks, and the way out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from morocco.check.context import CheckContext
from morocco.check.file_rules import (
    find_backward,
    find_copies,
    find_foreign_tasks,
    find_gaps,
    find_many_sizes,
    find_missing,
    find_null,
    find_overlaps,
    find_unreadable,
    find_unseen,
)
from morocco.check.profile import RUSSIAN_SUPERGLUE, Profile
from morocco.check.record_rules import (
    find_foreign_load,
    find_images,
    find_inputs,
    find_machines,
    find_other_machines,
    find_strangers,
    find_unrecorded,
    find_warnings,
)
from morocco.check.result import CheckResult, Detail, RuleResult, Severity
from morocco.check.timing_rules import (
    find_idle_gpus,
    find_late_clocks,
    find_little_work,
    find_no_speed,
    find_outliers,
    find_scattered_starts,
    find_unfinished,
)
from morocco.logs.submission import Submission

_SUITE = "run the same `morocco suite …` again: it measures what is missing"
_WHOLE_SUITE = f"{_SUITE}, if its --tasks and --repeats ask for all"
_AGAIN = f"delete these logs, then {_SUITE}"
_UNKNOWN = "nothing is known of it: no log has a record"


@dataclass(frozen=True)
class Rule:
    """One thing that is asked of a submission."""

    id: str
    severity: Severity
    """What it is when it does not hold."""
    find: Callable[[CheckContext], Iterable[Detail]]
    """Yields what speaks against it."""
    good: str
    """What holds where nothing was found."""
    bad: str
    """What does not hold; the details follow."""
    todo: str
    needs_records: bool = False
    """Whether logs alone say nothing of it."""

    def apply(self, case: CheckContext) -> RuleResult:
        """Return what the rule finds."""
        details = tuple(self.find(case))
        if details:
            return RuleResult(self.id, self.severity, self.bad, details, self.todo)
        unknown = self.needs_records and not case.records
        return RuleResult(self.id, "Yes", _UNKNOWN if unknown else self.good)


RULES = (
    Rule(
        "complete",
        "NO",
        find_missing,
        "every task has enough runs of both sizes",
        "runs are missing",
        _WHOLE_SUITE,
    ),
    Rule(
        "tasks",
        "warn",
        find_foreign_tasks,
        "no task is foreign to the suite",
        "these are no tasks of the suite",
        "rename their folder, or delete it",
    ),
    Rule(
        "sizes",
        "warn",
        find_many_sizes,
        "every task has one long size",
        "other sizes lie side by side with those that count",
        "keep one long size a task and delete the others",
    ),
    Rule(
        "readable",
        "NO",
        find_unreadable,
        "every log can be read",
        "these are no logs",
        _AGAIN,
    ),
    Rule(
        "forward",
        "NO",
        find_backward,
        "time goes forward in every log",
        "time goes back",
        _AGAIN,
    ),
    Rule(
        "cadence",
        "NO",
        find_gaps,
        "no log has a gap",
        "samples are missing",
        f"let nothing else work on the machine; {_AGAIN}",
    ),
    Rule(
        "late-clock",
        "NO",
        find_late_clocks,
        "the clock starts with the task",
        "the clock started late, with the task already loaded, so the speed is too high",
        _AGAIN,
    ),
    Rule(
        "finished",
        "NO",
        find_unfinished,
        "every run came to its end",
        "these failed or were cut off",
        _AGAIN,
    ),
    Rule(
        "readings",
        "NO",
        find_null,
        "every log holds readings",
        "no reading on any line, the process was not found",
        _AGAIN,
    ),
    Rule(
        "gpu",
        "NO",
        find_unseen,
        "all runs were seen on a GPU, or none",
        "not seen on a GPU",
        f"for a model that needs no GPU use --gpus none; {_AGAIN}",
    ),
    Rule(
        "start-up",
        "NO",
        find_scattered_starts,
        "start-up takes about the same time in all 1_1 runs of a task",
        "slow starts, as of a fresh image on a cold disk (or the fastest run was cut off)",
        f"do a run that you throw away first; {_AGAIN}",
    ),
    Rule(
        "speed",
        "NO",
        find_no_speed,
        "every long run is longer than the start-up",
        "not longer than the start-up, so there is no speed",
        "measure with a larger --input-size",
    ),
    Rule(
        "work",
        "warn",
        find_little_work,
        "the work is long enough to be timed",
        "too little work beside the start-up to time it well",
        "measure with a larger --input-size",
    ),
    Rule(
        "spread",
        "warn",
        find_outliers,
        "the speed is about the same in all runs of a size",
        "the speed varies",
        _AGAIN,
    ),
    Rule(
        "gpu-busy",
        "warn",
        find_idle_gpus,
        "no GPU is idle while the model works",
        "the GPU is not busy while the model works",
        "measure with a larger --batch-size, if the model can use it",
    ),
    Rule(
        "records",
        "warn",
        find_unrecorded,
        "every log has a run record",
        "no run record beside the log, so how the run ended and where is not known",
        "keep the .json files that `morocco bench` writes beside the logs",
    ),
    Rule(
        "same-run",
        "NO",
        find_strangers,
        "every record belongs to its log",
        "the record is one of another run",
        _AGAIN,
        needs_records=True,
    ),
    Rule(
        "one-machine",
        "NO",
        find_machines,
        "each task was measured on one kind of machine",
        "one task on different machines",
        f"choose one machine; {_AGAIN}",
        needs_records=True,
    ),
    Rule(
        "one-image",
        "NO",
        find_images,
        "each task was measured with one image",
        "one task with different images",
        f"choose one image; {_AGAIN}",
        needs_records=True,
    ),
    Rule(
        "one-input",
        "NO",
        find_inputs,
        "each task was measured on one data file",
        "one task on different data",
        f"choose one DATA_DIR; {_AGAIN}",
        needs_records=True,
    ),
    Rule(
        "copies",
        "NO",
        find_copies,
        "no log is another one's copy",
        "copies",
        _AGAIN,
    ),
    Rule(
        "overlap",
        "NO",
        find_overlaps,
        "no two runs shared the machine",
        "two runs at the same time",
        f"do one run at a time on a machine, or on a GPU; {_AGAIN}",
    ),
    Rule(
        "foreign-load",
        "warn",
        find_foreign_load,
        "nobody else was on the GPUs before a start",
        "others were on the GPU before the start",
        f"end them; {_AGAIN}",
        needs_records=True,
    ),
    Rule(
        "warnings",
        "warn",
        find_warnings,
        "`morocco bench` warned of nothing else",
        "`morocco bench` warned",
        "do as the warnings say",
        needs_records=True,
    ),
    Rule(
        "reference-machine",
        "warn",
        find_other_machines,
        "the suite asks for no other machine",
        "not the machine of the suite, so numbers do not compare",
        "measure on the machine that the suite asks for",
        needs_records=True,
    ),
    Rule(
        "remarks",
        "warn",
        lambda case: [Detail(remark) for remark in case.submission.remarks],
        "no file was passed over",
        "passed over",
        "delete or rename what should not be there",
    ),
)


def check(submission: Submission, profile: Profile = RUSSIAN_SUPERGLUE) -> CheckResult:
    """Return what each rule finds, the same for whoever asks; VALID if none says NO."""
    case = CheckContext(submission, profile)
    findings = tuple(rule.apply(case) for rule in RULES)
    return CheckResult(profile.name, submission.many_models, findings)
