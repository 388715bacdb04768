"""What `check` comes to: one finding a rule, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal, Protocol

from morocco.logs.log import LogPath

Severity = Literal["NO", "warn"]
Status = Literal["Yes", "NO", "warn"]


class Named(Protocol):
    """A log, read or not: all that is needed to name it."""

    @property
    def name(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def path(self) -> LogPath: ...


@dataclass(frozen=True)
class Detail:
    """One thing that was found."""

    what: str
    """In numbers: "828 records a second, the median is 1070"; may be empty."""
    model: str = ""
    files: tuple[str, ...] = ()
    """The logs it concerns, below the folder of their model: `parus/2000_32_01.jsonl`."""


@dataclass(frozen=True)
class RuleResult:
    """What one rule found."""

    rule: str
    status: Status
    says: str
    """What holds or, with details, what does not."""
    details: tuple[Detail, ...] = ()
    todo: str = ""
    """The way out; empty where nothing was found."""


@dataclass(frozen=True)
class CheckResult:
    """The verdict on a submission."""

    profile: str
    """The name of the suite it was held against."""
    many_models: bool
    """Whether the model is needed to tell the logs apart."""
    findings: tuple[RuleResult, ...]
    """One a rule, in the order of the rules."""

    @property
    def valid(self) -> bool:
        return all(finding.status != "NO" for finding in self.findings)


def tell(logs: Sequence[Named], what: str = "") -> Detail:
    """Return a detail on one log or more, all of one model."""
    return Detail(what, logs[0].model, tuple(map(name_file, logs)))


def name_file(log: Named) -> str:
    """Return the log's name below the folder of its model, as it is on the disk."""
    return f"{log.path.task}/{PurePath(log.name).name}"
