"""The errors of morocco: what they carry arrives whole on another machine."""

from __future__ import annotations

import pickle
import signal

import pytest

from morocco.errors import DataError, Interrupted, MoroccoError, OutOfMemory, TargetError


@pytest.mark.parametrize(
    "error",
    [
        DataError("no data"),
        TargetError("ended\n  out of luck", 3, ("out of luck",)),
        OutOfMemory("killed"),
        Interrupted("stopped", signal.SIGINT),
        Interrupted("stopped"),
    ],
)
def test_an_error_survives_being_sent(error: MoroccoError) -> None:
    received = pickle.loads(pickle.dumps(error))
    assert type(received) is type(error)
    assert str(received) == str(error)
    for name in ("cause", "exit_code", "quoted"):
        assert getattr(received, name) == getattr(error, name)


def test_an_interruption_without_a_signal_of_its_own_counts_as_sigterm() -> None:
    assert Interrupted("stopped").exit_code == 128 + 15
