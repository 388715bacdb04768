"""Every failure that morocco reports: one class each, with its exit code.

A message says what failed and what to do about it. The core raises; only the command line prints.
Exit code 2 is click's own, for wrong usage of the command line.
"""

from __future__ import annotations

from signal import SIGTERM


class MoroccoError(Exception):
    """Any failure that is not a bug in morocco."""

    exit_code = 1
    cause = "failed"
    """The failure in a word or two, for tables."""
    quoted: tuple[str, ...] = ()
    """The last lines that a failed target wrote to stderr; the message ends with them."""


class SuiteFailed(MoroccoError):
    """Some runs of a suite failed; the others are done."""


class InvalidSubmission(MoroccoError):
    """Logs that break a rule and so are not a valid submission."""


class DataError(MoroccoError):
    """A data file, a log or a path that cannot be used as given."""

    exit_code = 3
    cause = "data error"


class EngineError(MoroccoError):
    """The container engine cannot be reached, or refused a request."""

    exit_code = 4
    cause = "engine error"


class GpuError(MoroccoError):
    """A GPU that was asked for is not available."""

    exit_code = 5
    cause = "GPU error"


class OutputError(MoroccoError):
    """Results could not be written: disk full, pipe closed, no permission."""

    exit_code = 6
    cause = "output error"


class TargetError(MoroccoError):
    """The target broke the container contract or died."""

    exit_code = 10
    cause = "cannot start"

    def __init__(self, message: str, code: int | None = None, quoted: tuple[str, ...] = ()) -> None:
        """`code` is the exit code of the target, `quoted` what the message quotes of its stderr."""
        super().__init__(message)
        self.quoted = quoted
        if code is not None:
            self.cause = f"exit code {code}"


class OutOfMemory(TargetError):
    """The target was killed because memory ran out."""

    exit_code = 11
    cause = "out of memory"


class TimedOut(TargetError):
    """The target ran longer than allowed."""

    exit_code = 12
    cause = "timed out"


class NoPredictions(TargetError):
    """The target exited with 0 but printed nothing."""

    exit_code = 13
    cause = "no predictions"


class UnreadInput(TargetError):
    """The target ended before it had read all of its input."""

    exit_code = 14
    cause = "unread input"


class WrongPredictions(TargetError):
    """The target printed something else than a prediction for each record."""

    exit_code = 15
    cause = "wrong predictions"


class Interrupted(MoroccoError):
    """A signal ended the run; the exit code is 128 + signal, as in a shell."""

    cause = "interrupted"

    def __init__(self, message: str, signal_number: int = SIGTERM) -> None:
        super().__init__(message)
        self.signal_number = signal_number
        self.exit_code = 128 + signal_number


_CAUSES = {
    error.__name__: error.cause
    for error in list(globals().values())
    if isinstance(error, type) and issubclass(error, MoroccoError)
}


def name_cause(kind: str | None, exit_code: int | None) -> str | None:
    """Return the cause of a failed run: "out of memory", "exit code 3"; None for a good run.

    `kind` is the name of the error's class, as a run record holds it. An unknown one, such as
    that of a bug in morocco, is its own cause.
    """
    if kind in (None, TargetError.__name__) and exit_code:
        return f"exit code {exit_code}"
    return None if kind is None else _CAUSES.get(kind, kind)
