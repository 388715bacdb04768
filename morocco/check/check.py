"""Check a submission: all rules in the order in which they are reported."""

from __future__ import annotations

from morocco.check import file_rules, record_rules, timing_rules
from morocco.check.context import CheckContext
from morocco.check.profile import RUSSIAN_SUPERGLUE, Profile
from morocco.check.rule import CheckResult
from morocco.logs.submission import Submission

RULES = (
    file_rules.complete,
    file_rules.tasks,
    file_rules.sizes,
    file_rules.readable,
    file_rules.forward,
    file_rules.cadence,
    timing_rules.late_clock,
    timing_rules.finished,
    file_rules.readings,
    file_rules.gpu,
    timing_rules.start_up,
    timing_rules.speed,
    timing_rules.work,
    timing_rules.spread,
    timing_rules.gpu_busy,
    record_rules.records,
    record_rules.same_run,
    record_rules.one_machine,
    record_rules.one_image,
    record_rules.one_input,
    file_rules.copies,
    file_rules.overlap,
    record_rules.foreign_load,
    record_rules.foreign_cpu,
    record_rules.clocks,
    record_rules.warnings,
    record_rules.reference_machine,
    file_rules.remarks,
)


def check(submission: Submission, profile: Profile = RUSSIAN_SUPERGLUE) -> CheckResult:
    """Judge a submission by every rule; it is valid if no rule says NO."""
    context = CheckContext(submission, profile)
    results = tuple(rule.apply(context) for rule in RULES)
    return CheckResult(profile.name, submission.many_models, results)
