"""A baseline: what the runs of one model took, kept in a file to compare later models with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from morocco import __version__
from morocco.errors import DataError
from morocco.report.comparison import has_speed
from morocco.report.model import Readings
from morocco.stats.grouping import Clock
from morocco.util.files import write_output
from morocco.util.json import read_object
from morocco.util.schema import Name, convert

FORMAT = 1
_HINT = "Write a new one: `morocco report MODEL_LOGS --save-baseline FILE`."


@dataclass(frozen=True)
class Baseline:
    """One model to compare others with; the fields are the keys of the file."""

    model: Name
    clock: Clock
    machines: Mapping[Name, Name]
    """Descriptions by fingerprint; empty where there were no records."""
    tasks: Annotated[
        Mapping[Name, Readings], Meta(min_length=1, description="a table of one task or more")
    ]
    format: int = FORMAT
    morocco: str = __version__

    def __post_init__(self) -> None:
        for task, readings in self.tasks.items():
            if not has_speed(readings):
                raise ValueError(f"'tasks.{task}' has runs that are not longer than the start-up")


def write_baseline(path: Path, baseline: Baseline) -> None:
    """Write a baseline as JSON; OutputError where the file cannot be written."""
    content = {"format": FORMAT, "morocco": __version__} | asdict(baseline)
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    write_output(path, text.encode(), "--save-baseline FILE")


def read_baseline(path: Path) -> Baseline:
    """Read the baseline in a file; DataError names the key that is wrong."""
    content = read_object(path)
    found = content.get("format")
    if type(found) is int and found != FORMAT:
        raise DataError(f"{path} is a baseline of format {found}, not {FORMAT}. {_HINT}")
    return convert(content, Baseline, path, hint=_HINT)
