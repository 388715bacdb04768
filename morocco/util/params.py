"""Types of command-line options: sizes, durations, variables, lists of names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from morocco.util.text import indent_lines, make_printable
from morocco.util.units import Seconds

if TYPE_CHECKING:  # generic since click 8.4
    _Text = click.ParamType[str]
    _Span = click.ParamType[Seconds]
    _List = click.ParamType[tuple[str, ...]]
    _Count = click.ParamType[int | None]
else:
    _Text = _Span = _List = _Count = click.ParamType

PATH = click.Path(path_type=Path)
FILE = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)
_SIZE = re.compile(r"0*[1-9][0-9]*[bkmg]", re.IGNORECASE)  # 0 means no limit to Docker
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smh]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


class TargetName(_Text):
    """An image, or `exec:` and a command."""

    name = "target"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text unchanged."""
        if not value.strip():
            self.fail("it is empty; name an image, or a command as 'exec:COMMAND'.", param, ctx)
        return value


class MemorySize(_Text):
    """An amount of memory in Docker's notation: 512m, 8g."""

    name = "size"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text unchanged."""
        if not _SIZE.fullmatch(str(value)):  # a file of settings may hold a number
            self.fail(f"{value!r} is not a size; write it as 512m or 8g.", param, ctx)
        return value


class MemoryLimit(MemorySize):
    """An amount of memory, or none."""

    name = "size|none"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text unchanged."""
        return value if value == "none" else super().convert(value, param, ctx)


class Limit(_Count):
    """A number above 0, or none."""

    name = "number|none"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | None:
        """Return the number."""
        if value == "none":
            return None
        if not str(value).isdecimal() or int(value) < 1:
            self.fail(f"{value!r} is neither a number above 0 nor none.", param, ctx)
        return int(value)


class Duration(_Span):
    """A time span: 90, 90s, 30m, 2h."""

    name = "duration"

    def convert(
        self, value: str | Seconds, param: click.Parameter | None, ctx: click.Context | None
    ) -> Seconds:
        """Return the span in seconds."""
        if isinstance(value, float):
            return value
        match = _DURATION.fullmatch(str(value).strip())  # a file of settings may hold a number
        if match is None or float(match[1]) == 0:
            self.fail(f"{value!r} is not a duration; write it as 90s, 30m or 2h.", param, ctx)
        return float(match[1]) * _SECONDS[match[2]]


class Variable(_Text):
    """An environment variable: KEY=VALUE, or KEY alone for its value in morocco's environment."""

    name = "key[=value]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text unchanged."""
        if not value.partition("=")[0]:
            self.fail(f"{value!r} is not KEY=VALUE.", param, ctx)
        if "=" not in value and value not in os.environ:
            self.fail(f"{value} is not set here; write {value}=VALUE.", param, ctx)
        return value


class Number(click.FloatRange):
    """A number in a range; `nan` is refused."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number."""
        number = float(super().convert(value, param, ctx))
        if isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


class Names(_List):
    """Names separated by commas, or a list of them from a file of settings."""

    name = "a,b,c"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Return the names without duplicates."""
        names = value.split(",") if isinstance(value, str) else value
        if not isinstance(names, (list, tuple)) or not all(isinstance(n, str) for n in names):
            self.fail(f"{value!r} is not a list of names; write them as a,b,c.", param, ctx)
        stripped = [name.strip() for name in names]
        if not stripped or not all(stripped):
            self.fail(f"{value!r} contains an empty name; write the names as a,b,c.", param, ctx)
        return tuple(dict.fromkeys(stripped))


def complete_names(names: Iterable[str], typed: str) -> list[str]:
    """Return what a shell may put in place of `typed`: names separated by commas, none twice."""
    *given, last = typed.split(",")
    found = (name for name in names if name.startswith(last) and name not in given)
    return [",".join([*given, name]) for name in found]


def print_text(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Print to stdout, or to stderr: everything that strangers may have written goes this way.

    What a terminal would act on is escaped; JSON stays JSON.
    """
    click.echo(make_printable(str(text)), err=err, nl=nl)


def warn(*messages: str) -> None:
    """Print each message to stderr as a warning."""
    for message in messages:
        print_text(f"morocco: warning: {indent_lines(message)}", err=True)
