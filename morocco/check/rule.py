"""What a rule is: a function that judges a submission, and the texts that stand beside it.

A new rule is one function under `@rule` in the room of its subject, and its name in the order of
`check.RULES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from morocco.check.context import CheckContext
from morocco.check.result import Detail, RuleResult, Severity

RERUN = "run the same `morocco suite …` again: it measures only what is missing"
REMEASURE = f"delete these logs, then {RERUN}"
_UNKNOWN = "unknown, no log has a record"

Judge = Callable[[CheckContext], Iterable[Detail]]
"""Yields one detail for everything that breaks the rule."""


@dataclass(frozen=True)
class Rule:
    """One thing that `check` asks of a submission."""

    judge: Judge
    id: str
    severity: Severity
    """The status of a broken rule."""
    good: str
    """What holds if no detail is found."""
    bad: str
    """What does not hold; the details follow."""
    todo: str
    """What to do about it; by default, measure again."""
    needs_records: bool = False
    """Whether the rule can judge nothing without run records."""

    def apply(self, context: CheckContext) -> RuleResult:
        """Judge a submission."""
        details = tuple(self.judge(context))
        if details:
            return RuleResult(self.id, self.severity, self.bad, details, self.todo)
        unknown = self.needs_records and not context.records
        return RuleResult(self.id, "Yes", _UNKNOWN if unknown else self.good)


def rule(
    severity: Severity,
    *,
    good: str,
    bad: str,
    todo: str = REMEASURE,
    needs_records: bool = False,
) -> Callable[[Judge], Rule]:
    """Turn a function into a rule whose id is its name with hyphens; see `Rule` for the texts."""

    def build(judge: Judge) -> Rule:
        id = judge.__name__.replace("_", "-")
        return Rule(judge, id, severity, good, bad, todo, needs_records)

    return build
