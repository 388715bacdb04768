"""What `check` returns: one result per rule, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from morocco.logs.log import Log
from morocco.logs.submission import Entry

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
    """What came of one rule."""

    rule: str
    status: Status
    says: str
    """What holds or, with details, what does not."""
    details: tuple[Detail, ...] = ()
    todo: str = ""
    """What to do about it; empty without details."""


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
