"""Whether an ended run is good: pure functions over what was seen of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from morocco.errors import NoPredictions, OutOfMemory, TargetError, UnreadInput
from morocco.logs.record import Peaks
from morocco.targets.target import Exit
from morocco.util.units import Bytes, format_bytes, plural

_KILLED = 128 + 9
_TAIL_LINES = 10
STDERR = "Its last lines on stderr:"
"""Stands before what a message quotes."""


@dataclass(frozen=True)
class Outcome:
    """What was seen of a run that came to its end."""

    exit: Exit
    records: int
    """How many should be fed."""
    distinct: int | None
    """How many different `idx` they carry; None where a record has none."""
    fed: int
    unread: int
    """Bytes of input left lying, as far as this can be told."""
    predicted: int
    peaks: Peaks = field(default_factory=Peaks)
    limits: Mapping[str, str] = field(default_factory=dict)
    stderr: str = ""
    gpus: int = 0
    """How many it was given."""
    gpus_lost: tuple[str, ...] = ()
    samples_missed: int = 0


def find_failure(outcome: Outcome) -> TargetError | None:
    """Return why the run is no good, the first cause first; None for a good one."""
    code = outcome.exit.code
    if code != 0 and outcome.exit.out_of_memory:
        return OutOfMemory(_out_of_memory(outcome) + quote_stderr(outcome.stderr))
    if code == _KILLED:
        return OutOfMemory(
            "The target was killed by signal 9 and morocco did not do it: most often the machine "
            f"had no memory left. {_peak(outcome)}{quote_stderr(outcome.stderr)}"
        )
    if code != 0:
        return TargetError(
            f"The target ended with exit code {code}: {_progress(outcome)}."
            f"{quote_stderr(outcome.stderr)}",
            code,
        )
    return _broken_contract(outcome)


def _broken_contract(outcome: Outcome) -> TargetError | None:
    if outcome.fed < outcome.records or outcome.unread:
        return UnreadInput(
            f"The target ended before it had read its input: {_progress(outcome)}. It must read "
            f"stdin to its end.{quote_stderr(outcome.stderr)}"
        )
    if not outcome.predicted:
        return NoPredictions(
            "The target ended well and printed no prediction. It must write one JSON object a "
            f"line to stdout.{quote_stderr(outcome.stderr)}"
        )
    return None


def find_warnings(outcome: Outcome) -> Iterator[str]:
    """Yield what makes the measurement of a good run doubtful."""
    if outcome.predicted not in (outcome.records, outcome.distinct):
        distinct = "" if outcome.distinct is None else f" with {outcome.distinct:,} different idx"
        yield (
            f"{plural(outcome.predicted, 'prediction')} for "
            f"{plural(outcome.records, 'record')}{distinct}: does the model print one a record?"
        )
    if outcome.exit.out_of_memory:
        yield "A process of the target was killed for memory, though the target ended well."
    if outcome.gpus and outcome.peaks.gpu_ram is None:
        yield (
            "The target was never seen on a GPU, though it was given "
            f"{plural(outcome.gpus, 'GPU')}. If it is a CPU model, say so with --gpus none."
        )
    if outcome.peaks.gpu_ram_source == "device":
        yield (
            "The driver does not tell the memory of single processes: gpu_ram is what the GPU "
            "holds beyond what it held before the start."
        )
    for lost in outcome.gpus_lost:
        yield f"{lost}. Its readings stop there; gpu_ram may be too low."
    if outcome.samples_missed:
        yield f"{plural(outcome.samples_missed, 'sample')} missed: the machine was too busy."


def quote_stderr(stderr: str) -> str:
    """Return the last lines a target logged, ready to stand behind a message."""
    lines = [line[:300] for line in stderr.splitlines() if line.strip()][-_TAIL_LINES:]
    if not lines:
        return " It logged nothing to stderr."
    return "\n" + "\n".join([STDERR, *(f"  {line}" for line in lines)])


def _out_of_memory(outcome: Outcome) -> str:
    limit = outcome.limits.get("memory")
    if limit:
        return f"The target was killed for memory: it needed more than --memory {limit}."
    return f"The target was killed for memory: the machine had none left. {_peak(outcome)}"


def _peak(outcome: Outcome) -> str:
    ram = outcome.peaks.ram
    return "" if ram is None else f"The largest sample of its RAM was {format_bytes(ram)}."


def _progress(outcome: Outcome) -> str:
    return tell_progress(outcome.fed, outcome.records, outcome.predicted, outcome.unread)


def tell_progress(fed: int, records: int, predicted: int, unread: Bytes = 0) -> str:
    """Return how far a run came, as part of a sentence."""
    left = f", {format_bytes(unread)} of input left unread" if unread else ""
    return (
        f"{fed:,} of {plural(records, 'record')} handed over{left}, "
        f"{plural(predicted, 'prediction')} back"
    )
