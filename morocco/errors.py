"""Every failure morocco reports: one class each, with its exit code.

The message names the way out; the core raises, only the command line prints. Exit code 2 is
left to click, for wrong usage of the command line itself.
"""

from __future__ import annotations


class MoroccoError(Exception):
    """Any failure that is not a defect of morocco itself."""

    exit_code = 1


class DataError(MoroccoError):
    """A data file, a log or a path that cannot be used as given."""

    exit_code = 3


class EngineError(MoroccoError):
    """The container engine is away, or refused what was asked of it."""

    exit_code = 4


class GpuError(MoroccoError):
    """A GPU was asked for that is not there."""

    exit_code = 5


class OutputError(MoroccoError):
    """What was measured could not be written: disk full, reader gone, no permission."""

    exit_code = 6


class TargetError(MoroccoError):
    """The measured target broke the container contract or died."""

    exit_code = 10


class OutOfMemory(TargetError):
    """The target was killed for memory."""

    exit_code = 11


class TimedOut(TargetError):
    """The target ran longer than it was allowed to."""

    exit_code = 12


class NoPredictions(TargetError):
    """The target ended well and printed nothing."""

    exit_code = 13


class UnreadInput(TargetError):
    """The target ended before it had read all of its input."""

    exit_code = 14


class Interrupted(MoroccoError):
    """A signal ended the run; the exit code is the shell's own, 128 + signal."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number
