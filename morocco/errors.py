"""Every failure morocco reports: one class each, with its exit code.

The message names the way out; the core raises, only the command line prints. Exit code 2 is
left to click, for wrong usage of the command line itself.
"""

from __future__ import annotations


class MoroccoError(Exception):
    """Any failure that is not a defect of morocco itself."""

    exit_code = 1
    cause = "failed"
    """In a word, for a table."""


class SuiteFailed(MoroccoError):
    """Some runs of a suite failed; the others are done."""


class InvalidSubmission(MoroccoError):
    """Logs that break a rule, so they are no submission."""


class DataError(MoroccoError):
    """A data file, a log or a path that cannot be used as given."""

    exit_code = 3
    cause = "data"


class EngineError(MoroccoError):
    """The container engine is away, or refused what was asked of it."""

    exit_code = 4
    cause = "engine"


class GpuError(MoroccoError):
    """A GPU was asked for that is not there."""

    exit_code = 5
    cause = "GPU"


class OutputError(MoroccoError):
    """What was measured could not be written: disk full, reader gone, no permission."""

    exit_code = 6
    cause = "output"


class TargetError(MoroccoError):
    """The measured target broke the container contract or died."""

    exit_code = 10
    cause = "cannot start"

    def __init__(self, message: str, code: int | None = None) -> None:
        """`code` is the exit code it ended with."""
        super().__init__(message)
        if code is not None:
            self.cause = f"exit code {code}"


class OutOfMemory(TargetError):
    """The target was killed for memory."""

    exit_code = 11
    cause = "memory"


class TimedOut(TargetError):
    """The target ran longer than it was allowed to."""

    exit_code = 12
    cause = "time-out"


class NoPredictions(TargetError):
    """The target ended well and printed nothing."""

    exit_code = 13
    cause = "no predictions"


class UnreadInput(TargetError):
    """The target ended before it had read all of its input."""

    exit_code = 14
    cause = "input unread"


class Interrupted(MoroccoError):
    """A signal ended the run; the exit code is the shell's own, 128 + signal."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number
