"""Every failure that morocco reports: one class each, with its exit code.

| exit code | class | what failed |
| --- | --- | --- |
| 1 | SuiteFailed, InvalidSubmission | some runs of a suite; a rule for submissions |
| 2 | click.UsageError | the command line itself |
| 3 | DataError | a data file, a log or a path |
| 4 | EngineError | the container engine |
| 5 | GpuError | the GPUs that were asked for |
| 6 | OutputError | writing the results |
| 10 | TargetError | the target: any reason that has no code of its own |
| 11 | OutOfMemory | the target: killed for memory |
| 12 | TimedOut | the target: longer than --timeout |
| 13 | NoPredictions | the target: printed nothing |
| 14 | UnreadInput | the target: ended before it had read its input |
| 128 + n | Interrupted | signal n |

A message says what failed and what to do about it. The core raises; only the command line prints.
"""

from __future__ import annotations

from signal import SIGTERM


class MoroccoError(Exception):
    """Any failure that is not a bug in morocco."""

    exit_code = 1
    cause = "failed"
    """The failure in a word or two, for tables."""


class SuiteFailed(MoroccoError):
    """Some runs of a suite failed; the others are done."""


class InvalidSubmission(MoroccoError):
    """Logs that break a rule and so are not a valid submission."""


class DataError(MoroccoError):
    """A data file, a log or a path that cannot be used as given."""

    exit_code = 3
    cause = "data"


class EngineError(MoroccoError):
    """The container engine cannot be reached, or refused a request."""

    exit_code = 4
    cause = "engine"


class GpuError(MoroccoError):
    """A GPU was asked for that cannot be had."""

    exit_code = 5
    cause = "GPU"


class OutputError(MoroccoError):
    """Results could not be written: disk full, reader gone, no permission."""

    exit_code = 6
    cause = "output"


class TargetError(MoroccoError):
    """The target broke the container contract or died."""

    exit_code = 10
    cause = "cannot start"

    def __init__(self, message: str, code: int | None = None) -> None:
        """`code` is the exit code of the target, None if it never ran."""
        super().__init__(message)
        if code is not None:
            self.cause = f"exit code {code}"


class OutOfMemory(TargetError):
    """The target was killed because memory ran out."""

    exit_code = 11
    cause = "memory"


class TimedOut(TargetError):
    """The target ran longer than allowed."""

    exit_code = 12
    cause = "time-out"


class NoPredictions(TargetError):
    """The target exited with 0 but printed nothing."""

    exit_code = 13
    cause = "no predictions"


class UnreadInput(TargetError):
    """The target ended before it had read all of its input."""

    exit_code = 14
    cause = "input unread"


class Interrupted(MoroccoError):
    """A signal ended the run; the exit code is 128 + signal, as in a shell."""

    def __init__(self, message: str, signal_number: int = SIGTERM) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number
