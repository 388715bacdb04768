"""The verdict on a submission: every rule on all that was found of it."""

from __future__ import annotations

from morocco.case import Case
from morocco.findings import Report
from morocco.profile import RUSSIAN_SUPERGLUE, Profile
from morocco.rules import RULES
from morocco.submission import Submission


def check(submission: Submission, profile: Profile = RUSSIAN_SUPERGLUE) -> Report:
    """Return what each rule finds, the same for whoever asks; VALID if none says NO."""
    case = Case(submission, profile)
    findings = tuple(rule.apply(case) for rule in RULES)
    return Report(profile.name, submission.many_models, findings)
