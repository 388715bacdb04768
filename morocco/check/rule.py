"""Rules and their results: functions that judge a submission, and what they find.

A new rule is one function under `@rule` in the room of its subject, and its name in the order of
`check.RULES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from morocco.check.context import CheckContext
from morocco.logs.log import Log
from morocco.logs.submission import Entry

RERUN = "run the same `morocco suite …` again: it measures only what is missing"
REMEASURE = "add --repair to the same `morocco suite …`, which measures these runs again"
CHANGE = f"delete the logs of the others, then {RERUN}"
_UNKNOWN = "unknown, no log has a record"

Severity = Literal["NO", "warn"]
Status = Literal["Yes", "NO", "warn"]


@dataclass(frozen=True)
class Detail:
    """One thing that breaks a rule."""

    what: str
    """In numbers: "828 records a second, the median is 1070"; may be empty."""
    model: str = ""
    files: tuple[str, ...] = ()
    """The logs it concerns, relative to the folder of their model: `parus/2000_32_01.jsonl`."""

    @classmethod
    def about(cls, logs: Sequence[Log | Entry], what: str = "") -> Detail:
        """Build a detail about one or more logs of one model."""
        return cls(what, logs[0].model, tuple(map(name_file, logs)))


def name_file(log: Log | Entry) -> str:
    """Return the path of a log relative to the folder of its model, as on disk."""
    return f"{log.path.task}/{PurePath(log.name).name}"


@dataclass(frozen=True)
class RuleResult:
    """The result of one rule."""

    rule: str
    status: Status
    says: str
    """What holds or, with details, what does not."""
    details: tuple[Detail, ...] = ()
    todo: str = ""
    """What to do about it; empty without details."""
    repeat: bool = False
    """Whether the logs that the details name have to be measured again, for a cause."""


@dataclass(frozen=True)
class CheckResult:
    """The verdict on a submission."""

    profile: str
    """The name of the suite that the submission was checked against."""
    many_models: bool
    """Whether the model is needed to tell the logs apart."""
    results: tuple[RuleResult, ...]
    """One per rule, in the order of the rules."""

    @property
    def valid(self) -> bool:
        return all(result.status != "NO" for result in self.results)


Judge = Callable[[CheckContext], Iterable[Detail]]
"""Yields one detail for everything that breaks the rule."""


@dataclass(frozen=True)
class Rule:
    """One thing that `check` asks of a submission."""

    judge: Judge
    severity: Severity
    """The status of a broken rule."""
    good: str
    """What holds if no detail is found."""
    bad: str
    """What does not hold; the details follow."""
    todo: str
    """What to do about it."""
    needs_records: bool
    """Whether the rule can judge nothing without run records."""
    repeat: bool
    """Whether the runs it names are to be measured again."""

    def apply(self, context: CheckContext) -> RuleResult:
        """Judge a submission; the result names the rule as its function, with hyphens."""
        name = self.judge.__name__.replace("_", "-")
        details = tuple(self.judge(context))
        if details:
            todo = "; ".join(filter(None, (self.todo, REMEASURE if self.repeat else "")))
            return RuleResult(name, self.severity, self.bad, details, todo, self.repeat)
        unknown = self.needs_records and not context.records
        return RuleResult(name, "Yes", _UNKNOWN if unknown else self.good)


def rule(
    severity: Severity,
    *,
    good: str,
    bad: str,
    todo: str = "",
    needs_records: bool = False,
    repeat: bool = False,
) -> Callable[[Judge], Rule]:
    """Turn a function into a rule; see `Rule` for the arguments."""
    return lambda judge: Rule(judge, severity, good, bad, todo, needs_records, repeat)
